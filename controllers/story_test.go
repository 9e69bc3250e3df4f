package controllers_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// patience bounds how long a test waits for something; what it waits for is a condition, never a time.
const patience = 30 * time.Second

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// story is one test's own class, so that tests share a fleet without meeting.
type story struct {
	*testing.T
	*fleet
	ctx     context.Context
	service string
}

func begin(t *testing.T, f *fleet, service string) *story {
	t.Helper()
	s := &story{T: t, fleet: f, ctx: context.Background(), service: service}
	s.create(&v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: service}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: v1alpha1.NamePattern("trnv1:rsc:trip-com:" + service + ":clusters:*"), LabelKey: v1alpha1.LabelKey("com.trip/" + service),
		Actions:   []v1alpha1.ClassAction{{Name: service + ":connect", Ports: []v1alpha1.Port{{Port: 6379}}}},
		Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
	}})
	s.create(&v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: service}, Spec: v1alpha1.SubjectClassSpec{
		Pattern: v1alpha1.NamePattern("trnv1:rsc:trip-com:" + service + ":sa:app/*"), LabelKey: "com.trip/appid",
	}})
	return s
}

// place changes the placement of the story's class, and waits until the adapter has seen that: the kinds are watched apart.
func (s *story) place(clusters ...v1alpha1.ClusterName) {
	s.Helper()
	clusters = append([]v1alpha1.ClusterName{}, clusters...) // none is an empty list, which is not the same as no list
	c := &v1alpha1.ResourceClass{}
	change(s, s.host, c, s.service, func(c *v1alpha1.ResourceClass) {
		c.Spec.Placement = v1alpha1.Placement{Clusters: &clusters}
	})
	s.until("the adapter has seen the placement", func() string {
		var now v1alpha1.ResourceClass
		if err := s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &now); err != nil {
			s.Fatal(err)
		}
		if now.Status.ObservedGeneration < c.Generation {
			return "it has not"
		}
		return ""
	})
}

func (s *story) resource() v1alpha1.ResourceName {
	return v1alpha1.ResourceName("trnv1:rsc:trip-com:" + s.service + ":clusters:bobs")
}

func (s *story) object() string { return v1alpha1.ObjectPrefix + policy.UnitID(string(s.resource())) }

func (s *story) create(o client.Object) {
	s.Helper()
	if err := s.host.Create(s.ctx, o); err != nil {
		s.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

func (s *story) protect(mode v1alpha1.Mode) {
	s.Helper()
	s.create(&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: s.service},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: s.resource(), Mode: mode}})
}

func (s *story) statement(sid, app string) v1alpha1.Statement {
	return v1alpha1.Statement{SID: sid, Effect: v1alpha1.EffectAllow,
		Subjects:  []v1alpha1.Subject{v1alpha1.Subject("trnv1:rsc:trip-com:" + s.service + ":sa:app/" + app)},
		Actions:   []v1alpha1.Action{v1alpha1.Action(s.service + ":connect")},
		Resources: []v1alpha1.ResourceName{s.resource()}}
}

func (s *story) grant(statements ...v1alpha1.Statement) {
	s.Helper()
	s.create(&v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.service},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: statements}})
}

// change reads, modifies and writes until no other writer is in between.
func change[T client.Object](s *story, c client.Client, o T, name string, modify func(T)) {
	s.Helper()
	for {
		if err := c.Get(s.ctx, types.NamespacedName{Name: name}, o); err != nil {
			s.Fatalf("read %s: %v", name, err)
		}
		modify(o)
		err := c.Update(s.ctx, o)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			s.Fatalf("change %s: %v", name, err)
		}
	}
}

// until waits until check returns "".
func (s *story) until(what string, check func() string) {
	s.Helper()
	deadline := time.Now().Add(patience)
	for {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s: still not so: %s", what, problem)
		}
		time.Sleep(10 * time.Millisecond) // the pace of asking
	}
}

func (s *story) protected() *v1alpha1.ProtectedResource {
	s.Helper()
	var o v1alpha1.ProtectedResource
	if err := s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &o); err != nil {
		s.Fatal(err)
	}
	return &o
}

func (s *story) policy() *v1alpha1.AccessControlPolicy {
	s.Helper()
	var o v1alpha1.AccessControlPolicy
	if err := s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &o); err != nil {
		s.Fatal(err)
	}
	return &o
}

// federated returns the Federated object, or nil.
func (s *story) federated() (*unstructured.Unstructured, *federation.Object) {
	s.Helper()
	return s.federatedOf(federation.CiliumPolicy, s.object())
}

func (s *story) federatedOf(kind federation.Kind, name string) (*unstructured.Unstructured, *federation.Object) {
	s.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind.Federated)
	err := s.host.Get(s.ctx, types.NamespacedName{Namespace: kind.Namespace, Name: name}, u)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return u, federation.ParseObject(kind, u)
}

