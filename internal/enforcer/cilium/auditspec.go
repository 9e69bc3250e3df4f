package cilium

import (
	"slices"

	"github.com/acp-io/acp/internal/enforcer"
)

// AuditSpec converts a spec that was pushed into the spec that Render returns for the same unit in Audit. It uses the
// spec alone, so that it works where only the member is available. The result closes and denies nothing, regardless of
// what the spec contains.
func AuditSpec(spec map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range spec {
		switch k {
		case "ingressDeny", "egressDeny", "enableDefaultDeny", "ingress":
		default:
			out[k] = v
		}
	}
	out["enableDefaultDeny"] = map[string]any{"ingress": false, "egress": false}
	ingress := withoutHTTPRules(list(spec["ingress"]))
	if len(ingress) == 0 {
		ingress = []any{map[string]any{}}
	}
	out["ingress"] = ingress
	if egress, ok := spec["egress"]; ok { // ACP never writes egress
		delete(out, "egress")
		if rules := withoutHTTPRules(list(egress)); len(rules) > 0 {
			out["egress"] = rules
		}
	}
	if enforcer.HasRuleLabel(spec) {
		return enforcer.WithRuleLabel(out) // the label must match the content
	}
	return out
}

// withoutHTTPRules removes the HTTP rules, because such a rule drops the requests that it does not match.
func withoutHTTPRules(rules []any) []any {
	return slices.DeleteFunc(slices.Clone(rules), func(r any) bool {
		rule, _ := r.(map[string]any)
		return slices.ContainsFunc(list(rule["toPorts"]), func(p any) bool {
			ports, _ := p.(map[string]any)
			_, about := ports["rules"]
			return about
		})
	})
}

// AuditSpecRevision returns AuditSpec and its revision.
func AuditSpecRevision(spec map[string]any) (map[string]any, string) {
	out := AuditSpec(spec)
	return out, enforcer.Revision(out)
}
