package hostcluster

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
)

// Input lists the objects that a policy snapshot is made from, out of a cache of the DecisionKinds. It does not copy
// them: a snapshot changes nothing in its input, and the caller must not either. It contains the members that have a
// MemberCluster.
func Input(ctx context.Context, cache client.Reader) (policy.Input, error) {
	var policies v1alpha1.AccessControlPolicyList
	var resources v1alpha1.ProtectedResourceList
	var resourceClasses v1alpha1.ResourceClassList
	var subjectClasses v1alpha1.SubjectClassList
	var workloads v1alpha1.ExternalWorkloadList
	var members v1alpha1.MemberClusterList
	for _, list := range []client.ObjectList{&policies, &resources, &resourceClasses, &subjectClasses, &workloads, &members} {
		if err := cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return policy.Input{}, fmt.Errorf("list %T: %w", list, err)
		}
	}
	return policy.NewInput(policy.Objects{
		Policies: pointers(policies.Items), Resources: pointers(resources.Items), ResourceClasses: pointers(resourceClasses.Items),
		SubjectClasses: pointers(subjectClasses.Items), Workloads: pointers(workloads.Items),
	}, registry.FleetOf(pointers(members.Items))), nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// AffectsDecisions reports whether an update may alter a decision. Changes of status and metadata, which are frequent,
// do not, except the members in which waves let Enforce or the rules of a class count, and the labels of a member, which placements select, what is reported
// of its dataplane, what it declares about its Istio, and whether it gets rules about requests. An object
// that was deleted and created again may arrive as one update; then its generation begins anew, and only the UID shows
// the change.
func AffectsDecisions(before, after client.Object) bool {
	if was, ok := before.(*v1alpha1.MemberCluster); ok {
		is, ok := after.(*v1alpha1.MemberCluster)
		return !ok || was.UID != is.UID || !maps.Equal(was.Status.Labels, is.Status.Labels) || (was.Status.State == "") != (is.Status.State == "") ||
			was.Status.Istio != is.Status.Istio || was.Status.IstioRootNamespace != is.Status.IstioRootNamespace ||
			policy.NoRequestsIn(was) != policy.NoRequestsIn(is) || !equality.Semantic.DeepEqual(was.Status.Dataplane, is.Status.Dataplane)
	}
	if was, ok := before.(*v1alpha1.ProtectedResource); ok {
		if is, ok := after.(*v1alpha1.ProtectedResource); ok && !was.Enforced().Equal(is.Enforced()) {
			return true
		}
	}
	if was, ok := before.(*v1alpha1.ResourceClass); ok {
		if is, ok := after.(*v1alpha1.ResourceClass); ok && !sameRollout(was, is) {
			return true
		}
	}
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration()
}

// sameRollout reports whether the same rules of a class count in the same members, as far as the statuses say.
func sameRollout(a, b *v1alpha1.ResourceClass) bool {
	if !a.RollsOut() || !b.RollsOut() {
		return a.RollsOut() == b.RollsOut()
	}
	return a.Begun().Equal(b.Begun()) && a.Status.Rollout.Settled.Equal(b.Status.Rollout.Settled)
}
