package istio

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// AuditResult is what a proxy reports about a connection, or a request, that it let through and to which policies with the action AUDIT
// apply. Istiod translates all of them to one RBAC filter with the action LOG.
type AuditResult struct {
	// Matched is Envoy's access_log_hint: whether a rule of any of these policies matches.
	Matched bool
	// Rule is Envoy's enforced_effective_policy_id, as istiod names the rules of policies: the rule of an ALLOW policy that let the request
	// in, else the rule of an AUDIT policy that matches; "" if there is neither, and for connections, about which Envoy does not report it.
	Rule string
}

// WouldRefuse reports whether the result shows that ACP's policies would refuse the traffic in Enforce. The resources are those of the
// destination of which the proxy has ACP's policies with the action AUDIT. False means that the result shows nothing, not that the traffic
// would pass.
//
// If nothing matches, no allow of ACP does, and without a rule, no ALLOW policy of others lets the traffic in. If something matches, it may be an
// allow, a deny, or a policy of others, unless the rule is the deny of one of the resources. A deny wins over every allow.
func (r AuditResult) WouldRefuse(resources []string) bool {
	if !r.Matched {
		return r.Rule == ""
	}
	return slices.ContainsFunc(resources, func(resource string) bool { return isRuleOfDenies(r.Rule, resource) })
}

// isRuleOfDenies reports whether a rule, as istiod names it, belongs to an object with the denies of a resource: ns[NAMESPACE]-policy[NAME]-rule[N].
func isRuleOfDenies(rule, resource string) bool {
	rest, ok := strings.CutPrefix(rule, "ns["+defaultRootNamespace+"]-policy["+v1alpha1.ObjectPrefix+policy.UnitID(resource)+denySuffix)
	if !ok {
		return false
	}
	object, number, ok := strings.Cut(rest, "]-rule[")
	number, closed := strings.CutSuffix(number, "]")
	part, numbered := strings.CutPrefix(object, "-")
	return ok && closed && isNumber(number) && (object == "" || numbered && isNumber(part))
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
