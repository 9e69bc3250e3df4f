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

const beside = "beside"

// handOpensBeside writes a policy that is none of ACP's and lets everybody in: allows add up, and ACP has to say so, of whatever
// kind the policy is.
func handOpensBeside(ctx context.Context, d *drill) (string, error) {
	return d.besides(ctx, false, func(label, value, namespace string) (carried, *unstructured.Unstructured) {
		labels := map[string]any{"matchLabels": map[string]any{label: value}}
		everybody := []any{map[string]any{"fromEntities": []any{"all"}}}
		theirs := func(apiVersion, kind, namespace string, spec map[string]any) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
			u.SetNamespace(namespace)
			u.SetName(beside)
			return u
		}
		switch d.IntN(4) {
		case 0:
			return networkPolicies, theirs("networking.k8s.io/v1", networkPolicies.kind, namespace, map[string]any{"podSelector": labels,
				"policyTypes": []any{"Egress"}, "ingress": []any{map[string]any{}}}) // Cilium takes its ingress rules all the same
		case 1:
			if d.servesClusterPolicies(ctx) == nil {
				return clusterPolicies, theirs("policy.networking.k8s.io/v1alpha2", clusterPolicies.kind, "", map[string]any{"tier": pick(d.Rand, []string{"Admin", "Baseline"}), "priority": int64(1),
					"subject": map[string]any{"pods": map[string]any{"podSelector": labels, "namespaceSelector": map[string]any{}}},
					"ingress": []any{map[string]any{"name": "everybody", "action": "Accept", "from": []any{map[string]any{"namespaces": map[string]any{}}}}}})
			}
		}
		return kinds[0], theirs("cilium.io/v2", kinds[0].kind, "", map[string]any{"endpointSelector": labels, "ingress": everybody})
	})
}

// servesClusterPolicies makes every member serve ClusterNetworkPolicies, which few clusters do.
func (d *drill) servesClusterPolicies(ctx context.Context) error {
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "clusternetworkpolicies.policy.networking.k8s.io", "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, a drill"}},
		"spec": map[string]any{"group": "policy.networking.k8s.io", "scope": "Cluster",
			"names": map[string]any{"plural": "clusternetworkpolicies", "singular": "clusternetworkpolicy", "kind": clusterPolicies.kind, "listKind": clusterPolicies.kind + "List"},
			"versions": []any{map[string]any{"name": "v1alpha2", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}}
	for _, m := range fleet.Members() {
		if _, err := d.members[m].Resource(crds).Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make %s serve ClusterNetworkPolicies: %w", m, err)
		}
		if err := d.until(ctx, calm, func(ctx context.Context) error {
			_, err := d.members[m].Resource(clusterPolicies.target).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// handOpensBesideInMesh writes one of Istio's: for the namespace of the resource or by its label, or for the whole mesh.
func handOpensBesideInMesh(ctx context.Context, d *drill) (string, error) {
	return d.besides(ctx, true, func(label, value, namespace string) (carried, *unstructured.Unstructured) {
		i := slices.IndexFunc(kinds, func(k carried) bool { return k.kind == istioKind })
		spec := map[string]any{"rules": []any{map[string]any{}}} // ALLOW is the default
		if d.IntN(2) == 0 {
			spec["selector"] = map[string]any{"matchLabels": map[string]any{label: value}}
		}
		if d.IntN(2) == 0 {
			namespace = "istio-system"
		}
		return kinds[i], &unstructured.Unstructured{Object: map[string]any{"apiVersion": "security.istio.io/v1", "kind": istioKind,
			"metadata": map[string]any{"name": beside, "namespace": namespace}, "spec": spec}}
	})
}

// besides writes what opens some closed resource of one dataplane in one member, waits until it is told, and takes it away. Only
// Cilium decides here, so a policy of Istio's must not change who gets in.
func (d *drill) besides(ctx context.Context, mesh bool, policy func(label, value, namespace string) (carried, *unstructured.Unstructured)) (string, error) {
	if d.outage != nil {
		return "", nil
	}
	member := pick(d.Rand, fleet.Members())
	o, class := d.closedIn(member, mesh)
	if o == nil {
		return "", nil
	}
	resource := string(o.Spec.Resource)
	pod := d.serverOf(member, resource)
	if !mesh {
		d.dogs[member].forgive(func(a attempt) bool { return a.To == pod })
	}
	namespace, _, _ := strings.Cut(pod, "/")
	kind, u := policy(string(class.Spec.LabelKey), strings.TrimPrefix(resource, strings.TrimSuffix(string(class.Spec.Pattern), "*")), namespace)
	client := d.members[member].Resource(kind.target).Namespace(u.GetNamespace())
	if _, err := client.Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("write a policy beside ACP's: %w", err)
	}
	told := d.until(ctx, calm, func(ctx context.Context) error { return d.toldOf(ctx, o.Name, member, v1alpha1.MemberOverridden) })
	if told == nil { // and stays told for as long as it is there
		told = d.staysTold(ctx, o.Name, member)
	}
	if told != nil {
		told = fmt.Errorf("%s opens %s in %s, which is not told: %w", called(kind.kind, u), o.Name, member, told)
	}
	return fmt.Sprintf("%s beside %s in %s, told as overridden", called(kind.kind, u), o.Name, member), errors.Join(told, client.Delete(ctx, beside, metav1.DeleteOptions{}))
}

// staysTold looks some times whether a resource that a policy of others opens is called anything but overridden.
func (d *drill) staysTold(ctx context.Context, name, member string) error {
	for range 10 {
		if err := d.toldOf(ctx, name, member, v1alpha1.MemberOverridden); err != nil {
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

// toldOf is an error unless a resource is said to be in a state in a member.
func (d *drill) toldOf(ctx context.Context, name, member string, state v1alpha1.MemberState) error {
	u, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("protectedresources")).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	all := map[string]*v1alpha1.ProtectedResource{}
	if err := take(all, u); err != nil {
		return err
	}
	for _, c := range all[name].Status.States() {
		if string(c.Name) == member && c.State == state {
			return nil
		}
	}
	return fmt.Errorf("%s is not said to be %s in %s: %+v", name, state, member, all[name].Status.States())
}
