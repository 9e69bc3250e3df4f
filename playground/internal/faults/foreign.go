package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/fleet"
)

// foreignName is the name of every foreign policy that a manual change creates.
const foreignName = "foreign"

// enforcedResource is a resource in Enforce in a member, for whose pods a manual change creates a foreign policy.
type enforcedResource struct {
	member string
	object *v1alpha1.ProtectedResource
	// label and value select its pods. pod is one of them, as namespace/name, in namespace.
	label, value, pod, namespace string
}

// foreignPolicyChanges returns the manual changes that create a foreign policy, one per kind of policy. Allow rules of several
// policies add up, so ACP must report every foreign policy that allows traffic to a protected pod, and no other.
func foreignPolicyChanges() []manualChange {
	return []manualChange{
		{"foreign-networkpolicy-allows", allowWith(networkPolicies, allowAllNetworkPolicy)},
		{"foreign-ciliumnetworkpolicy-allows", allowWith(namespacedPolicies, allowAllCiliumPolicy)},
		{"foreign-clusterwide-allows", allowWith(kinds[0], allowAllCiliumPolicy)},
		{"foreign-admin-tier-allows", allowWith(clusterPolicies, clusterPolicy("Admin", "Accept"))},
		{"foreign-baseline-tier-allows", allowWith(clusterPolicies, clusterPolicy("Baseline", "Accept"))},
		{"foreign-admin-tier-denies", allowThenDeny},
		{"foreign-admin-tier-ignored", allowThenIgnore},
		{"foreign-authorizationpolicy-allows", allowInMesh},
	}
}

// podSelector returns a label selector of the pods of a resource.
func podSelector(v enforcedResource) map[string]any {
	return map[string]any{"matchLabels": map[string]any{v.label: v.value}}
}

// allowAllNetworkPolicy returns the spec of a NetworkPolicy that allows every source. Cilium applies the ingress rules although
// policyTypes contains only Egress.
func allowAllNetworkPolicy(v enforcedResource) map[string]any {
	return map[string]any{"podSelector": podSelector(v), "policyTypes": []any{"Egress"}, "ingress": []any{map[string]any{}}}
}

// allowPodsNetworkPolicy returns the spec of a NetworkPolicy that allows every pod and no other source, so that a rule that denies
// every pod cancels it completely.
func allowPodsNetworkPolicy(v enforcedResource) map[string]any {
	return map[string]any{"podSelector": podSelector(v), "ingress": []any{map[string]any{"from": []any{map[string]any{"namespaceSelector": map[string]any{}}}}}}
}

// allowAllCiliumPolicy returns the spec of a Cilium policy that allows every source.
func allowAllCiliumPolicy(v enforcedResource) map[string]any {
	return map[string]any{"endpointSelector": podSelector(v), "ingress": []any{map[string]any{"fromEntities": []any{"all"}}}}
}

// clusterPolicy returns the spec of a ClusterNetworkPolicy of a tier with one action for connections from every pod.
func clusterPolicy(tier, action string) func(enforcedResource) map[string]any {
	return func(v enforcedResource) map[string]any {
		return map[string]any{"tier": tier, "priority": int64(1),
			"subject": map[string]any{"pods": map[string]any{"podSelector": podSelector(v), "namespaceSelector": map[string]any{}}},
			"ingress": []any{map[string]any{"name": "everybody", "action": action, "from": []any{map[string]any{"namespaces": map[string]any{}}}}}}
	}
}

// allowWith returns a manual change that creates a foreign policy which allows traffic to an enforced resource, waits until ACP
// reports the resource as Overridden, and deletes the policy.
func allowWith(kind objectKind, spec func(enforcedResource) map[string]any) func(context.Context, *drill) (string, error) {
	return func(ctx context.Context, d *drill) (string, error) {
		v, err := d.pickEnforced(ctx, false)
		if v == nil || err != nil {
			return "", err
		}
		if err := d.serveKind(ctx, v.member, kind, true); err != nil {
			return "", err
		}
		d.probes[v.member].exclude(func(a attempt) bool { return a.To == v.pod })
		return d.checkOverridden(ctx, v, kind, spec(*v))
	}
}

// checkOverridden creates a foreign policy, requires that the resource is reported as Overridden while the policy exists, and
// deletes it.
func (d *drill) checkOverridden(ctx context.Context, v *enforcedResource, kind objectKind, spec map[string]any) (did string, err error) {
	remove, name, err := d.writeForeign(ctx, v, kind, spec)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	if err := d.waitForState(ctx, v, v1alpha1.MemberOverridden, name); err != nil {
		return "", fmt.Errorf("%s allows traffic to %s in %s, which is not reported: %w", name, v.object.Name, v.member, err)
	}
	return fmt.Sprintf("%s for %s in %s, reported as overridden", name, v.object.Name, v.member), nil
}

