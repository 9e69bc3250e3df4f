package webhook

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// need is a set of kinds of objects.
type need int

const (
	classes need = 1 << iota
	resources
	policies
	workloads
)

func needs(all ...need) need {
	var sum need
	for _, n := range all {
		sum |= n
	}
	return sum
}

// gather reads the objects that a rule needs. They belong to the cache and must not be modified.
func gather(ctx context.Context, from client.Reader, n need) (policy.Input, error) {
	var in policy.Input
	if n&classes != 0 {
		var r v1alpha1.ResourceClassList
		var s v1alpha1.SubjectClassList
		if err := list(ctx, from, &r); err != nil {
			return in, err
		}
		if err := list(ctx, from, &s); err != nil {
			return in, err
		}
		in.ResourceClasses, in.SubjectClasses = pointers(r.Items), pointers(s.Items)
	}
	if n&resources != 0 {
		var l v1alpha1.ProtectedResourceList
		if err := list(ctx, from, &l); err != nil {
			return in, err
		}
		in.Resources = pointers(l.Items)
	}
	if n&policies != 0 {
		var l v1alpha1.AccessControlPolicyList
		if err := list(ctx, from, &l); err != nil {
			return in, err
		}
		in.Policies = pointers(l.Items)
	}
	if n&workloads != 0 {
		var l v1alpha1.ExternalWorkloadList
		if err := list(ctx, from, &l); err != nil {
			return in, err
		}
		in.Workloads = pointers(l.Items)
	}
	return in, nil
}

func list(ctx context.Context, from client.Reader, into client.ObjectList) error {
	if err := from.List(ctx, into, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list objects for an admission review: %w", err)
	}
	return nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
