package cilium

import (
	"slices"

	"github.com/acp-io/acp/internal/enforcer"
)

// Audited is a spec that was pushed, in Audit: what Render gives of the same unit in that mode, made of the spec alone, so
// that it can be had where only the member is left. Nothing of it closes or denies, whatever somebody wrote into it.
func Audited(spec map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range spec {
		switch k {
		case "ingressDeny", "egressDeny", "enableDefaultDeny", "ingress":
		default:
			out[k] = v
		}
	}
	out["enableDefaultDeny"] = map[string]any{"ingress": false, "egress": false}
	ingress := plain(list(spec["ingress"]))
	if len(ingress) == 0 {
		ingress = []any{map[string]any{}}
	}
	out["ingress"] = ingress
	if egress, ok := spec["egress"]; ok { // ACP writes none
		delete(out, "egress")
		if rules := plain(list(egress)); len(rules) > 0 {
			out["egress"] = rules
		}
	}
	return out
}

// plain leaves out the rules about requests: one of them drops what it does not match.
func plain(rules []any) []any {
	return slices.DeleteFunc(slices.Clone(rules), func(r any) bool {
		rule, _ := r.(map[string]any)
		return slices.ContainsFunc(list(rule["toPorts"]), func(p any) bool {
			ports, _ := p.(map[string]any)
			_, about := ports["rules"]
			return about
		})
	})
}

// AuditedRevision is Audited with its revision.
func AuditedRevision(spec map[string]any) (map[string]any, string) {
	out := Audited(spec)
	return out, enforcer.Revision(out)
}
