package membercluster

import (
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Thresholds of a limit, in percent, from which on a finding is reported.
const (
	identitiesFilling = 70
	identitiesFull    = 90
	mapFilling        = 50
)

// exceeds reports whether used is more than percent of limit.
func exceeds(used, limit int32, percent int64) bool { return int64(used)*100 > int64(limit)*percent }

// limitFindings returns the findings about limits that will be reached.
func limitFindings(s *v1alpha1.MemberClusterStatus) []v1alpha1.MemberFinding {
	var out []v1alpha1.MemberFinding
	if i := s.Identities; i != nil && exceeds(i.Used, i.Limit, identitiesFilling) {
		f := v1alpha1.MemberFinding{Code: v1alpha1.FindingIdentitiesFilling, Severity: v1alpha1.FindingWarns,
			Message: fmt.Sprintf("more than %d %% of its identities are used", identitiesFilling)}
		if exceeds(i.Used, i.Limit, identitiesFull) {
			f = v1alpha1.MemberFinding{Code: v1alpha1.FindingIdentitiesFull, Severity: v1alpha1.FindingFails,
				Message: fmt.Sprintf("more than %d %% of its identities are used; pods with labels that no other pod has will soon get no network", identitiesFull)}
		}
		if len(i.Labels) > 0 {
			f.Object = i.Labels[0].Key
			f.Message += fmt.Sprintf("; the label %s has the most values: take it out of Cilium's setting labels if no policy needs it", f.Object)
		}
		out = append(out, f)
	}
	if m := s.PolicyMap; m != nil && exceeds(m.Highest, m.Limit, mapFilling) {
		out = append(out, v1alpha1.MemberFinding{Code: v1alpha1.FindingPolicyMapFilling, Severity: v1alpha1.FindingWarns, Object: m.Unit,
			Message: "the rules of one resource fill more than half of a workload's policy map, and from nine tenths on further grants are refused: " +
				"grant fewer subjects or ports"})
	}
	return out
}
