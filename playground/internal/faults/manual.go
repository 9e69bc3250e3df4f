package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
)

// manualChange is a change that a person makes in a member without ACP. do returns a description of the change, or "" when there was
// no object to change.
type manualChange struct {
	name string
	do   func(ctx context.Context, d *drill) (string, error)
}

// manualChanges returns all manual changes. Their order is part of the random sequence of a seed.
func manualChanges() []manualChange {
	return append(
		[]manualChange{
			{"manual-delete", deleteObject},
			{"manual-open", openPolicy},
			{"manual-relabel", relabelObject},
			{"manual-delete-group", deleteAddressGroup},
		},
		foreignPolicyChanges()...)
}

// manualChangesMatching returns the manual changes whose name contains text.
func manualChangesMatching(text string) []manualChange {
	return slices.DeleteFunc(manualChanges(), func(h manualChange) bool { return !strings.Contains(h.name, text) })
}

// changeManually makes the next manual change. Each is made once before any is repeated; one that finds no object to change is
// skipped until the next round. It takes an ordinary step when none finds an object.
func (d *drill) changeManually(ctx context.Context) (string, error) {
	all := manualChangesMatching(d.onlyChanges)
	for range all {
		if len(d.changeOrder) == 0 {
			d.changeOrder = d.Perm(len(all))
		}
		h := all[d.changeOrder[0]]
		d.changeOrder = d.changeOrder[1:]
		d.currentStep = h.name
		did, err := h.do(ctx, d)
		if err != nil {
			return "", fmt.Errorf("%s: %w", h.name, err)
		}
		if did != "" {
			d.changeCounts[h.name]++
			return h.name + ": " + did, nil
		}
	}
	return d.choose(ctx, steps())
}

// checkEachChangeMade returns an error when Options.Changes selected a manual change that was never made.
func (d *drill) checkEachChangeMade() error {
	if d.onlyChanges == "" {
		return nil
	}
	var never []string
	for _, h := range manualChangesMatching(d.onlyChanges) {
		if d.changeCounts[h.name] == 0 {
			never = append(never, h.name)
		}
	}
	if len(never) > 0 {
		return fmt.Errorf("manual changes never made in %d steps: %s", d.number, strings.Join(never, ", "))
	}
	return nil
}

// memberClient returns a client of a member and a description of its user: an administrator, whom the guard may refuse, or a member
// of the break-glass group.
func (d *drill) memberClient(member string) (client dynamic.Interface, who string, err error) {
	config := d.Fleet.AdminConfig(member)
	who = "an administrator"
	if d.IntN(2) == 0 {
		who = "a break-glass user"
		config.Impersonate = rest.ImpersonationConfig{UserName: "drill", Groups: []string{"system:masters", "acp:break-glass"}}
	}
	client, err = dynamic.NewForConfig(config)
	return client, who, err
}

// pickObject returns a random object of a healthy member that a manual change may affect, or nil. It excludes objects of the resource
// that is always enforced, and objects that select more than one resource. The probe of the member ignores the pod of the object
// from now on until the member has converged.
func (d *drill) pickObject(ctx context.Context) (member string, u *unstructured.Unstructured, err error) {
	healthy := d.healthy()
	if len(healthy) == 0 {
		return "", nil, nil
	}
	member = pick(d.Rand, healthy)
	all, err := d.managedObjects(ctx, member)
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w", member, err)
	}
	changeable := map[string][]unstructured.Unstructured{}
	for _, u := range all {
		if d.podOf(member, &u) != "" && !strings.Contains(u.GetName(), alwaysEnforced) {
			changeable[u.GetKind()] = append(changeable[u.GetKind()], u)
		}
	}
	if len(changeable) == 0 {
		return "", nil, nil
	}
	of := changeable[pick(d.Rand, slices.Sorted(maps.Keys(changeable)))] // the kind first, because few units have Istio objects
	slices.SortFunc(of, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	u = &of[d.IntN(len(of))]
	if u.GetKind() != istioKind { // a change of an Istio object must not change what Cilium enforces
		pod := d.podOf(member, u)
		d.probes[member].exclude(func(a attempt) bool { return a.To == pod })
	}
	return member, u, nil
}

