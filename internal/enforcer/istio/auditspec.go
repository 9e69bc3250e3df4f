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

// WithoutAllows returns the spec of a policy without its allows: a policy that allows then refuses every source. Policies with another action allow
// nothing, and stay as they are.
func WithoutAllows(spec map[string]any) map[string]any {
	if action := spec["action"]; action == deny || action == audit {
		return spec
	}
	out := maps.Clone(spec)
	if out == nil {
		out = map[string]any{}
	}
	out["action"], out["rules"] = allow, []any{nobody()}
	return out
}
