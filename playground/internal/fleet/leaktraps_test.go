package fleet

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// TestLeakTraps reproduces each case in which KubeFed leaves objects in a member twice: once through ACP, after which nothing is
// left, and once bypassing ACP, after which the policy is left behind and ACP reports it.
func TestLeakTraps(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	f, s := newFleet(t, t.TempDir())
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	createDemoClasses(ctx, t, f)
	if err := s.Add(adapterSpec(t, f)); err != nil {
		t.Fatal(err)
	}
	if err := s.StartAndWait(ctx, "adapter"); err != nil {
		t.Fatal(err)
	}
	x := &trap{ctx: ctx, f: f, s: s}
	t.Run("a removal while a member is away", func(t *testing.T) { x.in(t).removalWhileAway() })
	t.Run("a finalizer removed by force", func(t *testing.T) { x.in(t).finalizerByForce() })
	t.Run("a member that is unregistered", func(t *testing.T) { x.in(t).unregistered() })
}

func adapterSpec(t *testing.T, f *Fleet) supervisor.Spec {
	t.Helper()
	binary := buildAdapter(t, f)
	return supervisor.Spec{Name: "adapter", Layer: LayerControlPlane, Path: binary,
		Args: []string{"--kubeconfig=" + f.Layout.Kubeconfig(Adapter), "--health-address=0", "--metrics-address=0", "--leader-elect=false"}}
}

// trap is a fleet with an adapter.
type trap struct {
	ctx context.Context
	t   *testing.T
	f   *Fleet
	s   *supervisor.Supervisor
}

func (x trap) in(t *testing.T) *trap {
	x.t = t
	return &x
}

// KubeFed does not wait for an unavailable member that the placement does not name.
func (x *trap) removalWhileAway() {
	kept, leaked := x.onboard("kept"), x.onboard("leaked")
	x.must(x.s.Kill("apiserver-m2"))
	x.until("KubeFed still finds m2 ready", func() error {
		u, err := x.f.Applier(Host).Client.Resource(kubeFedClusterResource).Namespace(KubeFedNamespace).Get(x.ctx, "m2", metav1.GetOptions{})
		if err == nil && isTrue(u, "Ready") {
			err = errors.New("it is")
		}
		return err
	})
	for _, u := range []unit{kept, leaked} {
		x.observe(u)
		x.state(u, "m2", v1alpha1.MemberUnreachable)
	}
	x.must(x.f.Applier(Host).Client.Resource(protectedResource).Delete(x.ctx, kept.resource, metav1.DeleteOptions{}))

	x.must(x.s.Kill("adapter")) // without ACP, the placement is narrowed and the object deleted
	federated := x.f.Applier(Host).Client.Resource(federatedResource)
	_, err := federated.Patch(x.ctx, leaked.object, types.MergePatchType, []byte(`{"spec":{"placement":{"clusters":[{"name":"m1"}]}}}`), metav1.PatchOptions{})
	x.must(err)
	x.must(federated.Delete(x.ctx, leaked.object, metav1.DeleteOptions{}))
	x.until("KubeFed holds the object", func() error { return x.noFederated(leaked) })
	x.must(x.s.StartAndWait(x.ctx, "adapter"))

	if err := x.noFederated(kept); err == nil {
		x.t.Error("the Federated object went before m2 was seen without its policy")
	}
	x.must(x.s.StartAndWait(x.ctx, "apiserver-m2"))
	for _, m := range Members() {
		x.gone(m, kept)
	}
	x.until("the ProtectedResource is still there", func() error { return x.noProtected(kept) })
	x.state(leaked, "m2", v1alpha1.MemberLeaked)
	x.present("m2", leaked)
}

