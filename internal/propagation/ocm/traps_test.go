//go:build ocmagent

package ocm_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/propagation/conformance"
	"github.com/acp-io/acp/internal/propagation/ocm"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

// traps are the cases in which an agent could leave a member with something else than what the host records.
var traps = map[string]func(*trap){
	"changed-while-away":       (*trap).changedWhileAway,
	"work-deleted-while-away":  (*trap).workDeletedWhileAway,
	"work-deleted-by-force":    (*trap).workDeletedByForce,
	"two-works":                (*trap).twoWorks,
	"created-after-removal":    (*trap).createdAfterRemoval,
	"quarantined-while-away":   (*trap).quarantinedWhileAway,
	"placed-while-it-vanishes": (*trap).placedWhileItVanishes,
	"moved-and-back":           (*trap).movedAndBack,
}

// trap is one of the cases, with an object of its own in m1.
type trap struct {
	*testing.T
	*fleet
	suite conformance.Fleet
	name  string
}

func spec(app string) map[string]any {
	return map[string]any{
		"endpointSelector": map[string]any{"matchLabels": map[string]any{"app": "redis"}},
		"ingress":          []any{map[string]any{"fromEndpoints": []any{map[string]any{"matchLabels": map[string]any{"app": app}}}}},
	}
}

// record writes the object that admits an application in some members, and returns what the host has.
func (t *trap) record(app string, placement ...string) {
	t.Helper()
	want := spec(app)
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelRevision: enforcer.Revision(want)}
	o := &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: t.name}}
	eventually.NilWithin(t.T, *reportTimeout, "the object is recorded", func() error {
		if e, ok := t.store.Get(t.name); ok {
			o.Meta = *e.Meta.DeepCopy()
		}
		o.Meta.Labels = labels
		o.Meta.Annotations = federation.Overlay(o.Meta.Annotations, map[string]string{
			federation.AnnotationResource: "trnv1:rsc:trip-com:redis:clusters:" + t.name, federation.AnnotationEverPlaced: "m1"})
		o.TemplateLabels, o.TemplateSpec, o.Placement = labels, want, placement
		_, err := t.store.Apply(t.Context(), o)
		return err
	})
}

func (t *trap) policies() dynamic.ResourceInterface {
	return t.members["m1"].Resource(federation.CiliumPolicy.TargetResource)
}

func (t *trap) works() dynamic.ResourceInterface {
	return t.host.Resource(ocm.WorkResource).Namespace("m1")
}

// work returns the ManifestWork of the object, or nil.
func (t *trap) work() *unstructured.Unstructured {
	t.Helper()
	list, err := t.works().List(t.Context(), metav1.ListOptions{})
	t.must(t.T, err)
	for _, w := range list.Items {
		if w.GetAnnotations()["acp.io/work-object"] == t.name {
			return &w
		}
	}
	return nil
}

// live returns the UID and the revision of the object in the member, or nothing.
func (t *trap) live() (types.UID, string) {
	t.Helper()
	u, err := t.policies().Get(t.Context(), t.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", ""
	}
	t.must(t.T, err)
	have, _, _ := unstructured.NestedMap(u.Object, "spec")
	return u.GetUID(), enforcer.Revision(have)
}

// realized reports why the object does not count as the one that admits an application. It fails when it counts although the member has
// something else.
func (t *trap) realized(app string) error {
	t.Helper()
	o := t.read.Observe("m1", t.name)
	if !o.Reachable || o.Object == nil || o.Object.Revision != enforcer.Revision(spec(app)) {
		return fmt.Errorf("observed is %+v", o)
	}
	if _, have := t.live(); have != enforcer.Revision(spec(app)) {
		t.Fatalf("the object counts as realized, but the member has revision %q", have)
	}
	return nil
}

func (t *trap) seen(app string) {
	t.Helper()
	eventually.NilWithin(t.T, *reportTimeout, "the object is realized", func() error { return t.realized(app) })
}

func (t *trap) away() {
	t.Helper()
	t.proxies["m1"].Disconnect()
	t.Cleanup(func() { t.proxies["m1"].Reconnect() })
	eventually.NilWithin(t.T, *reportTimeout, "the agent counts as away", func() error {
		if t.read.Observe("m1", "").Reachable {
			return fmt.Errorf("it is read")
		}
		return nil
	})
}

func (t *trap) released() error {
	o, _ := t.store.Get(t.name)
	if !o.SeenWithout("m1", t.read.Observe("m1", t.name)) {
		return fmt.Errorf("the engine reports %+v, observed is %+v", o.ReportIn("m1"), t.read.Observe("m1", t.name))
	}
	if uid, _ := t.live(); uid != "" {
		t.Fatal("the member counts as seen without the object, and has it")
	}
	return nil
}

