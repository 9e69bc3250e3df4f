package cilium

import (
	"path/filepath"
	"testing"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/policy"
)

// Agents report the labels of rules. Each spec has its own revision as the label, so that it is known which one an agent has.
func TestRulesHaveTheirRevisionAsLabel(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, path := range inputs {
		for _, u := range policy.NewSnapshot(readInput(t, path)).Compile(goldenTime) {
			out, err := Enforcer{}.Render(u)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range out.Objects {
				specs := map[string]map[string]any{o.Revision: o.Object.Spec}
				for cluster, spec := range o.Overrides {
					specs[o.Revisions[cluster]] = spec
				}
				for revision, spec := range specs {
					label, _ := list(spec["labels"])[0].(map[string]any)
					if label["value"] != revision || enforcer.Revision(spec) != revision {
						t.Errorf("%s, %s: the rules of revision %s have the label %v", path, o.Object.Name, revision, label)
					}
				}
			}
		}
	}
}
