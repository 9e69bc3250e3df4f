package istio

import (
	"testing"

	"github.com/acp-io/acp/internal/policy"
)

// TestAuditResult checks what the result of policies with the action AUDIT shows. Only a result that nothing but a refusal explains counts.
func TestAuditResult(t *testing.T) {
	const fraud, other = "trnv1:rsc:trip-com:grpc:services:fraud", "trnv1:rsc:trip-com:grpc:services:other"
	name := "acp-" + policy.UnitID(fraud)
	for test, tc := range map[string]struct {
		reason  string
		matched bool
		rule    string
		want    bool
	}{
		"Nothing":        {"no allow matches, and no ALLOW policy lets it in", false, "", true},
		"OthersAllow":    {"an ALLOW policy of others lets it in, also in Enforce", false, "ns[risk]-policy[ours]-rule[0]", false},
		"Unknown":        {"a rule matches, and it is unknown which", true, "", false},
		"Allow":          {"an allow matches; a deny may, too", true, "ns[istio-system]-policy[" + name + "]-rule[0]", false},
		"AllowInPart":    {"so does one of its second object", true, "ns[istio-system]-policy[" + name + "-2]-rule[0]", false},
		"Deny":           {"a deny wins", true, "ns[istio-system]-policy[" + name + "-deny]-rule[0]", true},
		"DenyInPart":     {"a deny of the second object", true, "ns[istio-system]-policy[" + name + "-deny-2]-rule[511]", true},
		"DenyOfOther":    {"a resource that is not in Audit", true, "ns[istio-system]-policy[acp-" + policy.UnitID(other) + "-deny]-rule[0]", false},
		"OthersAudit":    {"a policy of others matches", true, "ns[risk]-policy[ours]-rule[0]", false},
		"OtherNamespace": {"a policy of others with the name of ours", true, "ns[risk]-policy[" + name + "-deny]-rule[0]", false},
		"LongerName":     {"another policy", true, "ns[istio-system]-policy[" + name + "-deny-x]-rule[0]", false},
		"NoPart":         {"another policy", true, "ns[istio-system]-policy[" + name + "-deny-]-rule[0]", false},
		"NoHyphen":       {"another policy", true, "ns[istio-system]-policy[" + name + "-deny2]-rule[0]", false},
		"NoRule":         {"not a rule of istiod", true, "ns[istio-system]-policy[" + name + "-deny]", false},
		"NoNumber":       {"not a rule of istiod", true, "ns[istio-system]-policy[" + name + "-deny]-rule[]", false},
		"NotClosed":      {"not a rule of istiod", true, "ns[istio-system]-policy[" + name + "-deny]-rule[0", false},
	} {
		t.Run(test, func(t *testing.T) {
			if got := (AuditResult{Matched: tc.matched, Rule: tc.rule}).WouldRefuse([]string{fraud}); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
	if (AuditResult{Matched: true, Rule: "ns[istio-system]-policy[" + name + "-deny]-rule[0]"}).WouldRefuse(nil) {
		t.Error("a destination without a resource in Audit is refused")
	}
}
