package istio

import (
	"testing"

	"github.com/acp-io/acp/internal/enforcer"
)

func TestEffectOf(t *testing.T) {
	to := []any{map[string]any{"operation": map[string]any{"ports": []any{"6379"}}}}
	by := func(names ...any) any {
		return map[string]any{"from": []any{map[string]any{"source": map[string]any{"principals": names}}}, "to": to}
	}
	policy := func(action string, rules ...any) map[string]any {
		s := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"k": "v"}}, "action": action}
		if len(rules) > 0 {
			s["rules"] = rules
		}
		return s
	}
	other := policy(allow, by("a"))
	other["selector"] = map[string]any{"matchLabels": map[string]any{"k": "w"}}
	anyone := map[string]any{"to": to}
	cases := map[string]struct {
		reason        string
		before, after map[string]any
		want          enforcer.Effect
	}{
		"Grant":      {"one more name in a rule takes nothing from anybody", policy(allow, by("a")), policy(allow, by("a", "b")), enforcer.Grants},
		"Revocation": {"a name is gone from a rule", policy(allow, by("a", "b")), policy(allow, by("b")), enforcer.Revokes},
		"LastOne":    {"nobody is left", policy(allow, by("a")), policy(allow), enforcer.Revokes},
		"Nobody":     {"the last name is replaced by nobody", policy(allow, by("a")), policy(allow, nobody()), enforcer.Revokes},
		"FirstOne":   {"nobody had access", policy(allow, nobody()), policy(allow, by("a")), enforcer.Grants},
		"Earlier":    {"policies of earlier versions had no rules", policy(allow), policy(allow, nobody()), enforcer.Grants},
		"Exchange":   {"one comes and one goes", policy(allow, by("a")), policy(allow, by("b")), enforcer.Revokes},
		"Anyone": {
			"a rule for anyone does not hold the one by name, as far as is looked",
			policy(allow, by("a")),
			policy(allow, anyone),
			enforcer.Revokes,
		},
		"NotAnyone":     {"anyone was let in", policy(allow, anyone), policy(allow, by("a")), enforcer.Revokes},
		"Closed":        {"a workload becomes closed", policy(audit, by("a")), policy(allow), enforcer.Grants},
		"New":           {"there was nothing", nil, policy(allow, by("a")), enforcer.Grants},
		"Audited":       {"what was closed is open", policy(allow, by("a")), policy(audit, by("a")), enforcer.Opens},
		"Gone":          {"what was closed has no policy", policy(allow, by("a")), nil, enforcer.Opens},
		"AuditChanges":  {"what decides nothing takes nothing", policy(audit, by("a")), policy(audit), enforcer.Grants},
		"NewDeny":       {"somebody is denied", nil, policy(deny, by("a")), enforcer.Revokes},
		"DenyInEnforce": {"somebody is denied who was audited", policy(audit, by("a")), policy(deny, by("a")), enforcer.Revokes},
		"MoreDenied":    {"one more is denied", policy(deny, by("a")), policy(deny, by("a", "b")), enforcer.Revokes},
		"LessDenied":    {"one is not denied any more", policy(deny, by("a", "b")), policy(deny, by("a")), enforcer.Grants},
		"DenyGone":      {"nobody is denied", policy(deny, by("a")), policy(audit), enforcer.Grants},
		"OtherPods":     {"other pods are meant", policy(allow, by("a")), other, enforcer.Revokes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := EffectOf(tc.before, tc.after); got != tc.want {
				t.Errorf("%s: effect %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestDeclared(t *testing.T) {
	const able = `{"dataplane": "sidecar", "version": "1.31.1"}`
	c := Declared(
		map[string]Declaration{
			"m1": {Text: able},
			"m2": {Text: able},
			"m3": {},
			"m4": {Text: `{"dataplan": "sidecar"}`},
			"m5": {Text: `{"dataplane": "ambient", "version": "1.28"}`},
			"m6": {Text: able, OtherRoot: "mesh-root"},
		},
	)
	for member, want := range map[string]string{
		"m1": "", "m2": "",
		"m3": "the member declares no Istio that enforces",
		"m5": "Istio 1.28 is older than 1.29",
		"m6": "its Istio's root namespace is mesh-root, and policies are carried to istio-system only",
	} {
		if got := c.UnsupportedReason(member).Text; got != want {
			t.Errorf("%s lacks %q, want %q", member, got, want)
		}
	}
	if c.UnsupportedReason("m4").IsZero() {
		t.Error("what cannot be read is taken for a capability")
	}
	if c.Default.Dataplane != Sidecar {
		t.Errorf("the default is %s, want that of most members", c.Default.Dataplane)
	}
	if d := Declared(nil); d.UnsupportedReason("m1").IsZero() {
		t.Error("nobody declared anything, and something can be enforced")
	}
	if _, err := New(c); err != nil {
		t.Errorf("the configuration is refused: %v", err)
	}
}

// TestWithoutAllows checks that a policy that allows refuses every source afterwards, for the same pods, and that others stay as they are.
func TestWithoutAllows(t *testing.T) {
	selector := map[string]any{"matchLabels": map[string]any{"k": "v"}}
	spec := func(action string, rules ...any) map[string]any {
		return map[string]any{"selector": selector, "action": action, "rules": rules}
	}
	anyone := map[string]any{}
	for _, c := range []struct {
		reason       string
		before, want map[string]any
	}{
		{"a policy that allows", spec(allow, anyone), spec(allow, nobody())},
		{"one without allows", spec(allow, nobody()), spec(allow, nobody())},
		{"a policy that denies", spec(deny, anyone), spec(deny, anyone)},
		{"a policy that decides nothing", spec(audit, anyone), spec(audit, anyone)},
	} {
		if got := WithoutAllows(c.before); text(got) != text(c.want) {
			t.Errorf("%s: %s, want %s", c.reason, text(got), text(c.want))
		}
	}
}
