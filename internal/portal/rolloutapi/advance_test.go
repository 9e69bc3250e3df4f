package rolloutapi

import (
	"fmt"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestStagedMemberOfAGroup checks that a member that a status lists only in a group can be enforced first, and that others cannot.
func TestStagedMemberOfAGroup(t *testing.T) {
	var all []v1alpha1.ClusterState
	for i := range 500 {
		all = append(all, v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprintf("m%03d", i)), State: v1alpha1.MemberRealized, DesiredRevision: "r1"})
	}
	counts := v1alpha1.CountMembers(all)
	p := &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Mode: v1alpha1.ModeObserve}}
	p.Status.Members, p.Status.Clusters, p.Status.Groups = &counts, all[:1], v1alpha1.GroupMembers(all[1:])
	if _, _, err := staged(p, v1alpha1.ModeEnforce, []string{"m499"}); err != nil {
		t.Errorf("a member of a group: %v", err)
	}
	if _, _, err := staged(p, v1alpha1.ModeEnforce, []string{"other"}); err == nil {
		t.Error("a member without the resource is accepted")
	}
}
