package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
)

// hands are steps of a human in a member, where nothing of ACP's should be touched.
func hands() []step {
	return []step{{"hand-deletes", 1, handDeletes}, {"hand-opens", 1, handOpens}, {"hand-relabels", 1, handRelabels}}
}

// found is an object of a healthy member that a hand may touch: not the vault's, nor what is about every resource.
func (d *drill) found(ctx context.Context) (member string, u *unstructured.Unstructured, err error) {
	healthy := d.healthy()
	if len(healthy) == 0 {
		return "", nil, nil
	}
	member = pick(d.Rand, healthy)
	all, err := d.managed(ctx, member)
	if err != nil {
		return "", nil, fmt.Errorf("look into %s: %w", member, err)
	}
	var touchable []unstructured.Unstructured
	for _, u := range all {
		if u.GetKind() == "CiliumClusterwideNetworkPolicy" && d.podOf(member, &u) != "" && !strings.Contains(u.GetName(), vault) {
			touchable = append(touchable, u)
		}
	}
	if len(touchable) == 0 {
		return "", nil, nil
	}
	slices.SortFunc(touchable, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	u = &touchable[d.IntN(len(touchable))]
	pod := d.podOf(member, u)
	d.dogs[member].forgive(func(a attempt) bool { return a.To == pod })
	return member, u, nil
}

// podOf is the server that an object of a member selects by one value; "": it selects none, or many.
func (d *drill) podOf(member string, u *unstructured.Unstructured) string {
	labels, _, err := unstructured.NestedStringMap(u.Object, "spec", "endpointSelector", "matchLabels")
	if err != nil {
		return ""
	}
	for _, s := range d.scene.servers[member] {
		for k, v := range labels {
			if s.labels[strings.TrimPrefix(k, "k8s:")] == v {
				return s.pod
			}
		}
	}
	return ""
}

// touch does something to the object that was found. A guard may refuse it, which is right, too.
func (d *drill) touch(ctx context.Context, do func(member string, u *unstructured.Unstructured) error) (string, error) {
	member, u, err := d.found(ctx)
	if err != nil || u == nil {
		return "", err
	}
	err = do(member, u)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return fmt.Sprintf("%s in %s, too late", u.GetName(), member), nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return fmt.Sprintf("%s in %s, refused", u.GetName(), member), nil
	case err != nil:
		return "", fmt.Errorf("touch %s in %s: %w", u.GetName(), member, err)
	}
	return u.GetName() + " in " + member, nil
}

func handDeletes(ctx context.Context, d *drill) (string, error) {
	return d.touch(ctx, func(member string, u *unstructured.Unstructured) error {
		return d.members[member].Resource(policies).Delete(ctx, u.GetName(), metav1.DeleteOptions{})
	})
}

// handOpens lets everybody in.
func handOpens(ctx context.Context, d *drill) (string, error) {
	return d.touch(ctx, func(member string, u *unstructured.Unstructured) error {
		if err := unstructured.SetNestedSlice(u.Object, []any{map[string]any{"fromEntities": []any{"all"}}}, "spec", "ingress"); err != nil {
			return err
		}
		_, err := d.members[member].Resource(policies).Update(ctx, u, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
		return err
	})
}

func handRelabels(ctx context.Context, d *drill) (string, error) {
	return d.touch(ctx, func(member string, u *unstructured.Unstructured) error {
		labels := u.GetLabels()
		delete(labels, v1alpha1.LabelManagedBy)
		labels["somebody"] = "was-here"
		u.SetLabels(labels)
		_, err := d.members[member].Resource(policies).Update(ctx, u, metav1.UpdateOptions{FieldManager: "kubectl-label"})
		return err
	})
}
