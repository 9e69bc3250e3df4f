package istio

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/policy"
)

func testEnforcer(t *testing.T) Enforcer {
	t.Helper()
	e, err := New(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func testUnit() policy.Unit {
	return policy.Unit{
		ID:         "x",
		Resource:   istiotest.RedisHead + "x",
		LabelKey:   "k",
		LabelValue: "v",
		Mode:       v1alpha1.ModeEnforce,
		Statements: []policy.UnitStatement{},
	}
}

func TestRenderRefusesUnusableUnits(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		change  func(*policy.Unit)
		wrong   bool
		objects int
	}{
		"Good": {reason: "a unit without statements is closed, not unusable", change: func(*policy.Unit) {}, objects: 1},
		"Wildcard": {
			reason: "the units of the resources hold its allows",
			change: func(u *policy.Unit) { u.Resource, u.LabelValue = istiotest.RedisHead+"*", "" },
		},
		"NoID":    {reason: "it would have no name", change: func(u *policy.Unit) { u.ID = "" }, wrong: true},
		"NoKey":   {reason: "it would select every pod", change: func(u *policy.Unit) { u.LabelKey = "" }, wrong: true},
		"NoValue": {reason: "it would select what carries an empty label", change: func(u *policy.Unit) { u.LabelValue = "" }, wrong: true},
		"NoStatements": {
			reason: "it was not compiled for this enforcer, and would close what has grants",
			change: func(u *policy.Unit) { u.Statements = nil }, wrong: true,
		},
		"SomeRefusal": {reason: "the object of the denies stays while something is refused, perhaps its deny",
			change: func(u *policy.Unit) { u.Refused = []policy.Refusal{{}} }, objects: 2},
	} {
		t.Run(name, func(t *testing.T) {
			u := testUnit()
			tc.change(&u)
			r, err := testEnforcer(t).Render(u)
			if errors.Is(err, ErrUnusableUnit) != tc.wrong || len(r.Objects) != tc.objects {
				t.Errorf("%s: %d objects, error %v", tc.reason, len(r.Objects), err)
			}
		})
	}
}

func TestRenderIsDeterministic(t *testing.T) {
	for seed := range uint64(20) {
		d := istiotest.NewGenerator(seed, 8)
		units := policy.NewSnapshot(d.World(false)).Compile(istiotest.Noon)
		e := testEnforcer(t).WithUnits(units)
		for _, u := range units {
			first, err := e.Render(u)
			if err != nil {
				t.Fatal(err)
			}
			again, err := testEnforcer(t).WithUnits(units).Render(u)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Fatalf("seed %d: -first +again:\n%s", seed, diff)
			}
		}
	}
}

// TestLimits checks that content that exceeds the size of an Istio object is divided among several.
func TestLimits(t *testing.T) {
	tcp := func(port int32) policy.UnitAction {
		return policy.UnitAction{Name: "a:b", Ports: []v1alpha1.Port{{Port: port, Protocol: v1alpha1.ProtocolTCP}}}
	}
	for name, tc := range map[string]struct {
		reason     string
		statements int
		make       func(i int, st *policy.UnitStatement)
		least      int
	}{
		"Rules": {reason: "a policy takes 512 rules", statements: 1200, least: 3, make: func(i int, st *policy.UnitStatement) {
			st.Actions = []policy.UnitAction{tcp(int32(i + 1))}
			st.Subjects = []policy.UnitSubject{{Name: "n", ServiceAccount: "app-1"}}
		}},
		"From": {reason: "a rule takes 512 sources", statements: 1200, least: 1, make: func(i int, st *policy.UnitStatement) {
			st.Actions = []policy.UnitAction{tcp(80)}
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, byte(i / 256), byte(i), 0}), 24)
			st.Ranges = []policy.AddressRange{{Prefix: p, Except: []netip.Prefix{netip.PrefixFrom(p.Addr(), 32)}}}
		}},
		"Bytes": {reason: "a host takes 1.5 MB, and overrides repeat the rules", statements: 20000, least: 4, make: func(i int, st *policy.UnitStatement) {
			st.Actions = []policy.UnitAction{tcp(80)}
			st.Subjects = []policy.UnitSubject{{Name: "n", ServiceAccount: fmt.Sprintf("an-application-with-a-long-name-%d", i)}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			u := testUnit()
			for i := range tc.statements {
				st := policy.UnitStatement{Ref: policy.Ref{Policy: "p", SID: fmt.Sprint(i)}, Effect: policy.Allow}
				tc.make(i, &st)
				u.Statements = append(u.Statements, st)
			}
			e, err := New(Config{Default: testConfig().Default})
			if err != nil {
				t.Fatal(err)
			}
			r, err := e.Render(u)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Refused) > 0 || len(r.Objects) < tc.least {
				t.Fatalf("%s: %d objects, want at least %d; refused: %v", tc.reason, len(r.Objects), tc.least, r.Refused)
			}
			entries := 0
			var m mesh
			for i, o := range r.Objects {
				if i > 0 && o.Object.Name != fmt.Sprintf("acp-x-%d", i+1) {
					t.Errorf("part %d is named %s", i, o.Object.Name)
				}
				if n := len(text(o.Object.Spec)); n > 2*maxBytes {
					t.Errorf("%s has %d bytes", o.Object.Name, n)
				}
				if err := m.add(o.Object.Spec); err != nil {
					t.Errorf("%s: %.300v", o.Object.Name, err)
				}
			}
			for _, p := range m.policies {
				for _, rule := range p.Rules {
					for _, f := range rule.From {
						entries += max(len(f.Source.Principals), len(f.Source.IPBlocks))
					}
				}
			}
			if entries != tc.statements {
				t.Errorf("%d sources in the objects, want %d", entries, tc.statements)
			}
		})
	}
}

func TestOtherPortsRule(t *testing.T) {
	tcp := func(first, last int32) v1alpha1.Port {
		return v1alpha1.Port{Port: first, EndPort: &last, Protocol: v1alpha1.ProtocolTCP}
	}
	udp := v1alpha1.Port{Port: 1, Protocol: v1alpha1.ProtocolUDP}
	for name, tc := range map[string]struct {
		reason string
		open   []v1alpha1.Port
		want   string
	}{
		"Some": {
			reason: "those that are not open, TCP only", open: []v1alpha1.Port{tcp(1, 79), tcp(81, 65535), udp},
			want: `{"to":[{"operation":{"notPorts":["80"]}}]}`,
		},
		"Ends":    {reason: "the first and the last port", open: []v1alpha1.Port{tcp(2, 65534)}, want: `{"to":[{"operation":{"notPorts":["1","65535"]}}]}`},
		"All":     {reason: "a rule for everything", open: []v1alpha1.Port{tcp(1, 65535)}, want: `{}`},
		"None":    {reason: "nothing of TCP is open", open: []v1alpha1.Port{udp}},
		"TooMany": {reason: "a list of thousands of ports", open: []v1alpha1.Port{tcp(1, 10000)}},
	} {
		t.Run(name, func(t *testing.T) {
			rule, flaw := otherPortsRule(tc.open)
			if tc.want == "" {
				if flaw == nil || !strings.Contains(flaw.message.Text, "TCP port") {
					t.Errorf("%s: %v was not refused: %v", tc.reason, rule, flaw)
				}
				return
			}
			if flaw != nil || text(rule) != tc.want {
				t.Errorf("%s: %s, %v, want %s", tc.reason, text(rule), flaw, tc.want)
			}
		})
	}
}