// podOf returns the server that an object of a member selects by a label value, or "" when it selects none or more than one.
func (d *drill) podOf(member string, u *unstructured.Unstructured) string {
	selector := "endpointSelector"
	if u.GetKind() == istioKind {
		selector = "selector"
	}
	labels, _, err := unstructured.NestedStringMap(u.Object, "spec", selector, "matchLabels")
	if err != nil {
		return ""
	}
	for _, s := range d.topology.servers[member] {
		for k, v := range labels {
			if s.labels[strings.TrimPrefix(k, "k8s:")] == v {
				return s.pod
			}
		}
	}
	return ""
}

// changeObject applies do to a random object, and returns a description of the change and of its result.
func (d *drill) changeObject(ctx context.Context, do func(client dynamic.ResourceInterface, u *unstructured.Unstructured) error) (string, error) {
	member, u, err := d.pickObject(ctx)
	if err != nil || u == nil {
		return "", err
	}
	client, who, err := d.memberClient(member)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(kinds, func(k objectKind) bool { return k.kind == u.GetKind() })
	return describeResult(
		fmt.Sprintf("%s in %s by %s", displayName(u.GetKind(), u), member, who),
		do(client.Resource(kinds[i].target).Namespace(u.GetNamespace()), u),
	)
}

// describeResult returns the description of a change with its result. A refusal by the guard is a correct result.
func describeResult(what string, err error) (string, error) {
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return what + ", not found or in conflict", nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return what + ", refused", nil
	case err != nil:
		return "", fmt.Errorf("change %s: %w", what, err)
	}
	return what, nil
}

// deleteObject deletes a policy of ACP.
func deleteObject(ctx context.Context, d *drill) (string, error) {
	return d.changeObject(ctx, func(client dynamic.ResourceInterface, u *unstructured.Unstructured) error {
		return client.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
	})
}

// deleteAddressGroup deletes a CiliumCIDRGroup, which contains the addresses of external workloads.
func deleteAddressGroup(ctx context.Context, d *drill) (string, error) {
	healthy := d.healthy()
	if len(healthy) == 0 {
		return "", nil
	}
	member := pick(d.Rand, healthy)
	all, err := d.managedObjects(ctx, member)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", member, err)
	}
	all = slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return u.GetKind() != "CiliumCIDRGroup" })
	if len(all) == 0 {
		return "", nil
	}
	slices.SortFunc(all, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	name := all[d.IntN(len(all))].GetName()
	client, who, err := d.memberClient(member)
	if err != nil {
		return "", err
	}
	d.probes[member].exclude(func(a attempt) bool { return a.source.labels == nil })
	return describeResult(fmt.Sprintf("%s in %s by %s", name, member, who), client.Resource(groups).Delete(ctx, name, metav1.DeleteOptions{}))
}

// openPolicy changes a policy of ACP so that it allows every source.
func openPolicy(ctx context.Context, d *drill) (string, error) {
	return d.changeObject(ctx, func(client dynamic.ResourceInterface, u *unstructured.Unstructured) error {
		spec, _, err := unstructured.NestedMap(u.Object, "spec")
		if err != nil {
			return err
		}
		if u.GetKind() == istioKind {
			spec["action"], spec["rules"] = "ALLOW", []any{map[string]any{}}
		} else {
			spec["ingress"] = []any{map[string]any{"fromEntities": []any{"all"}}}
		}
		u.Object["spec"] = spec
		_, err = client.Update(ctx, u, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
		return err
	})
}

// relabelObject removes the managed-by label of a policy of ACP and adds another label.
func relabelObject(ctx context.Context, d *drill) (string, error) {
	return d.changeObject(ctx, func(client dynamic.ResourceInterface, u *unstructured.Unstructured) error {
		labels := u.GetLabels()
		delete(labels, v1alpha1.LabelManagedBy)
		labels["somebody"] = "was-here"
		u.SetLabels(labels)
		_, err := client.Update(ctx, u, metav1.UpdateOptions{FieldManager: "kubectl-label"})
		return err
	})
}