// allowThenDeny creates a foreign policy that allows every pod, and then one of the Admin tier that denies every pod. Together they
// allow nothing; when the second is deleted, the first takes effect again.
func allowThenDeny(ctx context.Context, d *drill) (did string, err error) {
	v, err := d.pickEnforced(ctx, false)
	if v == nil || err != nil {
		return "", err
	}
	if err := d.serveKind(ctx, v.member, clusterPolicies, true); err != nil {
		return "", err
	}
	removeOpening, opening, err := d.writeForeign(ctx, v, networkPolicies, allowPodsNetworkPolicy(*v))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeOpening(ctx)) }()
	if err := d.waitForState(ctx, v, v1alpha1.MemberOverridden, opening); err != nil {
		return "", fmt.Errorf("%s allows traffic to %s in %s, which is not reported: %w", opening, v.object.Name, v.member, err)
	}
	removeClosing, closing, err := d.writeForeign(ctx, v, clusterPolicies, clusterPolicy("Admin", "Deny")(*v))
	if err != nil {
		return "", err
	}
	if err := d.waitForState(ctx, v, v1alpha1.MemberRealized, ""); err != nil {
		return "", errors.Join(
			fmt.Errorf(
				"%s denies what %s allows to %s in %s, but the resource is not reported as enforced: %w",
				closing,
				opening,
				v.object.Name,
				v.member,
				err,
			),
			removeClosing(ctx),
		)
	}
	if err := removeClosing(ctx); err != nil {
		return "", err
	}
	if err := d.waitForState(ctx, v, v1alpha1.MemberOverridden, opening); err != nil {
		return "", fmt.Errorf("%s allows traffic to %s in %s again, which is not reported: %w", opening, v.object.Name, v.member, err)
	}
	return fmt.Sprintf("%s over %s for %s in %s, reported as enforced and then as overridden", closing, opening, v.object.Name, v.member), nil
}

// allowThenIgnore creates a ClusterNetworkPolicy that allows traffic where the agents apply this kind, and then changes the setting
// with which the agents ignore it.
func allowThenIgnore(ctx context.Context, d *drill) (did string, err error) {
	v, err := d.pickEnforced(ctx, false)
	if v == nil || err != nil {
		return "", err
	}
	if err := d.serveKind(ctx, v.member, clusterPolicies, true); err != nil {
		return "", err
	}
	remove, name, err := d.writeForeign(ctx, v, clusterPolicies, clusterPolicy("Admin", "Accept")(*v))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	if err := d.waitForState(ctx, v, v1alpha1.MemberOverridden, name); err != nil {
		return "", fmt.Errorf("%s allows traffic to %s in %s, which is not reported: %w", name, v.object.Name, v.member, err)
	}
	if err := d.serveKind(ctx, v.member, clusterPolicies, false); err != nil {
		return "", err
	}
	if err := d.waitForState(ctx, v, v1alpha1.MemberRealized, ""); err != nil {
		return "", fmt.Errorf("the agents in %s ignore %s, but the resource is not reported as enforced: %w", v.member, name, err)
	}
	return fmt.Sprintf("%s for %s in %s, reported as overridden until the agents ignored it", name, v.object.Name, v.member), nil
}

// allowInMesh creates a foreign Istio AuthorizationPolicy for the pods of a resource, for its namespace, or for the whole mesh. The
// members of the drill enforce with Cilium only, so the policy must not change any verdict.
func allowInMesh(ctx context.Context, d *drill) (string, error) {
	v, err := d.pickEnforced(ctx, true)
	if v == nil || err != nil {
		return "", err
	}
	spec := map[string]any{"rules": []any{map[string]any{}}} // ALLOW is the default
	if d.IntN(2) == 0 {
		spec["selector"] = podSelector(*v)
	}
	if d.IntN(2) == 0 {
		v.namespace = "istio-system"
	}
	i := slices.IndexFunc(kinds, func(k objectKind) bool { return k.kind == istioKind })
	return d.checkOverridden(ctx, v, kinds[i], spec)
}

