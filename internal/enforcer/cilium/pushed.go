package cilium

import (
	"maps"
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

// WithoutAllows returns a pushed spec that closes the same pods and allows nothing; nil if the spec does not close them. A spec that does not say
// whether it closes counts as closing. The denies are left out, too: all objects of a unit that close have the same ones, and a copy for each member
// could make the Federated object too large.
func WithoutAllows(spec map[string]any) map[string]any {
	deny, _ := spec["enableDefaultDeny"].(map[string]any)
	if closed, said := deny["ingress"].(bool); said && !closed {
		return nil
	}
	out := maps.Clone(spec)
	delete(out, "ingressDeny")
	out["ingress"] = []any{map[string]any{}} // agents reject an empty list
	if enforcer.HasRuleLabel(spec) {
		return enforcer.WithRuleLabel(out) // the label must match the content
	}
	return out
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