// removed takes the object out of the member.
func (t *trap) removed() {
	t.Helper()
	t.record("888")
	eventually.NilWithin(t.T, *reportTimeout, "the object is gone", t.released)
	eventually.NilWithin(t.T, *reportTimeout, "the record is deleted", func() error {
		o, ok := t.store.Get(t.name)
		if !ok {
			return nil
		}
		if err := federation.DeleteAbsent(t.Context(), t.store, t.read, o, o.EverPlaced()); err != nil {
			return err
		}
		return fmt.Errorf("it was deleted just now")
	})
}

// change opens the object in the member, as an administrator of the member can.
func (t *trap) change() {
	t.Helper()
	open := []byte(`{"spec":{"ingress":[{"fromEntities":["all"]}]}}`)
	_, err := t.policies().Patch(t.Context(), t.name, types.MergePatchType, open, metav1.PatchOptions{FieldManager: "other"})
	t.must(t.T, err)
}

// changedWhileAway checks that the agent's last report from before it was away does not count when it is back: it reports what changed in
// the meantime only after a delay.
func (t *trap) changedWhileAway() {
	t.record("888", "m1")
	t.seen("888")
	t.away()
	t.change()
	time.Sleep(5 * time.Second) // The agent fails to report the change, and waits longer each time.
	t.proxies["m1"].Reconnect()
	t.seen("888")
	t.removed()
}

// workDeletedWhileAway checks that an object whose ManifestWork somebody deleted while the agent was away is there in the end. The agent
// removes it first, which nothing can prevent, because the agent sees the deletion even if the ManifestWork is created again.
func (t *trap) workDeletedWhileAway() {
	t.record("888", "m1")
	t.seen("888")
	before := t.work()
	t.away()
	t.must(t.T, t.works().Delete(t.Context(), before.GetName(), metav1.DeleteOptions{}))
	t.proxies["m1"].Reconnect()
	eventually.NilWithin(t.T, *reportTimeout, "the ManifestWork is created again", func() error {
		if now := t.work(); now == nil || now.GetUID() == before.GetUID() {
			return fmt.Errorf("it is the one that is being deleted")
		}
		return nil
	})
	t.seen("888")
	t.removed()
}

// workDeletedByForce checks the same for a ManifestWork that vanished with its finalizer while neither the engine nor the agent worked,
// and that the agent then still removes the object.
func (t *trap) workDeletedByForce() {
	t.record("888", "m1")
	t.seen("888")
	before := t.work()
	t.away()
	t.suite.Stop()
	t.must(t.T, t.works().Delete(t.Context(), before.GetName(), metav1.DeleteOptions{}))
	_, err := t.works().Patch(t.Context(), before.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	t.must(t.T, err)
	t.proxies["m1"].Reconnect()
	t.suite.Start()
	t.seen("888")
	t.removed()
}

// twoWorks checks that an object that another ManifestWork contains, too, does not count as gone while the member has it, and goes when
// the other one is deleted.
func (t *trap) twoWorks() {
	t.record("888", "m1")
	t.seen("888")
	other := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"workload": map[string]any{"manifests": []any{
		map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy", "metadata": map[string]any{"name": t.name}, "spec": spec("888")},
	}}}}}
	other.SetAPIVersion("work.open-cluster-management.io/v1")
	other.SetKind("ManifestWork")
	other.SetName("somebody")
	_, err := t.works().Create(t.Context(), other, metav1.CreateOptions{})
	t.must(t.T, err)
	eventually.NilWithin(t.T, *reportTimeout, "the agent applied the other one", func() error {
		u, err := t.policies().Get(t.Context(), t.name, metav1.GetOptions{})
		if err == nil && len(u.GetOwnerReferences()) < 2 {
			err = fmt.Errorf("the owners are %v", u.GetOwnerReferences())
		}
		return err
	})
	t.record("888")
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if t.released() == nil { // it fails if the member has the object
			t.Fatal("the object is gone although another ManifestWork contains it")
		}
	}
	t.must(t.T, t.works().Delete(t.Context(), "somebody", metav1.DeleteOptions{}))
	t.removed()
}

// createdAfterRemoval checks that an object that somebody creates again in the member, after it was removed and before its record is
// deleted, is found before the record goes, and is removed.
func (t *trap) createdAfterRemoval() {
	t.record("888", "m1")
	t.seen("888")
	t.record("888")
	eventually.NilWithin(t.T, *reportTimeout, "the object is gone", t.released)
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": t.name}, "spec": spec("mallory")}}
	u.SetGroupVersionKind(federation.CiliumPolicy.Target)
	_, err := t.policies().Create(t.Context(), u, metav1.CreateOptions{})
	t.must(t.T, err)
	if absent, err := t.read.Absent(t.Context(), "m1", t.name); err != nil || absent {
		t.Errorf("the member was read without the object: %v, %v", absent, err)
	}
	t.removed()
}

