package hostcluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Input lists what a policy snapshot is made of from a cache of the Kinds, without copying: a snapshot changes nothing
// of its input, and the caller must not either.
func Input(ctx context.Context, cache client.Reader) (policy.Input, error) {
	var policies v1alpha1.AccessControlPolicyList
	var resources v1alpha1.ProtectedResourceList
	var resourceClasses v1alpha1.ResourceClassList
	var subjectClasses v1alpha1.SubjectClassList
	var workloads v1alpha1.ExternalWorkloadList
	for _, list := range []client.ObjectList{&policies, &resources, &resourceClasses, &subjectClasses, &workloads} {
		if err := cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return policy.Input{}, fmt.Errorf("list %T: %w", list, err)
		}
	}
	return policy.Input{
		Policies: pointers(policies.Items), Resources: pointers(resources.Items), ResourceClasses: pointers(resourceClasses.Items),
		SubjectClasses: pointers(subjectClasses.Items), Workloads: pointers(workloads.Items),
	}, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// Decides tells whether an update may alter a decision: statuses and metadata, which change often, do not. An object
// that was deleted and created again may come as one update; then generations begin anew and only the UID tells.
func Decides(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration()
}
