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

// beside is the name of every policy that these hands write.
const beside = "beside"

// victim is a resource that a member closes, beside whose policies a hand writes one of its own.
type victim struct {
	member string
	of     *v1alpha1.ProtectedResource
	// label and value select its pods, one of which is pod, in namespace.
	label, value, pod, namespace string
}

// handsBeside write policies that are none of ACP's, one form each: allows add up, and ACP has to report what they open, of
// whatever kind the policy is, and nothing else.
func handsBeside() []hand {
	return []hand{
		{"hand-opens-beside-networkpolicy", opensBeside(networkPolicies, networkPolicy)},
		{"hand-opens-beside-ciliumnetworkpolicy", opensBeside(namespacedPolicies, ciliumPolicy)},
		{"hand-opens-beside-clusterwide", opensBeside(kinds[0], ciliumPolicy)},
		{"hand-opens-beside-admin-tier", opensBeside(clusterPolicies, clusterPolicy("Admin", "Accept"))},
		{"hand-opens-beside-baseline-tier", opensBeside(clusterPolicies, clusterPolicy("Baseline", "Accept"))},
		{"hand-closes-beside-admin-tier", closesBeside},
		{"hand-opens-beside-ignored-tier", ignoredBeside},
		{"hand-opens-beside-in-mesh", opensBesideInMesh},
	}
}

func selecting(v victim) map[string]any {
	return map[string]any{"matchLabels": map[string]any{v.label: v.value}}
}

// networkPolicy lets everybody in. Cilium takes its ingress rules although it names only egress.
func networkPolicy(v victim) map[string]any {
	return map[string]any{"podSelector": selecting(v), "policyTypes": []any{"Egress"}, "ingress": []any{map[string]any{}}}
}

// networkPolicyForPods lets in every pod and nobody else, so that a refusal of every pod leaves nothing of it.
func networkPolicyForPods(v victim) map[string]any {
	return map[string]any{"podSelector": selecting(v), "ingress": []any{map[string]any{"from": []any{map[string]any{"namespaceSelector": map[string]any{}}}}}}
}

func ciliumPolicy(v victim) map[string]any {
	return map[string]any{"endpointSelector": selecting(v), "ingress": []any{map[string]any{"fromEntities": []any{"all"}}}}
}

// clusterPolicy decides about connections from every pod.
func clusterPolicy(tier, action string) func(victim) map[string]any {
	return func(v victim) map[string]any {
		return map[string]any{"tier": tier, "priority": int64(1),
			"subject": map[string]any{"pods": map[string]any{"podSelector": selecting(v), "namespaceSelector": map[string]any{}}},
			"ingress": []any{map[string]any{"name": "everybody", "action": action, "from": []any{map[string]any{"namespaces": map[string]any{}}}}}}
	}
}

// opensBeside writes a policy that opens a closed resource, waits until that is reported, and takes it away.
func opensBeside(kind carried, spec func(victim) map[string]any) func(context.Context, *drill) (string, error) {
	return func(ctx context.Context, d *drill) (string, error) {
		v, err := d.victim(ctx, false)
		if v == nil || err != nil {
			return "", err
		}
		if err := d.takes(ctx, v.member, kind, true); err != nil {
			return "", err
		}
		d.dogs[v.member].forgive(func(a attempt) bool { return a.To == v.pod })
		return d.opens(ctx, v, kind, spec(*v))
	}
}

// opens writes a policy, and requires that it is reported for as long as it is there.
func (d *drill) opens(ctx context.Context, v *victim, kind carried, spec map[string]any) (did string, err error) {
	remove, name, err := d.write(ctx, v, kind, spec)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	if err := d.reported(ctx, v, v1alpha1.MemberOverridden, name); err != nil {
		return "", fmt.Errorf("%s opens %s in %s, which is not reported: %w", name, v.of.Name, v.member, err)
	}
	return fmt.Sprintf("%s beside %s in %s, reported as overridden", name, v.of.Name, v.member), nil
}