// quarantinedWhileAway checks that an agent that was away when its member was quarantined does not carry out what was recorded since. It may
// carry out what was recorded before, because it sees the versions of a ManifestWork one after the other.
func (t *trap) quarantinedWhileAway() {
	t.record("888", "m1")
	t.seen("888")
	t.away()
	registrations := federation.Registrations{Host: t.host, Namespace: kubeFedNamespace}
	t.must(t.T, registrations.Suspend(t.Context(), "m1", message.Verbatim("a test")))
	eventually.NilWithin(t.T, *reportTimeout, "no ManifestWork lets the agent write", func() error {
		configs, _, _ := unstructured.NestedSlice(t.work().Object, "spec", "manifestConfigs")
		strategy, _, _ := unstructured.NestedString(configs[0].(map[string]any), "updateStrategy", "type")
		if strategy != "ReadOnly" {
			return fmt.Errorf("one has the strategy %s", strategy)
		}
		return nil
	})
	t.record("889", "m1")
	t.proxies["m1"].Reconnect()
	eventually.NilWithin(t.T, *reportTimeout, "the agent confirms the quarantine", func() error {
		if alive := t.read.Observe("m1", "").Reachable; !alive || !t.fleet.works.Suspended("m1") {
			return fmt.Errorf("the agent answers: %v", alive)
		}
		return nil
	})
	if _, have := t.live(); have != enforcer.Revision(spec("888")) {
		t.Errorf("the quarantined member was written: it has revision %s", have)
	}
	t.must(t.T, registrations.Resume(t.Context(), "m1"))
	t.seen("889")
	t.removed()
}

// placedWhileItVanishes checks that an object that is placed again while the agent removes it is there in the end.
func (t *trap) placedWhileItVanishes() {
	for range 5 {
		t.record("888", "m1")
		t.seen("888")
		t.record("888")
		time.Sleep(100 * time.Millisecond)
	}
	t.record("888", "m1")
	t.seen("888")
	time.Sleep(2 * time.Second)
	t.seen("888")
	t.removed()
}

// movedAndBack checks that the agent of a member that uses another engine gives up what it owns there: the object stays, without a moment in
// which it is missing or has an earlier content, no ManifestWork remains, and the agent takes the object over when the member is back.
func (t *trap) movedAndBack() {
	t.record("888", "m1")
	t.seen("888")
	t.record("889", "m1")
	t.seen("889")
	before, _ := t.live()
	stop, problem := make(chan struct{}), make(chan string, 1)
	go func() {
		defer close(problem)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond): // probe interval
			}
			u, err := t.policies().Get(t.Context(), t.name, metav1.GetOptions{})
			if err != nil {
				problem <- err.Error()
				return
			}
			if have, _, _ := unstructured.NestedMap(u.Object, "spec"); enforcer.Revision(have) != enforcer.Revision(spec("889")) {
				problem <- fmt.Sprintf("the member has %v", have)
				return
			}
		}
	}()
	t.useEngine(federation.EngineDirect, federation.EngineOCM)
	eventually.NilWithin(t.T, *reportTimeout, "the ManifestWorks are deleted", func() error {
		n, err := ocm.Remaining(t.Context(), t.host, "m1")
		if err == nil && n > 0 {
			err = fmt.Errorf("%d remain", n)
		}
		return err
	})
	u, err := t.policies().Get(t.Context(), t.name, metav1.GetOptions{})
	t.must(t.T, err)
	if u.GetUID() != before || len(u.GetOwnerReferences()) > 0 {
		t.Errorf("the object has UID %s, before it was %s; its owners are %v", u.GetUID(), before, u.GetOwnerReferences())
	}
	t.useEngine(federation.EngineOCM, "")
	t.seen("889")
	close(stop)
	if p, failed := <-problem; failed {
		t.Errorf("while the member moved: %s", p)
	}
	if uid, _ := t.live(); uid != before {
		t.Errorf("the object was created again: UID %s, before it was %s", uid, before)
	}
	t.removed()
}

// useEngine makes the registration of m1 name an engine, and a former one.
func (t *trap) useEngine(engine, former federation.Engine) {
	t.Helper()
	annotations := map[string]any{federation.AnnotationEngine: engine, federation.AnnotationFormerEngine: nil}
	if former != "" {
		annotations[federation.AnnotationFormerEngine] = former
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	t.must(t.T, err)
	_, err = t.host.Resource(federation.ClusterResource).Namespace(kubeFedNamespace).Patch(t.Context(), "m1", types.MergePatchType, raw, metav1.PatchOptions{})
	t.must(t.T, err)
}
