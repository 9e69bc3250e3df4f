package cilium

import (
	"github.com/acp-io/acp/internal/enforcer"
)

// Emptied is an object of a wildcard's unit with nothing left that it allows, made of the spec that was pushed: the class
// and the statements that it came from may be gone. False: the spec does not say which pods it is about.
func Emptied(name, unit string, spec map[string]any) (enforcer.Rendered, bool) {
	selector, ok := spec["endpointSelector"].(map[string]any)
	if !ok || unit == "" {
		return enforcer.Rendered{}, false
	}
	out := map[string]any{
		"endpointSelector":  selector,
		"enableDefaultDeny": map[string]any{"ingress": false, "egress": false},
		"ingress":           []any{map[string]any{}},
	}
	if log, ok := spec["log"]; ok {
		out["log"] = log
	}
	r, err := enforcer.Render(object(name, out), unit, nil)
	return r, err == nil
}
