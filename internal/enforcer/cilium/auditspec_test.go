package cilium

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// TestAuditedIsWhatAuditRenders checks that AuditSpec of a pushed spec equals the spec that the unit is rendered to in Audit.
func TestAuditedIsWhatAuditRenders(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	compared, changed := 0, 0
	for _, path := range inputs {
		for _, u := range policy.NewSnapshot(readInput(t, path)).Compile(goldenTime) {
			pushed, err := Enforcer{}.Render(u)
			if err != nil {
				t.Fatal(err)
			}
			u.Mode, u.ClusterModes = v1alpha1.ModeAudit, nil
			audit, err := Enforcer{}.Render(u)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range audit.Objects {
				o := pushed.Objects[i]
				specs := []map[string]any{o.Object.Spec}
				for _, s := range o.Overrides {
					specs = append(specs, s)
				}
				for _, s := range specs {
					got, revision := AuditSpecRevision(s)
					if d := cmp.Diff(want.Object.Spec, got); d != "" || revision != want.Revision {
						t.Errorf("%s, %s, revision %s, want %s:\n%s", path, want.Object.Name, revision, want.Revision, d)
					}
					if closes(s) {
						changed++
					}
					compared++
				}
			}
		}
	}
	if compared < 20 || changed < 10 {
		t.Errorf("only %d specs were compared, %d of which close something", compared, changed)
	}
}

func FuzzAuditedClosesNothing(f *testing.F) {
	f.Add(true, true, true, true)
	f.Add(false, true, false, false)
	f.Fuzz(func(t *testing.T, deny, http, egress, absent bool) {
		rule := map[string]any{"toPorts": []any{map[string]any{"ports": []any{map[string]any{"port": "80"}}}}}
		if http {
			rule["toPorts"] = append(rule["toPorts"].([]any), map[string]any{"rules": map[string]any{"http": []any{}}})
		}
		spec := map[string]any{"endpointSelector": map[string]any{}, "ingress": []any{rule, "no rule", nil}, "egress": []any{rule}}
		if deny {
			spec["ingressDeny"], spec["egressDeny"] = []any{rule}, []any{rule}
		}
		if egress {
			spec["enableDefaultDeny"] = map[string]any{"egress": true}
		}
		if absent {
			spec = map[string]any{}
		}
		got := AuditSpec(spec)
		if got["ingressDeny"] != nil || got["egressDeny"] != nil || closes(got) || len(list(got["ingress"])) == 0 {
			t.Errorf("%v", got)
		}
		if d := cmp.Diff(got, AuditSpec(got)); d != "" {
			t.Errorf("twice is not once: %s", d)
		}
	})
}