// pickEnforced returns a random enforced resource of a member, only of classes that Istio enforces when mesh is true. When there is
// none, it sets the resource fraud-check to Enforce first. It returns nil during an outage, and when the class of fraud-check is not
// placed in the member.
func (d *drill) pickEnforced(ctx context.Context, mesh bool) (*enforcedResource, error) {
	if d.outage != nil {
		return nil, nil
	}
	member := pick(d.Rand, fleet.Members())
	o, class := d.pickEnforcedIn(member, mesh)
	if o == nil {
		i := slices.IndexFunc(d.targets(), func(t target) bool { return t.short == "fraud-check" }) // Istio enforces its class
		t := d.targets()[i]
		if class, ok := d.evaluator.ResourceClassOf(t.resource); !ok || !placed(class, member) {
			return nil, nil // an earlier step changed the placement of its class
		}
		if err := d.apply(ctx, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: t.short},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(t.resource), Mode: v1alpha1.ModeEnforce}}); err != nil {
			return nil, err
		}
		if err := d.waitForConvergence(ctx, healthyTimeout); err != nil {
			return nil, err
		}
		if o, class = d.pickEnforcedIn(member, mesh); o == nil {
			return nil, fmt.Errorf("%s is in Enforce, but not enforced in %s", t.short, member)
		}
	}
	resource := string(o.Spec.Resource)
	v := &enforcedResource{member: member, object: o, label: string(class.Spec.LabelKey), pod: d.serverOf(member, resource),
		value: strings.TrimPrefix(resource, strings.TrimSuffix(string(class.Spec.Pattern), "*"))}
	v.namespace, _, _ = strings.Cut(v.pod, "/")
	return v, nil
}

// pickEnforcedIn returns a random resource that is enforced in a member now, and its class, or nil when there is none. With mesh,
// only classes that Istio enforces count.
func (d *drill) pickEnforcedIn(member string, mesh bool) (*v1alpha1.ProtectedResource, *v1alpha1.ResourceClass) {
	now := d.now()
	var closed []*v1alpha1.ProtectedResource
	for _, o := range d.protected() {
		resource := string(o.Spec.Resource)
		class, ok := d.evaluator.ResourceClassOf(resource)
		if !ok || !placed(class, member) || mesh && !slices.Contains(class.Spec.Enforcers, v1alpha1.EnforcerIstio) {
			continue
		}
		if d.serverOf(member, resource) != "" && d.evaluator.EffectiveMode(resource, member, now) == v1alpha1.ModeEnforce {
			closed = append(closed, o)
		}
	}
	if len(closed) == 0 {
		return nil, nil
	}
	o := pick(d.Rand, closed)
	class, _ := d.evaluator.ResourceClassOf(string(o.Spec.Resource))
	return o, class
}

// writeForeign creates a foreign policy for a resource and returns a function that deletes it, and its display name. The function
// deletes the policy also when its context was cancelled, so that the policy does not outlast the step when the run is interrupted.
func (d *drill) writeForeign(
	ctx context.Context,
	v *enforcedResource,
	kind objectKind,
	spec map[string]any,
) (remove func(context.Context) error, name string, err error) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kind.target.GroupVersion().String(), "kind": kind.kind, "spec": spec}}
	u.SetName(foreignName)
	if kind.namespaced {
		u.SetNamespace(v.namespace)
	}
	client := d.members[v.member].Resource(kind.target).Namespace(u.GetNamespace())
	if _, err := client.Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return nil, "", fmt.Errorf("create a foreign policy: %w", err)
	}
	return func(ctx context.Context) error {
		err := client.Delete(context.WithoutCancel(ctx), foreignName, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}, displayName(kind.kind, u), nil
}

// waitForState waits until a resource is reported in a state with a message that contains text, and requires that the report stays
// the same for one second.
func (d *drill) waitForState(ctx context.Context, v *enforcedResource, state v1alpha1.MemberState, text string) error {
	report := func(ctx context.Context) error { return d.checkState(ctx, v, state, text) }
	if err := d.poll(ctx, 2*healthyTimeout, report); err != nil { // the adapter reads the agents' settings every 30 s
		return err
	}
	for range 10 {
		if err := report(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// checkState returns an error unless a resource is reported in a state in the member with a message that contains text.
func (d *drill) checkState(ctx context.Context, v *enforcedResource, state v1alpha1.MemberState, text string) error {
	u, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("protectedresources")).Get(ctx, v.object.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	all := map[string]*v1alpha1.ProtectedResource{}
	if err := decodeInto(all, u); err != nil {
		return err
	}
	clusters := all[v.object.Name].Status.States()
	for _, c := range clusters {
		if string(c.Name) == v.member && c.State == state && strings.Contains(c.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("%s is not reported as %s with %q in %s: %+v", v.object.Name, state, text, v.member, clusters)
}
