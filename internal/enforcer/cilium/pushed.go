package cilium

import (
	"strings"

	"github.com/acp-io/acp/internal/enforcer"
)

// EmptyWildcardObject returns the object of a wildcard's unit without any allow, derived from the pushed spec, because
// the class and the statements may no longer exist. It returns false if the spec does not say which pods it selects.
func EmptyWildcardObject(name, unit string, spec map[string]any) (enforcer.Rendered, bool) {
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
	r, err := labelled(object(name, out), unit, nil)
	return r, err == nil
}

// SelectedLabels calls found with every label by which a pushed spec selects pods.
func SelectedLabels(spec map[string]any, found func(key, value string)) {
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
				SelectedLabels(inside, found)
			}
			for _, e := range list(value) {
				if inside, ok := e.(map[string]any); ok {
					SelectedLabels(inside, found)
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
