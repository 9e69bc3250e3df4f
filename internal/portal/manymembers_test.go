package portal

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// A ticket and a resource show every member, wherever the host cluster has room to list them, and count those that it has not.
func TestManyMembersAreShown(t *testing.T) {
	var all []v1alpha1.ClusterState
	for i := range 500 {
		all = append(all, v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprintf("m%03d", i)), State: v1alpha1.MemberRealized, DesiredRevision: "r1"})
	}
	all[400].State = v1alpha1.MemberPending
	counts := v1alpha1.CountMembers(all)
	unit := v1alpha1.PolicyUnit{Resource: portaltest.BobsCluster, Revision: "r1", Members: &counts, Clusters: slices.Clone(all[400:401])}
	rest := v1alpha1.GroupMembers(slices.Concat(all[:400], all[401:]))
	for name, tc := range map[string]struct {
		reason   string
		groups   []v1alpha1.MemberGroup // of the policy
		revision string                 // of the resource
		listed   int
		waiting  []string
	}{
		"Groups":   {"the policy lists all", rest, "", 500, []string{"m400"}},
		"Resource": {"the resource lists all", nil, "r1", 500, []string{"m400"}},
		"Older":    {"the resource is about another revision", nil, "r0", 1, []string{"m400"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newSite(t)
			ticket := &approval.Ticket{Number: 7, Version: 3, Kind: approval.KindGrant, Requester: "alice",
				Items: []approval.Item{{State: approval.StateApplying, ApplicationName: portaltest.App888, ResourceName: portaltest.BobsCluster, SID: "t-7-1"}}}
			written := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(portaltest.BobsCluster)}}
			u := unit
			u.Groups = tc.groups
			written.Status.Units = []v1alpha1.PolicyUnit{u}
			x.host.input.Policies = append(x.host.input.Policies, written)
			p := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "bobs"}, Spec: v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeEnforce}}
			p.Status.Revision, p.Status.Members, p.Status.Clusters, p.Status.Groups = tc.revision, &counts, all[400:401], rest
			x.host.input.Resources = []*v1alpha1.ProtectedResource{p}
			it := newAPI(x.Server, x.config).itemView(x.Catalog(), approval.Actor{ID: "alice"}, ticket, 0)
			if it.Members == nil || it.Members.Total != 500 || it.Members.Waiting != 1 || it.Members.Listed != tc.listed || (*it.Members.States)["Realized"] != 499 || len(it.Clusters) != tc.listed {
				t.Errorf("%s: %+v, %d members", tc.reason, it.Members, len(it.Clusters))
			}
			if it.WaitingFor == nil || !slices.Equal(*it.WaitingFor, tc.waiting) {
				t.Errorf("%s: it waits for %v", tc.reason, it.WaitingFor)
			}
			protection := protectionOf(p)
			if len(protection.Clusters) != 500 || protection.Members.Listed != 500 || protection.Clusters[400].State != openapi.ClusterStateState("Pending") {
				t.Errorf("of the resource, %d members are shown: %+v", len(protection.Clusters), protection.Members)
			}
			if _, _, err := staged(p, v1alpha1.ModeEnforce, []string{"m499"}); err != nil {
				t.Errorf("a member of a group can be enforced first: %v", err)
			}
		})
	}
}
