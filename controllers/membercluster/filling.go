package membercluster

import (
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Parts of a limit, in percent, from which on people are told.
const (
	identitiesFilling = 70
	identitiesFull    = 90
	mapFilling        = 50
)

// over tells whether used is more than a part of limit.
func over(used, limit int32, percent int64) bool { return int64(used)*100 > int64(limit)*percent }

// filling are the findings about what fills up.
func filling(s *v1alpha1.MemberClusterStatus) []v1alpha1.MemberFinding {
	var out []v1alpha1.MemberFinding
	if i := s.Identities; i != nil && over(i.Used, i.Limit, identitiesFilling) {
		f := v1alpha1.MemberFinding{Code: v1alpha1.FindingIdentitiesFilling, Severity: v1alpha1.FindingWarns,
			Message: fmt.Sprintf("more than %d %% of its identities are used", identitiesFilling)}
		if over(i.Used, i.Limit, identitiesFull) {
			f = v1alpha1.MemberFinding{Code: v1alpha1.FindingIdentitiesFull, Severity: v1alpha1.FindingFails,
				Message: fmt.Sprintf("more than %d %% of its identities are used; pods with labels that no other pod has will soon get no network", identitiesFull)}
		}
		if len(i.Labels) > 0 {
			f.Object = i.Labels[0].Key
			f.Message += fmt.Sprintf("; the label %s has the most values: take it out of Cilium's setting labels if no policy needs it", f.Object)
		}
		out = append(out, f)
	}
	if m := s.PolicyMap; m != nil && over(m.Highest, m.Limit, mapFilling) {
		out = append(out, v1alpha1.MemberFinding{Code: v1alpha1.FindingPolicyMapFilling, Severity: v1alpha1.FindingWarns, Object: m.Unit,
			Message: "the rules of one resource fill more than half of a workload's policy map, and from nine tenths on further grants are refused: " +
				"grant fewer subjects or ports"})
	}
	return out
}
