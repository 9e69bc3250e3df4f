package cilium

import (
	"strings"

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

// Labels calls found with every label by which a spec that was pushed selects pods.
func Labels(spec map[string]any, found func(key, value string)) {
	for field, value := range spec {
		switch field {
		case "matchLabels":
			selected, _ := value.(map[string]any)
			for key, v := range selected {
				label(found, key, v)
			}
		case "matchExpressions":
			for _, e := range list(value) {
				expression, _ := e.(map[string]any)
				key, _ := expression["key"].(string)
				if expression["operator"] != "In" {
					continue
				}
				for _, v := range list(expression["values"]) {
					label(found, key, v)
				}
			}
		default:
			inside, ok := value.(map[string]any)
			if ok {
				Labels(inside, found)
			}
			for _, e := range list(value) {
				if inside, ok := e.(map[string]any); ok {
					Labels(inside, found)
				}
			}
		}
	}
}

func list(v any) []any {
	out, _ := v.([]any)
	return out
}

func label(found func(key, value string), key string, value any) {
	key, pods := strings.CutPrefix(key, sourcePrefix)
	if text, ok := value.(string); ok && pods {
		found(key, text)
	}
}
