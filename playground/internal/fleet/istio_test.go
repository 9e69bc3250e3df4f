package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
)

var (
	authorizationResource  = schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"}
	fedAuthorizations      = schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedauthorizationpolicies"}
	fedNamespaces          = schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatednamespaces"}
	namespaceResource      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	policyResource         = v1alpha1.GroupVersion.WithResource("accesscontrolpolicies")
	istioRoot              = "istio-system"
	meshed                 = "trnv1:rsc:trip-com:grpc:services:meshed"
	enforce, auditing, off = "Enforce", "Audit", "Observe"
)

// both contains the principals of the two initial grants.
var both = []string{"*/sa/app-888", "*/sa/app-889"}

// meshedFleet returns a fleet with an enforced resource whose class names both enforcers and that is realized in every member.
func meshedFleet(t *testing.T) *mesh {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	f, s := newFleet(t, t.TempDir())
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	createDemoClasses(ctx, t, f)
	if err := errors.Join(s.Add(adapterSpec(t, f)), s.StartAndWait(ctx, "adapter")); err != nil {
		t.Fatal(err)
	}
	x := &mesh{trap: trap{ctx: ctx, t: t, f: f, s: s}}
	x.create(policyResource, "AccessControlPolicy", "meshed", map[string]any{"statements": []any{x.grant("one", "888"), x.grant("two", "889")}})
	x.create(protectedResource, "ProtectedResource", "meshed", map[string]any{"resource": meshed, "mode": enforce})
	x.unit = x.find()
	x.everywhere("the grants", "ALLOW", both...)
	for _, m := range Members() {
		x.present(m, x.unit) // Cilium's
		x.state(x.unit, m, v1alpha1.MemberRealized)
	}
	return x
}

// TestQuarantineOfAMemberWithoutIstiosKind checks that a member without the kind of Istio's policies is quarantined, because it
// would stop the real KubeFed for that kind in every member. The other member still receives changes, and the quarantine ends when
// the member serves the kind again.
func TestQuarantineOfAMemberWithoutIstiosKind(t *testing.T) {
	x := meshedFleet(t)
	x.must(x.f.Applier("m2").Client.Resource(crdResource).Delete(x.ctx, "authorizationpolicies.security.istio.io", metav1.DeleteOptions{}))
	x.state(x.unit, "m2", v1alpha1.MemberQuarantined)
	x.statements(x.grant("one", "888"))
	x.policy("m1", "the grant", "ALLOW", both[0])
	x.must(x.f.setUpMember(x.ctx, "m2"))
	x.policy("m2", "the grant", "ALLOW", both[0])
	x.state(x.unit, "m2", v1alpha1.MemberRealized)
	x.statements(x.grant("two", "889"))
	x.everywhere("the other grant", "ALLOW", both[1])
}