// closesBeside writes a policy that opens a resource to every pod, and then one of the Admin tier that refuses every pod: together they open
// nothing, and the first one opens it again when the second is gone.
func closesBeside(ctx context.Context, d *drill) (did string, err error) {
	v, err := d.victim(ctx, false)
	if v == nil || err != nil {
		return "", err
	}
	if err := d.takes(ctx, v.member, clusterPolicies, true); err != nil {
		return "", err
	}
	removeOpening, opening, err := d.write(ctx, v, networkPolicies, networkPolicyForPods(*v))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, removeOpening(ctx)) }()
	if err := d.reported(ctx, v, v1alpha1.MemberOverridden, opening); err != nil {
		return "", fmt.Errorf("%s opens %s in %s, which is not reported: %w", opening, v.of.Name, v.member, err)
	}
	removeClosing, closing, err := d.write(ctx, v, clusterPolicies, clusterPolicy("Admin", "Deny")(*v))
	if err != nil {
		return "", err
	}
	if err := d.reported(ctx, v, v1alpha1.MemberRealized, ""); err != nil {
		return "", errors.Join(fmt.Errorf("%s refuses what %s lets in to %s in %s, which is reported as open: %w", closing, opening, v.of.Name, v.member, err), removeClosing(ctx))
	}
	if err := removeClosing(ctx); err != nil {
		return "", err
	}
	if err := d.reported(ctx, v, v1alpha1.MemberOverridden, opening); err != nil {
		return "", fmt.Errorf("%s opens %s in %s again, which is not reported: %w", opening, v.of.Name, v.member, err)
	}
	return fmt.Sprintf("%s over %s beside %s in %s, reported as enforced and then as overridden", closing, opening, v.of.Name, v.member), nil
}

// ignoredBeside writes a policy that opens a resource where agents take its kind, and then makes them ignore it.
func ignoredBeside(ctx context.Context, d *drill) (did string, err error) {
	v, err := d.victim(ctx, false)
	if v == nil || err != nil {
		return "", err
	}
	if err := d.takes(ctx, v.member, clusterPolicies, true); err != nil {
		return "", err
	}
	remove, name, err := d.write(ctx, v, clusterPolicies, clusterPolicy("Admin", "Accept")(*v))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, remove(ctx)) }()
	if err := d.reported(ctx, v, v1alpha1.MemberOverridden, name); err != nil {
		return "", fmt.Errorf("%s opens %s in %s, which is not reported: %w", name, v.of.Name, v.member, err)
	}
	if err := d.takes(ctx, v.member, clusterPolicies, false); err != nil {
		return "", err
	}
	if err := d.reported(ctx, v, v1alpha1.MemberRealized, ""); err != nil {
		return "", fmt.Errorf("agents in %s ignore %s, and yet: %w", v.member, name, err)
	}
	return fmt.Sprintf("%s beside %s in %s, reported as overridden until agents ignored it", name, v.of.Name, v.member), nil
}

// opensBesideInMesh writes a policy of Istio's: for the namespace of the resource or by its label, or for the whole mesh. Only
// Cilium decides here, so it must not change who gets in.
func opensBesideInMesh(ctx context.Context, d *drill) (string, error) {
	v, err := d.victim(ctx, true)
	if v == nil || err != nil {
		return "", err
	}
	spec := map[string]any{"rules": []any{map[string]any{}}} // ALLOW is the default
	if d.IntN(2) == 0 {
		spec["selector"] = selecting(*v)
	}
	if d.IntN(2) == 0 {
		v.namespace = "istio-system"
	}
	i := slices.IndexFunc(kinds, func(k carried) bool { return k.kind == istioKind })
	return d.opens(ctx, v, kinds[i], spec)
}

