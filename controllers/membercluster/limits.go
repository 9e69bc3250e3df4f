package membercluster

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
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
		code, severity, why, object := v1alpha1.FindingIdentitiesFilling, v1alpha1.FindingWarns, message.MemberIdentitiesFilling(identitiesFilling), ""
		if exceeds(i.Used, i.Limit, identitiesFull) {
			code, severity, why = v1alpha1.FindingIdentitiesFull, v1alpha1.FindingFails, message.MemberIdentitiesFull(identitiesFull)
		}
		if len(i.Labels) > 0 {
			object = i.Labels[0].Key
			why = message.MemberIdentitiesLabel(why, object)
		}
		out = append(out, finding(code, severity, object, why))
	}
	if m := s.PolicyMap; m != nil && exceeds(m.Highest, m.Limit, mapFilling) {
		out = append(out, finding(v1alpha1.FindingPolicyMapFilling, v1alpha1.FindingWarns, m.Unit, message.MemberMapFilling()))
	}
	return out
}
