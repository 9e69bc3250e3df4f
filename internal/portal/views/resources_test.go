package views

import (
	"fmt"
	"slices"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// TestManyMembersOfAResource checks that the members in the groups of a status are shown like those that it lists.
func TestManyMembersOfAResource(t *testing.T) {
	var all []v1alpha1.ClusterState
	for i := range 500 {
		all = append(all, v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprintf("m%03d", i)), State: v1alpha1.MemberRealized, DesiredRevision: "r1"})
	}
	all[400].State = v1alpha1.MemberPending
	counts := v1alpha1.CountMembers(all)
	p := &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeEnforce}}
	p.Status.Members, p.Status.Clusters, p.Status.Groups = &counts, all[400:401], v1alpha1.GroupMembers(slices.Concat(all[:400], all[401:]))
	got := Protection(p)
	if len(got.Clusters) != 500 || got.Members.Listed != 500 || got.Clusters[400].State != openapi.ClusterStateState("Pending") {
		t.Errorf("%d members are shown: %+v", len(got.Clusters), got.Members)
	}
}