// victim returns a closed resource in a member: one of the mesh, or any. Without one, a resource is closed first. It returns nil while an
// outage lasts, and where the class of that resource is not placed in the member.
func (d *drill) victim(ctx context.Context, mesh bool) (*victim, error) {
	if d.outage != nil {
		return nil, nil
	}
	member := pick(d.Rand, fleet.Members())
	o, class := d.closedIn(member, mesh)
	if o == nil {
		i := slices.IndexFunc(d.targets(), func(t target) bool { return t.short == "fraud-check" }) // it is of the mesh
		t := d.targets()[i]
		if class, ok := d.meaning.ResourceClassOf(t.resource); !ok || !placed(class, member) {
			return nil, nil // a step before took its class out of the member
		}
		if err := d.put(ctx, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: t.short},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(t.resource), Mode: v1alpha1.ModeEnforce}}); err != nil {
			return nil, err
		}
		if err := d.settle(ctx, calm); err != nil {
			return nil, err
		}
		if o, class = d.closedIn(member, mesh); o == nil {
			return nil, fmt.Errorf("%s is in Enforce, and not closed in %s", t.short, member)
		}
	}
	resource := string(o.Spec.Resource)
	v := &victim{member: member, of: o, label: string(class.Spec.LabelKey), pod: d.serverOf(member, resource),
		value: strings.TrimPrefix(resource, strings.TrimSuffix(string(class.Spec.Pattern), "*"))}
	v.namespace, _, _ = strings.Cut(v.pod, "/")
	return v, nil
}

// closedIn is a resource that a member closes now, with its class; of the mesh, or of any.
func (d *drill) closedIn(member string, mesh bool) (*v1alpha1.ProtectedResource, *v1alpha1.ResourceClass) {
	now := d.now()
	var closed []*v1alpha1.ProtectedResource
	for _, o := range d.protected() {
		resource := string(o.Spec.Resource)
		class, ok := d.meaning.ResourceClassOf(resource)
		if !ok || !placed(class, member) || mesh && !slices.Contains(class.Spec.Enforcers, v1alpha1.EnforcerIstio) {
			continue
		}
		if d.serverOf(member, resource) != "" && d.meaning.EffectiveMode(resource, member, now) == v1alpha1.ModeEnforce {
			closed = append(closed, o)
		}
	}
	if len(closed) == 0 {
		return nil, nil
	}
	o := pick(d.Rand, closed)
	class, _ := d.meaning.ResourceClassOf(string(o.Spec.Resource))
	return o, class
}

// write writes a policy beside those of a resource, and returns how it is removed and what it is called. What is written never
// outlasts the step, also when the run is interrupted.
func (d *drill) write(ctx context.Context, v *victim, kind carried, spec map[string]any) (remove func(context.Context) error, name string, err error) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kind.target.GroupVersion().String(), "kind": kind.kind, "spec": spec}}
	u.SetName(beside)
	if kind.namespaced {
		u.SetNamespace(v.namespace)
	}
	client := d.members[v.member].Resource(kind.target).Namespace(u.GetNamespace())
	if _, err := client.Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return nil, "", fmt.Errorf("write a policy beside ACP's: %w", err)
	}
	return func(ctx context.Context) error {
		err := client.Delete(context.WithoutCancel(ctx), beside, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}, called(kind.kind, u), nil
}

// reported waits until a resource is reported in a state, with a text in the message, and requires that it stays so.
func (d *drill) reported(ctx context.Context, v *victim, state v1alpha1.MemberState, text string) error {
	look := func(ctx context.Context) error { return d.reportedNow(ctx, v, state, text) }
	if err := d.until(ctx, 2*calm, look); err != nil { // the adapter reads settings twice a minute
		return err
	}
	for range 10 {
		if err := look(ctx); err != nil {
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

// reportedNow is an error unless a resource is reported in a state in the member, with a text in the message.
func (d *drill) reportedNow(ctx context.Context, v *victim, state v1alpha1.MemberState, text string) error {
	u, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("protectedresources")).Get(ctx, v.of.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	all := map[string]*v1alpha1.ProtectedResource{}
	if err := take(all, u); err != nil {
		return err
	}
	clusters := all[v.of.Name].Status.States()
	for _, c := range clusters {
		if string(c.Name) == v.member && c.State == state && strings.Contains(c.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("%s is not reported as %s with %q in %s: %+v", v.of.Name, state, text, v.member, clusters)
}