// A Federated object without its finalizer is deleted at once, and its objects stay in the members.
func (x *trap) finalizerByForce() {
	kept, leaked := x.onboard("in-order"), x.onboard("by-force")
	x.must(x.s.Kill("adapter"))
	x.observe(kept)
	x.observe(leaked)
	federated := x.f.Applier(Host).Client.Resource(federatedResource)
	// This bypasses ACP.
	_, err := federated.Patch(x.ctx, leaked.object, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	x.must(err)
	x.must(x.s.Kill("kubefed")) // KubeFed would restore its finalizer
	_, err = federated.Patch(x.ctx, leaked.object, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	x.must(err)
	x.must(federated.Delete(x.ctx, leaked.object, metav1.DeleteOptions{}))
	x.must(x.noFederated(leaked))
	x.must(x.s.StartAndWait(x.ctx, "kubefed", "adapter"))
	for _, m := range Members() {
		x.gone(m, kept)
		x.state(leaked, m, v1alpha1.MemberLeaked)
		x.present(m, leaked)
	}
}

// The deletion of a KubeFedCluster deletes nothing in the member. A member that leaves through ACP first is empty afterwards.
func (x *trap) unregistered() {
	u := x.onboard("stays")
	clusters := x.f.Applier(Host).Client.Resource(kubeFedClusterResource).Namespace(KubeFedNamespace)
	_, err := clusters.Patch(x.ctx, "m2", types.MergePatchType, []byte(`{"metadata":{"annotations":{"acp.io/leaving":"true"}}}`), metav1.PatchOptions{})
	x.must(err)
	x.gone("m2", u)
	x.present("m1", u)
	x.must(clusters.Delete(x.ctx, "m2", metav1.DeleteOptions{}))
	x.gone("m2", u)
	x.register()
	x.present("m2", u)

	x.must(clusters.Delete(x.ctx, "m2", metav1.DeleteOptions{})) // this bypasses ACP
	x.until("m2 is still registered", func() error { return x.noMember("m2") })
	x.observe(u)
	x.state(u, "m2", v1alpha1.MemberUnreachable)
	x.present("m2", u)
	if err := x.noFederated(u); err == nil {
		x.t.Error("the Federated object went though m2 was not seen without its policy")
	}
	x.must(x.f.Applier(Host).Client.Resource(federatedResource).Delete(x.ctx, u.object, metav1.DeleteOptions{}))
	x.until("KubeFed holds the object", func() error { return x.noFederated(u) })
	x.register()
	x.state(u, "m2", v1alpha1.MemberLeaked)
	x.present("m2", u)
}

// register registers m2 again.
func (x *trap) register() {
	x.t.Helper()
	objects, err := x.f.registration()
	x.must(err)
	x.must(x.f.Applier(Host).Apply(x.ctx, objects))
}

// unit is a ProtectedResource with the Federated object that propagates it.
type unit struct{ resource, object string }

// onboard sets a resource to Audit and waits until every member has its policy.
func (x *trap) onboard(name string) unit {
	x.t.Helper()
	resource := "trnv1:rsc:trip-com:redis:clusters:" + name
	_, err := x.f.Applier(Host).Client.Resource(protectedResource).Create(x.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ProtectedResource", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"resource": resource, "mode": "Audit"},
	}}, metav1.CreateOptions{})
	x.must(err)
	u := unit{resource: name}
	x.until("nothing carries "+name, func() error {
		list, err := x.f.Applier(Host).Client.Resource(federatedResource).List(x.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, o := range list.Items {
			if o.GetAnnotations()["acp.io/resource"] == resource {
				u.object = o.GetName()
				return nil
			}
		}
		return errors.New("no Federated object")
	})
	for _, m := range Members() {
		x.present(m, u)
		x.state(u, m, v1alpha1.MemberRealized)
	}
	return u
}

// observe sets the resource to Observe, so that no object is wanted.
func (x *trap) observe(u unit) {
	x.t.Helper()
	_, err := x.f.Applier(Host).
		Client.Resource(protectedResource).
		Patch(x.ctx, u.resource, types.MergePatchType, []byte(`{"spec":{"mode":"Observe"}}`), metav1.PatchOptions{})
	x.must(err)
}

func (x *trap) present(member string, u unit) {
	x.t.Helper()
	x.until(fmt.Sprintf("%s has no %s", member, u.object), func() error {
		_, err := x.f.Applier(member).Client.Resource(ccnpResource).Get(x.ctx, u.object, metav1.GetOptions{})
		return err
	})
}

func (x *trap) gone(member string, u unit) {
	x.t.Helper()
	x.until(fmt.Sprintf("%s still has %s", member, u.object), func() error {
		_, err := x.f.Applier(member).Client.Resource(ccnpResource).Get(x.ctx, u.object, metav1.GetOptions{})
		return absent(err)
	})
}

// state waits until ACP says so of a member.
func (x *trap) state(u unit, member string, want v1alpha1.MemberState) {
	x.t.Helper()
	x.until(fmt.Sprintf("%s is not said to be %s in %s", u.resource, want, member), func() error {
		o, err := x.f.Applier(Host).Client.Resource(protectedResource).Get(x.ctx, u.resource, metav1.GetOptions{})
		if err != nil {
			return err
		}
		clusters, _, err := unstructured.NestedSlice(o.Object, "status", "clusters")
		if err != nil {
			return err
		}
		for _, c := range clusters {
			if entry, ok := c.(map[string]any); ok && entry["name"] == member && entry["state"] == string(want) {
				return nil
			}
		}
		return fmt.Errorf("it is %v", clusters)
	})
}

func (x *trap) noFederated(u unit) error {
	_, err := x.f.Applier(Host).Client.Resource(federatedResource).Get(x.ctx, u.object, metav1.GetOptions{})
	return absent(err)
}

func (x *trap) noProtected(u unit) error {
	_, err := x.f.Applier(Host).Client.Resource(protectedResource).Get(x.ctx, u.resource, metav1.GetOptions{})
	return absent(err)
}

func (x *trap) noMember(name string) error {
	_, err := x.f.Applier(Host).Client.Resource(kubeFedClusterResource).Namespace(KubeFedNamespace).Get(x.ctx, name, metav1.GetOptions{})
	return absent(err)
}

// absent returns nil when the read failed with NotFound.
func absent(err error) error {
	switch {
	case err == nil:
		return errors.New("it is there")
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

func (x *trap) until(not string, f func() error) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.ctx, 90*time.Second)
	defer cancel()
	if err := poll(ctx, not, func(context.Context) error { return f() }); err != nil {
		x.t.Fatal(err)
	}
}

func (x *trap) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}
