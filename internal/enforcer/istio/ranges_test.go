package istio

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/policy"
)

const declaredSidecar = "{dataplane: sidecar, version: '1.31', strictMTLS: true, ranges: [%]}"

// Where every member declares where its pods and nodes are, ranges elsewhere are translated.
func TestDeclaredRangesCount(t *testing.T) {
	m1, m2 := strings.ReplaceAll(declaredSidecar, "%", "10.1.0.0/16"), strings.ReplaceAll(declaredSidecar, "%", "10.2.0.0/16")
	for name, c := range map[string]struct {
		reason, subject string
		members         map[string]string
		refused         bool
	}{
		"Outside": {"no pods are there", "192.0.2.0/24", map[string]string{"m1": m1, "m2": m2}, false},
		"Inside":  {"pods of a member are there", "10.2.3.0/24", map[string]string{"m1": m1, "m2": m2}, true},
		"Silent":  {"pods of the other member may be anywhere", "192.0.2.0/24", map[string]string{"m1": m1, "m2": ""}, true},
		"NoIstio": {
			"a member without Istio can say where its pods are", "192.0.2.0/24",
			map[string]string{"m1": m1, "m2": "{dataplane: none, ranges: [10.2.0.0/16]}"}, false,
		},
		"PodsThere": {
			"pods of a member without Istio are pods", "10.2.3.0/24",
			map[string]string{"m1": m1, "m2": "{dataplane: none, ranges: [10.2.0.0/16]}"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := renderFor(
				t,
				Declared(declarations(c.members)),
				policy.UnitStatement{Effect: policy.Allow, Ranges: []policy.AddressRange{{Prefix: netip.MustParsePrefix(c.subject)}}},
			)
			rules, _ := r.Objects[0].Object.Spec["rules"].([]any)
			if refused := len(r.RefusedBy("m1")) > 0; refused != c.refused || (text(rules) == text([]any{nobody()})) != c.refused {
				t.Errorf("%s: refused %v, %d rules", c.reason, r.RefusedBy("m1"), len(rules))
			}
		})
	}
}

// A machine that is registered for an application takes nothing from the application's pods: only its addresses are refused
// where they cannot be expressed. A deny that misses them leaves nothing open.
func TestExternalAddressesDoNotAffectPods(t *testing.T) {
	config := Declared(map[string]Declaration{"m1": {Text: "{dataplane: sidecar, version: '1.31', strictMTLS: true}"}})
	app := []policy.UnitSubject{{Name: "app", Class: "c", ServiceAccount: "app-1"}}
	machine := policy.AddressRange{Prefix: netip.MustParsePrefix("192.0.2.7/32"), External: true}
	ref := func(sid string) policy.Ref { return policy.Ref{Policy: "p", SID: sid} }
	allow := policy.UnitStatement{Ref: ref("allow"), Effect: policy.Allow, Subjects: app, Ranges: []policy.AddressRange{machine}}
	r := renderFor(t, config, allow)
	if rules, _ := r.Objects[0].Object.Spec["rules"].([]any); len(rules) != 1 || strings.Contains(text(rules), "192.0.2.7") ||
		!strings.Contains(text(rules), "*/sa/app-1") {
		t.Errorf("rules %s, want those of the pods", text(rules))
	}
	if refused := r.RefusedBy("m1"); len(refused) != 1 || !strings.Contains(refused[0].Message.Text, "only the addresses") {
		t.Errorf("refused %v, want the addresses", refused)
	}

	deny := allow
	deny.Ref, deny.Effect = ref("deny"), policy.Deny
	anyone := policy.UnitStatement{Ref: ref("anyone"), Effect: policy.Allow, Anyone: true}
	other := policy.UnitStatement{Ref: ref("other"), Effect: policy.Allow, Subjects: []policy.UnitSubject{{Name: "other", Class: "c", ServiceAccount: "app-2"}}}
	r = renderFor(t, config, deny, anyone, other)
	if allowed := text(r.Objects[0].Object.Spec["rules"]); strings.Contains(allowed, `[{"to"`) || !strings.Contains(allowed, "*/sa/app-2") {
		t.Errorf("allowed %s, want the other application and not anyone, who may be the machine", allowed)
	}
	if denied := text(r.Objects[1].Object.Spec["rules"]); !strings.Contains(denied, "*/sa/app-1") {
		t.Errorf("denied %s, want the application's pods", denied)
	}

	alone := renderFor(
		t,
		config,
		policy.UnitStatement{Ref: ref("a"), Effect: policy.Allow, Subjects: app, Ranges: []policy.AddressRange{{Prefix: machine.Prefix}}},
	)
	if rules, _ := alone.Objects[0].Object.Spec["rules"].([]any); text(rules) != text([]any{nobody()}) {
		t.Errorf("a range that is written in the statement was left out of it: %s", text(rules))
	}
}

// The example of docs/enforcers.md is a configuration, and ranges outside its member's are translated.
func TestExampleOfTheDocuments(t *testing.T) {
	page, err := os.ReadFile("../../../docs/enforcers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "```yaml\nrootNamespace")
	example, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatal("docs/enforcers.md has no example")
	}
	config, err := ParseConfig([]byte("rootNamespace" + example))
	if err != nil {
		t.Fatal(err)
	}
	r := renderFor(t, config, policy.UnitStatement{Effect: policy.Allow, Ranges: []policy.AddressRange{{Prefix: netip.MustParsePrefix("192.0.2.0/24")}}})
	if refused := r.RefusedBy("m1"); len(refused) != 0 {
		t.Errorf("refused in m1: %v", refused)
	}
}

func renderFor(t *testing.T, c Config, statements ...policy.UnitStatement) *enforcer.Rendering {
	t.Helper()
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	u := testUnit()
	u.Mode = v1alpha1.ModeEnforce
	for i := range statements {
		statements[i].Actions = []policy.UnitAction{{Name: "a:b", Ports: []v1alpha1.Port{{Port: 80, Protocol: v1alpha1.ProtocolTCP}}}}
	}
	u.Statements = statements
	r, err := e.Render(u)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// declarations are those of members with the usual root namespace.
func declarations(texts map[string]string) map[string]Declaration {
	out := map[string]Declaration{}
	for name, text := range texts {
		out[name] = Declaration{Text: text}
	}
	return out
}
