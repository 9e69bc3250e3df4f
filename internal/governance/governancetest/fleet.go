// Package governancetest makes large fleets for benchmarks.
package governancetest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/policy"
)

// Fleet returns a fleet as the cache of the host has it, with two findings about each member. A unit is Realized in a member, or in the state
// that the function returns, with the revision before.
func Fleet(resources, members int, state func(resource, member int) v1alpha1.MemberState) (policy.Input, []*v1alpha1.MemberCluster) {
	in := policy.Input{ResourceClasses: []*v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: "trnv1:rsc:o:redis:clusters:*", LabelKey: "o/redis", Actions: []v1alpha1.ClassAction{{Name: "redis:connect",
			Ports: []v1alpha1.Port{{Port: 6379}}}}}}}}
	names := make([]v1alpha1.ClusterName, members)
	reports := make([]*v1alpha1.MemberCluster, members)
	for m := range names {
		names[m] = v1alpha1.ClusterName(fmt.Sprintf("member-%03d", m))
		reports[m] = &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: string(names[m])}, Status: v1alpha1.MemberClusterStatus{
			State: v1alpha1.MemberClusterReady,
			Guard: v1alpha1.GuardMissing,
			Findings: []v1alpha1.MemberFinding{
				{Code: "GuardMissing", Severity: v1alpha1.FindingWarns, Message: "the guard is missing"},
				{Code: v1alpha1.FindingIdentitiesFilling, Severity: v1alpha1.FindingWarns, Message: "many identities are used"},
			},
		}}
	}
	since := metav1.NewMicroTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	share := hostcluster.ShareMemberLists()
	for r := range resources {
		name := fmt.Sprint("trnv1:rsc:o:redis:clusters:", r)
		states := make([]v1alpha1.ClusterState, members)
		for m := range states {
			c := &states[m]
			*c = v1alpha1.ClusterState{Name: names[m], State: v1alpha1.MemberRealized, Mode: v1alpha1.ModeEnforce, Since: &since, DesiredRevision: "b",
				ObservedRevision: "b"}
			if s := state(r, m); s != "" {
				c.State, c.ObservedRevision = s, "a"
			}
		}
		o := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: policy.UnitID(name)},
			Spec:   v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(name), Mode: v1alpha1.ModeEnforce},
			Status: v1alpha1.ProtectedResourceStatus{Groups: v1alpha1.GroupMembers(states)}}
		if _, err := share(o); err != nil {
			panic(err) // it never fails
		}
		in.Resources = append(in.Resources, o)
	}
	return in, reports
}