// untilStates waits for the states of the members as the ProtectedResource tells them. A status may tell what was in force before for
// half a second still (condition.DeferralLimit), so it counts from when it speaks of this generation, and of the revisions that are written.
func (s *story) untilStates(what string, want map[string]v1alpha1.MemberState) {
	s.Helper()
	s.until(what, func() string {
		got := map[string]v1alpha1.MemberState{}
		p := s.protected()
		told := fmt.Sprintf("%v, conditions %v", p.Status.Clusters, p.Status.Conditions)
		for _, c := range p.Status.Conditions {
			if c.ObservedGeneration != p.Generation {
				return fmt.Sprintf("of generation %d, not of %d: %s", c.ObservedGeneration, p.Generation, told)
			}
		}
		_, o := s.federated()
		for _, c := range p.Status.Clusters {
			got[string(c.Name)] = c.State
			written := ""
			if o != nil {
				written = o.RevisionIn(string(c.Name))
			}
			if c.State == v1alpha1.MemberRealized && c.DesiredRevision != written {
				return fmt.Sprintf("%s is to have %q: %s", c.Name, written, told)
			}
		}
		if maps.Equal(got, want) {
			return ""
		}
		return told
	})
}

// push plays KubeFed: it carries the Federated object as it is to the members that can be reached, and says so. What the
// statuses speak of may still wait for its turn to be written, so it waits for that first.
func (s *story) push() {
	s.Helper()
	s.until("what is wanted is written", func() string {
		have := ""
		if _, o := s.federated(); o != nil {
			have = o.TemplateLabels[v1alpha1.LabelRevision]
		}
		for _, want := range s.wanted() {
			if want != "" && want != have {
				return fmt.Sprintf("%q is there, %q is wanted", have, want)
			}
		}
		return ""
	})
	s.pushOf(federation.CiliumPolicy, s.object())
}

// wanted are the revisions of the unit that the statuses speak of.
func (s *story) wanted() []string {
	s.Helper()
	var r v1alpha1.ProtectedResource
	if err := client.IgnoreNotFound(s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &r)); err != nil {
		s.Fatal(err)
	}
	var p v1alpha1.AccessControlPolicy
	if err := client.IgnoreNotFound(s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &p)); err != nil {
		s.Fatal(err)
	}
	out := []string{r.Status.Revision}
	for _, u := range p.Status.Units {
		if u.Resource == s.resource() {
			out = append(out, u.Revision)
		}
	}
	return out
}

// pushOf is push for any object. One that is gone by now needs no push; whoever waits for it sees that.
func (s *story) pushOf(kind federation.Kind, object string) {
	s.Helper()
	u, o := s.federatedOf(kind, object)
	if o == nil {
		return
	}
	var clusters []any
	placed := map[string]bool{}
	for _, c := range o.Placement {
		placed[c] = true
	}
	for name, m := range s.members {
		reachable := !m.wire.isCut() && !s.registration(name).Quarantined
		switch {
		case placed[name] && reachable:
			s.carry(m, o, name)
			clusters = append(clusters, map[string]any{"name": name})
		case placed[name]:
			clusters = append(clusters, map[string]any{"name": name, "status": "ClusterNotReady"})
		case reachable:
			s.removeFrom(m, o)
		}
	}
	u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "clusters": clusters,
		"conditions": []any{map[string]any{"type": "Propagation", "status": "True"}}}
	switch err := s.host.Status().Update(s.ctx, u); {
	case apierrors.IsConflict(err):
		// The adapter was faster. What it wants by now is another push: carried here, it would be carried before the test says so.
		if now, _ := s.federatedOf(kind, object); now != nil && now.GetGeneration() == u.GetGeneration() {
			s.pushOf(kind, object)
		}
	case client.IgnoreNotFound(err) != nil:
		s.Fatalf("play KubeFed: %v", err)
	}
}

// registration is a member's, as the adapter reads it.
func (s *story) registration(name string) federation.Cluster {
	s.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("core.kubefed.io/v1beta1")
	u.SetKind("KubeFedCluster")
	if err := s.host.Get(s.ctx, types.NamespacedName{Namespace: fedNS, Name: name}, u); err != nil {
		s.Fatal(err)
	}
	c, err := federation.ParseCluster(u)
	if err != nil {
		s.Fatal(err)
	}
	return c
}

func (s *story) carry(m *memberServer, o *federation.Object, cluster string) {
	s.Helper()
	spec, labels := o.TemplateSpec, maps.Clone(o.TemplateLabels)
	if over, ok := o.Overrides[cluster]; ok {
		spec = over.Spec
		maps.Copy(labels, over.Labels)
	}
	want := target(o.Kind, o.Meta.Name)
	err := m.client.Get(s.ctx, types.NamespacedName{Namespace: o.Kind.Namespace, Name: o.Meta.Name}, want)
	exists := err == nil
	want.SetLabels(labels)
	want.Object["spec"] = spec
	if exists {
		err = m.client.Update(s.ctx, want)
	} else if apierrors.IsNotFound(err) {
		err = m.client.Create(s.ctx, want)
	}
	if err != nil {
		s.Fatalf("carry to %s: %v", cluster, err)
	}
}

func (s *story) removeFrom(m *memberServer, o *federation.Object) {
	s.Helper()
	if err := client.IgnoreNotFound(m.client.Delete(s.ctx, target(o.Kind, o.Meta.Name))); err != nil {
		s.Fatal(err)
	}
}

func (s *story) ccnp() *unstructured.Unstructured { return target(federation.CiliumPolicy, s.object()) }

func target(kind federation.Kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind.Target)
	u.SetNamespace(kind.Namespace)
	u.SetName(name)
	return u
}

func (w *wire) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}
