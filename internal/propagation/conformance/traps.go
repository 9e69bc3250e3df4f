package conformance

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
)

// The tests of this file are the cases in which KubeFed is known to leave an object in a member, to place one that nobody asked for,
// or to stop for all members. Every engine is tested in all of them. Where engines differ, they declare it in their capabilities.

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// placedNowhere checks that an object that is placed nowhere reaches no member, even if a selector of all members is added to its
// record: an empty list of members that was omitted would select them.
func (s *scene) placedNowhere() {
	defer s.removed()
	s.record(s.object("888"))
	stored, err := s.records().Get(s.ctx(), s.name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	if clusters, found, err := unstructured.NestedSlice(stored.Object, "spec", "placement", "clusters"); err != nil || !found || len(clusters) > 0 {
		s.Errorf("the record lists the members %v (listed: %v, error: %v), want an empty list", clusters, found, err)
	}
	s.edit(`{"spec":{"placement":{"clusterSelector":{}}}}`)
	s.handled(m1, m2)
	for _, m := range []string{m1, m2} {
		if s.live(m) != nil {
			s.Errorf("%s has the object", m)
		}
	}
}

// recordEdited checks what a record that was changed by hand does: an engine that declares that it follows such a record obeys it,
// and any other keeps what the members have. The adapter restores the record, and then no engine leaves anything behind.
func (s *scene) recordEdited() {
	defer s.removed()
	s.record(s.object("888", m1))
	s.seen(m1, "888")
	s.edit(`{"spec":{"placement":{"clusters":null,"clusterSelector":{}}}}`)
	if s.Capabilities.FollowsEdits {
		s.seen(m2, "888")
	} else {
		s.handled(m1, m2)
		if s.live(m2) != nil {
			s.Error("a record that cannot be read in full was carried out")
		}
	}
	s.seen(m1, "888")
	s.record(s.object("888", m1))
	s.seen(m2, "")
	s.released(m2)
	s.seen(m1, "888")
}

// recordMetadata checks that the record's annotations and finalizers stay on the host.
func (s *scene) recordMetadata() {
	defer s.removed()
	record := s.record(s.object("888", m1))
	s.seen(m1, "888")
	u := s.live(m1)
	for k := range record.Meta.Annotations {
		if _, found := u.GetAnnotations()[k]; found {
			s.Errorf("the member has the record's annotation %s", k)
		}
	}
	if finalizers := u.GetFinalizers(); len(finalizers) > 0 {
		s.Errorf("the member's object has the finalizers %v", finalizers)
	}
}

// localObject checks that an object of the same name that somebody created in a member is replaced in full.
func (s *scene) localObject() {
	defer s.removed()
	mallory := spec("mallory")
	mallory["egress"] = []any{map[string]any{"toEntities": []any{"all"}}}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": s.name}, "spec": mallory}}
	u.SetGroupVersionKind(s.Kind.Target)
	u.SetNamespace(s.Kind.Namespace)
	if _, err := s.policies(m1).Create(s.ctx(), u, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.record(s.object("888", m1))
	s.seen(m1, "888")
	s.labelled(m1, "888")
}

// labels checks that a label that was removed in a member is restored: at once by an engine that declares it, and by every engine
// with the next change.
func (s *scene) labels() {
	defer s.removed()
	s.record(s.object("888", m1))
	s.seen(m1, "888")
	without := []byte(`{"metadata":{"labels":{"` + v1alpha1.LabelManagedBy + `":null}}}`)
	if _, err := s.policies(m1).Patch(s.ctx(), s.name, types.MergePatchType, without, metav1.PatchOptions{FieldManager: "other"}); err != nil {
		s.Fatal(err)
	}
	if s.Capabilities.RestoresLabels {
		s.labelled(m1, "888")
	}
	s.record(s.object("889", m1))
	s.seen(m1, "889")
	s.labelled(m1, "889")
}

// recordDeleted checks what the deletion of a record without the removal protocol does: an engine that declares that it removes what
// was deleted takes the object from its members, and any other leaves it there, where it is found by its name. Both obey the record
// that replaces it.
func (s *scene) recordDeleted() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	s.deleted()
	for _, m := range []string{m1, m2} {
		if s.Capabilities.RemovesDeleted {
			s.seen(m, "")
		} else {
			s.handled(m)
			s.orphaned(m, "888")
		}
	}
	s.record(s.object("889", m1, m2))
	s.seen(m1, "889")
	s.seen(m2, "889")
}

// deletedWhileAway checks that a member that was away while the placement was narrowed and the record deleted, without the removal
// protocol, keeps the object, where it is found by its name, and that the object goes with a record that knows of the member.
func (s *scene) deletedWhileAway() {
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	s.away(m2)
	s.edit(`{"spec":{"placement":{"clusters":[{"name":"` + m1 + `"}]}}}`)
	s.deleted()
	s.Reconnect(m2)
	s.orphaned(m2, "888")
	s.record(s.object("888").PlacedIn(nil, []string{m1, m2}))
	s.removed()
	for _, m := range []string{m1, m2} {
		s.seen(m, "")
	}
}

// unregistered checks that a member whose registration is deleted keeps what it has, does not count as seen without it, and obeys
// the record again when it is registered again.
func (s *scene) unregistered() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	registrations := s.Host.Resource(federation.ClusterResource).Namespace(s.KubeFedNamespace)
	u, err := registrations.Get(s.ctx(), m2, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	if err := registrations.Delete(s.ctx(), m2, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	again := &unstructured.Unstructured{Object: map[string]any{"spec": u.Object["spec"]}}
	again.SetGroupVersionKind(u.GroupVersionKind())
	again.SetName(m2)
	again.SetLabels(u.GetLabels())
	again.SetAnnotations(u.GetAnnotations())
	register := func() error {
		_, err := registrations.Create(s.ctx(), again.DeepCopy(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	s.Cleanup(func() {
		if err := register(); err != nil {
			s.Errorf("register %s again: %v", m2, err)
		}
	})
	s.until("the registration is gone", func() error {
		if _, err := registrations.Get(s.ctx(), m2, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		if s.Read.Observe(m2, s.key()).Registered {
			return fmt.Errorf("it is read")
		}
		return nil
	})
	s.record(s.object("888").PlacedIn(nil, []string{m1, m2}))
	s.seen(m1, "")
	s.released(m1)
	if o, _ := s.Store.Get(s.key()); o.SeenWithout(m2, s.Read.Observe(m2, s.key())) {
		s.Error("a member that is not registered counts as seen without the object")
	}
	if s.live(m2) == nil {
		s.Error("a member that is not registered lost the object")
	}
	if err := register(); err != nil {
		s.Fatal(err)
	}
	s.seen(m2, "")
	s.released(m2)
}

// memberWithoutKind checks that a member that does not serve the kind any more does not keep changes from another one, over a restart
// of the engine. A member of an engine that does not isolate members is quarantined, as the adapter does with it.
func (s *scene) memberWithoutKind() {
	defer s.removed()
	s.record(s.object("888", m1, m2))
	s.seen(m1, "888")
	s.seen(m2, "888")
	kinds := s.Members[m2].Resource(crdResource)
	name := s.Kind.TargetResource.GroupResource().String()
	crd, err := kinds.Get(s.ctx(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	if err := kinds.Delete(s.ctx(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	again := &unstructured.Unstructured{Object: map[string]any{"spec": crd.Object["spec"]}}
	again.SetGroupVersionKind(crd.GroupVersionKind())
	again.SetName(name)
	again.SetLabels(crd.GetLabels())
	again.SetAnnotations(crd.GetAnnotations())
	create := func() error {
		_, err := kinds.Create(s.ctx(), again.DeepCopy(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	s.Cleanup(func() {
		if err := create(); err != nil {
			s.Errorf("create the kind in %s again: %v", m2, err)
		}
	})
	s.until(m2+" does not serve the kind", func() error {
		if _, err := s.policies(m2).List(s.ctx(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it answers %w", err)
		}
		if _, err := kinds.Get(s.ctx(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("its definition is there: %w", err)
		}
		return nil
	})
	if !s.Capabilities.Isolated {
		s.Quarantine(m2)
	}
	s.Stop()
	s.Start()
	s.record(s.object("889", m1, m2))
	s.seen(m1, "889")
	if err := create(); err != nil {
		s.Fatal(err)
	}
	if !s.Capabilities.Isolated {
		s.Release(m2)
	}
	s.seen(m2, "889")
}

// edit changes a record as an administrator of the host can, without the adapter.
func (s *scene) edit(patch string) {
	s.Helper()
	if _, err := s.records().Patch(s.ctx(), s.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "other"}); err != nil {
		s.Fatal(err)
	}
}

// deleted deletes a record as an administrator of the host can, and waits until it is gone.
func (s *scene) deleted() {
	s.Helper()
	if err := s.records().Delete(s.ctx(), s.name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	s.until("the record is gone", func() error {
		if o, ok := s.Store.Get(s.key()); ok {
			return fmt.Errorf("it has the finalizers %v", o.Meta.Finalizers)
		}
		return nil
	})
}

// handled waits until the engine has carried a later object to members, so that it has handled what was recorded before.
func (s *scene) handled(members ...string) {
	s.Helper()
	later := &scene{T: s.T, Fleet: s.Fleet, name: s.name + "-later"}
	later.record(later.object("888", members...))
	for _, m := range members {
		later.seen(m, "888")
	}
	later.removed()
}

// orphaned waits until a member was read with the object although no record knows of it.
func (s *scene) orphaned(member, app string) {
	s.Helper()
	s.seen(member, app)
	if found := s.Read.Reserved(member); !slices.Contains(found, s.key()) {
		s.Errorf("%s has the objects %s, want %s among them", member, strings.Join(found, ", "), s.key())
	}
}

// labelled waits until the object in a member has the labels of the policy that admits an application.
func (s *scene) labelled(member, app string) {
	s.Helper()
	s.until(member+" has the labels", func() error {
		u := s.live(member)
		if u == nil {
			return fmt.Errorf("it does not have the object")
		}
		labels := u.GetLabels()
		if labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy || labels[v1alpha1.LabelRevision] != enforcer.Revision(spec(app)) {
			return fmt.Errorf("it has %v", labels)
		}
		return nil
	})
}
