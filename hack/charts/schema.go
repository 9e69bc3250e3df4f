package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// passed lists the settings of each program that a release may give as they are. The chart makes all others itself, from values of its own.
var passed = map[string][]string{
	"portal": {
		"catalog-backstage-every",
		"embed-origins",
		"evidence-threshold",
		"access-requests",
		"evidence-window",
		"ledger-anchor",
		"ledger-anchor-every",
		"log-format",
		"log-level",
		"sensitive-login-max-age",
		"session-idle",
		"shutdown-delay",
		"shutdown-grace",
		"workload-addresses",
	},
	"acp-adapter": {
		"direct-writes",
		"leader-elect-lease-duration",
		"leader-elect-renew-deadline",
		"leader-elect-retry-period",
		"log-format",
		"log-level",
		"pprof-address",
		"push-burst",
		"push-in-flight",
		"push-in-flight-timeout",
		"push-lag",
		"push-rate",
		"push-reserve",
		"shutdown-grace",
		"token-check-interval",
		"workers",
	},
	"flow-collector": {
		"audit-log",
		"audit-log-file-size",
		"audit-log-token-file",
		"flow-retention",
		"flows",
		"hubble-tls-dir",
		"log-format",
		"log-level",
		"retention",
		"shutdown-grace",
		"spool-size",
	},
}

// schemas writes values.schema.json of each chart from values.schema.yaml beside it.
func schemas(root string, files map[string]string) error {
	for _, chart := range []string{"acp", "acp-crds", "acp-member", "acp-kubefed"} {
		text, err := read(root, "deploy/charts/"+chart+"/values.schema.yaml")
		if err != nil {
			return err
		}
		var schema map[string]any
		if err := yaml.Unmarshal([]byte(text), &schema); err != nil {
			return fmt.Errorf("parse the schema of %s: %w", chart, err)
		}
		if err := complete(root, schema); err != nil {
			return err
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(schema); err != nil {
			return fmt.Errorf("encode the schema of %s: %w", chart, err)
		}
		files["deploy/charts/"+chart+"/values.schema.json"] = b.String()
	}
	return nil
}

// complete closes each object that lists its properties, and puts the settings of a program in place of {settingsOf: PROGRAM}.
func complete(root string, node map[string]any) error {
	if program, ok := node["settingsOf"].(string); ok {
		properties, err := settings(root, program)
		if err != nil {
			return err
		}
		delete(node, "settingsOf")
		node["type"], node["properties"] = "object", properties
	}
	if _, ok := node["properties"]; ok && node["additionalProperties"] == nil {
		node["additionalProperties"] = false
	}
	for _, child := range node {
		switch c := child.(type) {
		case map[string]any:
			if err := complete(root, c); err != nil {
				return err
			}
		case []any:
			for _, item := range c {
				if m, ok := item.(map[string]any); ok {
					if err := complete(root, m); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func settings(root, program string) (map[string]any, error) {
	text, err := read(root, "deploy/configuration/"+program+".schema.json")
	if err != nil {
		return nil, err
	}
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		return nil, fmt.Errorf("parse the schema of the settings of %s: %w", program, err)
	}
	out := map[string]any{}
	for _, name := range passed[program] {
		if out[name] = schema.Properties[name]; out[name] == nil {
			return nil, fmt.Errorf("%s has no setting %s", program, name)
		}
	}
	return out, nil
}