// TestIstio checks that a resource whose class names both enforcers has a policy of each in every member, through the real KubeFed.
// No Istio runs here, so the test compares the policies only.
func TestIstio(t *testing.T) {
	x := meshedFleet(t)
	ctx, f := x.ctx, x.f

	t.Run("KubeFedLeavesNamespacesAlone", func(t *testing.T) {
		for _, m := range Members() {
			ns, err := f.Applier(m).Client.Resource(namespaceResource).Get(ctx, istioRoot, metav1.GetOptions{})
			if err != nil || ns.GetLabels()["kubefed.io/managed"] != "" {
				t.Errorf("%s: %v, labels %v", m, err, ns.GetLabels())
			}
		}
	})

	t.Run("ARevocationLeavesItClosed", func(t *testing.T) {
		x := x.in(t)
		x.statements()
		x.everywhere("nobody", "ALLOW")
		x.statements(x.grant("one", "888"))
		x.everywhere("the grant", "ALLOW", both[0])
	})

	t.Run("AHandIsUndone", func(t *testing.T) {
		x := x.in(t)
		client := f.Applier("m1").Client.Resource(authorizationResource).Namespace(istioRoot)
		// KubeFed repairs the change about ten seconds after its last check, which may be now, so the change is repeated.
		x.until("the drift is not reported", func() error {
			if _, err := client.Patch(
				ctx,
				x.unit.object,
				types.MergePatchType,
				[]byte(`{"spec":{"action":"AUDIT"}}`),
				metav1.PatchOptions{FieldManager: "somebody"},
			); err != nil {
				return err
			}
			return x.told(x.unit, "m1", v1alpha1.MemberDrifted, "AuthorizationPolicy "+x.unit.object+" was changed in the member by somebody")
		})
		x.everywhere("the grant", "ALLOW", both[0])
		x.state(x.unit, "m1", v1alpha1.MemberRealized)
	})

	t.Run("APolicyOfOthersIsTold", func(t *testing.T) {
		x := x.in(t)
		const beside = "beside"
		client := f.Applier("m1").Client.Resource(authorizationResource).Namespace("default")
		write := func(action string) {
			t.Helper()
			_, err := client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "security.istio.io/v1",
				"kind":       "AuthorizationPolicy",
				"metadata": map[string]any{
					"name": beside,
				},
				"spec": map[string]any{"action": action, "rules": []any{map[string]any{}}},
			}}, metav1.CreateOptions{})
			x.must(err)
		}
		write("ALLOW")
		x.until("it is not reported", func() error {
			return x.told(x.unit, "m1", v1alpha1.MemberOverridden, "AuthorizationPolicy default/beside is not of ACP and lets more in")
		})
		x.state(x.unit, "m2", v1alpha1.MemberRealized)
		x.must(client.Delete(ctx, beside, metav1.DeleteOptions{}))
		x.state(x.unit, "m1", v1alpha1.MemberRealized)
	})

	t.Run("ItsFederatedNamespaceStays", func(t *testing.T) {
		x := x.in(t)
		roots := f.Applier(Host).Client.Resource(fedNamespaces).Namespace(istioRoot)
		x.must(roots.Delete(ctx, istioRoot, metav1.DeleteOptions{}))
		root, err := roots.Get(ctx, istioRoot, metav1.GetOptions{})
		x.must(err)
		if root.GetDeletionTimestamp() == nil || root.GetAnnotations()["kubefed.io/orphan"] != "true" {
			t.Errorf("%v", root.Object)
		}
		// KubeFed still propagates changes.
		x.statements(x.grant("two", "889"))
		x.everywhere("the other grant", "ALLOW", both[1])
		// Without its finalizer the object is deleted, KubeFed removes the policies from the members, and the adapter creates the
		// object again.
		_, err = roots.Patch(ctx, istioRoot, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		x.must(err)
		x.until("there is no other FederatedNamespace", func() error {
			again, err := roots.Get(ctx, istioRoot, metav1.GetOptions{})
			if err == nil && again.GetUID() == root.GetUID() {
				err = errors.New("it is the one before")
			}
			return err
		})
		x.everywhere("the other grant", "ALLOW", both[1])
	})

	t.Run("AMemberThatDeclaresNothingIsRefused", func(t *testing.T) {
		x := x.in(t)
		clusters := f.Applier(Host).Client.Resource(kubeFedClusterResource).Namespace(KubeFedNamespace)
		_, err := clusters.Patch(ctx, "m2", types.MergePatchType, []byte(`{"metadata":{"annotations":{"acp.io/istio":null}}}`), metav1.PatchOptions{})
		x.must(err)
		x.policy("m2", "nobody", "ALLOW")
		x.policy("m1", "the other grant", "ALLOW", both[1])
		x.state(x.unit, "m2", v1alpha1.MemberPending)
		x.until("the refusal is not reported", func() error {
			o, err := f.Applier(Host).Client.Resource(policyResource).Get(ctx, "meshed", metav1.GetOptions{})
			if err != nil {
				return err
			}
			refused, _, err := unstructured.NestedSlice(o.Object, "status", "refused")
			if err == nil && !strings.Contains(fmt.Sprint(refused), "in m2: the member declares no Istio that enforces") {
				err = fmt.Errorf("refused: %v", refused)
			}
			return err
		})
		_, err = clusters.Patch(
			ctx,
			"m2",
			types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"acp.io/istio":%q}}}`, declaredIstio),
			metav1.PatchOptions{},
		)
		x.must(err)
		x.everywhere("the other grant", "ALLOW", both[1])
		x.state(x.unit, "m2", v1alpha1.MemberRealized)
	})

	t.Run("AuditDecidesNothing", func(t *testing.T) {
		x := x.in(t)
		x.mode(auditing)
		x.everywhere("the other grant", "AUDIT", both[1])
	})

	t.Run("ObserveTakesItAway", func(t *testing.T) {
		x := x.in(t)
		x.mode(off)
		for _, m := range Members() {
			x.gone(m, x.unit)
			x.until(m+" still has Istio's policy", func() error {
				_, err := f.Applier(m).Client.Resource(authorizationResource).Namespace(istioRoot).Get(ctx, x.unit.object, metav1.GetOptions{})
				return absent(err)
			})
		}
		x.until("the Federated policy is still there", func() error {
			_, err := f.Applier(Host).Client.Resource(fedAuthorizations).Namespace(istioRoot).Get(ctx, x.unit.object, metav1.GetOptions{})
			return absent(err)
		})
	})
}

// mesh is a fleet with a resource that Istio enforces as well.
type mesh struct {
	trap
	unit unit
}

func (x *mesh) in(t *testing.T) *mesh {
	out := *x
	out.t = t
	return &out
}

func (x *mesh) grant(sid, app string) map[string]any {
	return map[string]any{"sid": sid, "effect": "Allow", "subjects": []any{"trnv1:rsc:trip-com:iam:sa:app/" + app},
		"actions": []any{"grpc:call"}, "resources": []any{meshed}}
}

func (x *mesh) statements(all ...map[string]any) {
	x.t.Helper()
	if all == nil {
		all = []map[string]any{}
	}
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"statements": all}})
	x.must(err)
	x.patch(policyResource, "meshed", string(text))
}

func (x *mesh) create(gvr schema.GroupVersionResource, kind, name string, spec map[string]any) {
	x.t.Helper()
	_, err := x.f.Applier(Host).Client.Resource(gvr).Create(x.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}}, metav1.CreateOptions{})
	x.must(err)
}

func (x *mesh) patch(gvr schema.GroupVersionResource, name, patch string) {
	x.t.Helper()
	_, err := x.f.Applier(Host).Client.Resource(gvr).Patch(x.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	x.must(err)
}

func (x *mesh) mode(m string) {
	x.patch(protectedResource, "meshed", fmt.Sprintf(`{"spec":{"mode":%q}}`, m))
}

// find waits for Istio's Federated policy.
func (x *mesh) find() unit {
	x.t.Helper()
	u := unit{resource: "meshed"}
	x.until("nothing carries Istio's policy", func() error {
		list, err := x.f.Applier(Host).Client.Resource(fedAuthorizations).Namespace(istioRoot).List(x.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, o := range list.Items {
			if o.GetAnnotations()["acp.io/resource"] == meshed {
				u.object = o.GetName()
				return nil
			}
		}
		return errors.New("no Federated object")
	})
	return u
}

// told returns nil when ACP reports that of a member.
func (x *mesh) told(u unit, member string, state v1alpha1.MemberState, message string) error {
	o, err := x.f.Applier(Host).Client.Resource(protectedResource).Get(x.ctx, u.resource, metav1.GetOptions{})
	if err != nil {
		return err
	}
	clusters, _, err := unstructured.NestedSlice(o.Object, "status", "clusters")
	if err != nil {
		return err
	}
	for _, c := range clusters {
		entry, _ := c.(map[string]any)
		if said, _ := entry["message"].(string); entry["name"] == member && entry["state"] == string(state) && strings.Contains(said, message) {
			return nil
		}
	}
	return fmt.Errorf("it is %v", clusters)
}

func (x *mesh) everywhere(of, action string, principals ...string) {
	x.t.Helper()
	for _, m := range Members() {
		x.policy(m, of, action, principals...)
	}
}

// policy waits until the policy of a member allows exactly these principals.
func (x *mesh) policy(member, of, action string, principals ...string) {
	x.t.Helper()
	x.until(fmt.Sprintf("Istio's policy in %s is not that of %s", member, of), func() error {
		o, err := x.f.Applier(member).Client.Resource(authorizationResource).Namespace(istioRoot).Get(x.ctx, x.unit.object, metav1.GetOptions{})
		if err != nil {
			return err
		}
		got, _, err := unstructured.NestedString(o.Object, "spec", "action")
		if err != nil {
			return err
		}
		rules, _, err := unstructured.NestedSlice(o.Object, "spec", "rules")
		if err != nil {
			return err
		}
		var names []string
		for _, r := range rules {
			from, _, err := unstructured.NestedSlice(r.(map[string]any), "from")
			if err != nil || len(from) == 0 {
				return fmt.Errorf("a rule for everyone: %v, %w", r, err)
			}
			for _, s := range from {
				list, _, err := unstructured.NestedStringSlice(s.(map[string]any), "source", "principals")
				if err != nil {
					return err
				}
				refused, _, err := unstructured.NestedStringSlice(s.(map[string]any), "source", "notPrincipals")
				if err != nil {
					return err
				}
				if slices.Equal(refused, []string{"*"}) {
					continue // the rule that matches nobody
				}
				names = append(names, list...)
			}
		}
		slices.Sort(names)
		if got != action || !slices.Equal(names, principals) {
			return fmt.Errorf("action %s, principals %v", got, names)
		}
		return nil
	})
}
