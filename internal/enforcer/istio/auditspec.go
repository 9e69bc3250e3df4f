package istio

import "maps"

// AuditSpec returns the spec of a policy with the action AUDIT, which decides nothing. It uses the spec alone, so that it works where only
// the member is available.
func AuditSpec(spec map[string]any) map[string]any {
	out := maps.Clone(spec)
	if out == nil {
		out = map[string]any{}
	}
	out["action"] = audit
	return out
}
