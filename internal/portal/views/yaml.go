package views

import (
	"encoding/json"

	"sigs.k8s.io/yaml"
)

// YAML returns a value as YAML, or nil if it cannot be encoded.
func YAML(v any) *string {
	if raw, ok := v.(json.RawMessage); ok {
		text, err := yaml.JSONToYAML(raw)
		if err != nil {
			return nil
		}
		return new(string(text))
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return nil
	}
	return new(string(text))
}
