package policy

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
)

// istioWorld is a world whose redis class is for an enforcer that needs statements.
func istioWorld(parts ...any) Input {
	in := world(parts...)
	in.ResourceClasses[0].Spec.Enforcers = []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}
	in.SubjectClasses[0].Spec.ServiceAccountTemplate = "app-{id}-sa"
	return in
}

func statementsOn(t *testing.T, in Input, resource string) []UnitStatement {
	t.Helper()
	u, ok := NewSnapshot(in).CompileResource(resource, noon)
	if !ok || u.Statements == nil {
		t.Fatalf("%s: unit %v, statements %v", resource, ok, u.Statements)
	}
	return u.Statements
}

func TestUnitStatements(t *testing.T) {
	connect := []UnitAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}
	account := func(id string) UnitSubject {
		return UnitSubject{Name: appHead + "app/" + id, Class: "application", ServiceAccount: "app-" + id + "-sa"}
	}
	protected := protect(bobs, v1alpha1.ModeEnforce)
	for name, tc := range map[string]struct {
		reason string
		in     Input
		want   []UnitStatement
	}{
		"None": {reason: "closed, and still compiled", in: istioWorld(protected), want: []UnitStatement{}},
		"Exact": {reason: "service accounts by the template of the class; none without",
			in: istioWorld(protected, statementOf("a", Allow, app888, "redis:connect", bobs, alsoSubjects(cart))),
			want: []UnitStatement{
				{Ref: Ref{"p-a", "a"}, Effect: Allow, Actions: connect, Subjects: []UnitSubject{account("888"), {Name: cart, Class: "service"}}},
			}},
		"WildcardAllow": {reason: "it belongs to every resource that it covers, once",
			in:   istioWorld(protected, statementOf("a", Allow, app888, "redis:connect", allRedis, alsoResources(bobs))),
			want: []UnitStatement{{Ref: Ref{"p-a", "a"}, Effect: Allow, Actions: connect, Subjects: []UnitSubject{account("888")}}}},
		"Kinds": {reason: "what another enforcer cannot express is kept as written",
			in: istioWorld(protected, statementOf("d", Deny, "*", "redis:connect", bobs, alsoSubjects(appHead+"app/team-*", cidrHead+"10.5.0.0/24"))),
			want: []UnitStatement{{Ref: Ref{"p-d", "d"}, Effect: Deny, Actions: connect, Anyone: true, Patterns: []string{appHead + "app/team-*"},
				Ranges: []AddressRange{{Prefix: netip.MustParsePrefix("10.5.0.0/24")}}}}},
		"Prefix": {reason: "in an allow it stands for the known names that it covers, and can be labels; the whole class stays",
			in: func() Input {
				in := istioWorld(protected, statementOf("a", Allow, appHead+"app/88*", "redis:connect", bobs, alsoSubjects(appHead+"app/*")))
				in.KnownNames = []string{app888, app889, appHead + "app/88 ", teamApp}
				return in
			}(),
			want: []UnitStatement{
				{
					Ref: Ref{"p-a", "a"}, Effect: Allow, Actions: connect,
					Subjects: []UnitSubject{account("888"), account("889")}, Patterns: []string{appHead + "app/*"},
				},
			}},
		"NotInForce": {reason: "over, or not begun",
			in: istioWorld(protected,
				statementOf("a", Allow, app888, "redis:connect", bobs, until(hours(0))),
				statementOf("b", Allow, app888, "redis:connect", bobs, from(hours(1)))),
			want: []UnitStatement{}},
		"Flawed": {reason: "wrong for every enforcer", in: istioWorld(protected,
			statementOf("a", Allow, "trnv1:rsc:trip-com:no:class:x", "redis:connect", bobs), statementOf("b", Allow, app888, "redis:none", bobs),
			statementOf("c", Effect("allow"), app888, "redis:connect", bobs)), want: []UnitStatement{}},
		"OverriddenByFlawedDeny": {reason: "the deny has no class for its subject, so it may have meant anyone on the port",
			in: istioWorld(protected, statementOf("a", Allow, app888, "redis:connect", bobs), statementOf("b", Allow, app888, "redis:admin", bobs),
				statementOf("d", Deny, "nonsense", "redis:connect", bobs)),
			want: []UnitStatement{{
				Ref: Ref{"p-a", "a"}, Effect: Allow, Actions: connect,
				Subjects: []UnitSubject{account("888")}, OverriddenBy: Ref{"p-d", "d"},
			},
				{Ref: Ref{"p-b", "b"}, Effect: Allow, Subjects: []UnitSubject{account("888")},
					Actions: []UnitAction{{Name: "redis:admin", Ports: []v1alpha1.Port{
						{Port: 6380, Protocol: v1alpha1.ProtocolTCP}, ports(16379, 16381, v1alpha1.ProtocolTCP)}}}}}},
		"NotOverriddenByUnsupportedDeny": {reason: "each enforcer decides for itself what it cannot express",
			in: istioWorld(protected, statementOf("a", Allow, app888, "redis:connect", bobs), statementOf("d", Deny, "*", "redis:admin", bobs)),
			want: []UnitStatement{{Ref: Ref{"p-a", "a"}, Effect: Allow, Actions: connect, Subjects: []UnitSubject{account("888")}},
				{Ref: Ref{"p-d", "d"}, Effect: Deny, Anyone: true, Actions: []UnitAction{{Name: "redis:admin", Ports: []v1alpha1.Port{
					{Port: 6380, Protocol: v1alpha1.ProtocolTCP}, ports(16379, 16381, v1alpha1.ProtocolTCP)}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := statementsOn(t, tc.in, bobs)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Prefix{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUnitStatementsOnlyWhereNeeded(t *testing.T) {
	s := NewSnapshot(world(protect(bobs, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "redis:connect", bobs)))
	u, ok := s.CompileResource(bobs, noon)
	if !ok || u.Statements != nil {
		t.Errorf("a class of Cilium pays for statements: %v", u.Statements)
	}
	if u = s.WithStatements(u, noon); len(u.Statements) != 1 {
		t.Errorf("WithStatements = %v, want the grant", u.Statements)
	}
}

// The ranges of a statement hold exactly the addresses outside the fleet that it matches.
func TestUnitRangesAgreeWithDecide(t *testing.T) {
	inside, outside := 0, 0
	for seed := range uint64(600) {
		d := dice{rand.New(rand.NewPCG(seed, 9))}
		effect := pick(d, Allow, Deny)
		st := statementOf("s", effect, app888, "redis:connect", bobs)
		st.Subjects = several(
			d,
			3,
			v1alpha1.Subject(app888),
			app889,
			teamApp,
			cart,
			appHead+"app/*",
			appHead+"app/team-*",
			cidrHead+"10.5.0.0/24",
			cidrHead+"2001:db8::/32",
		)
		in := istioWorld(protect(bobs, v1alpha1.ModeEnforce), st)
		if effect == Deny {
			in.Policies = append(in.Policies, acp("all", statementOf("all", Allow, "*", "redis:connect", bobs)))
		}
		for range d.IntN(6) {
			in.Workloads = append(in.Workloads, workload(pick(d, "w1", "w2", "w3", "w4"), pick(d, app888, app889, teamApp, cart),
				several(d, 3, "10.5.0.0/24", "10.5.0.0/16", "10.5.0.9/32", "10.0.0.0/8", "2001:db8::/32", "2001:db8::/48")...))
		}
		s := NewSnapshot(in)
		unit := slices.DeleteFunc(statementsOn(t, in, bobs), func(x UnitStatement) bool { return x.Ref.SID != "s" })[0]
		for _, text := range []string{"10.5.0.9", "10.5.0.8", "10.5.7.7", "10.9.9.9", "11.0.0.1", "2001:db8::1", "2001:db8:1::1", "2001:dead::1"} {
			a := netip.MustParseAddr(text)
			got := slices.ContainsFunc(unit.Ranges, func(r AddressRange) bool {
				return r.Prefix.Contains(a) && !slices.ContainsFunc(r.Except, func(x netip.Prefix) bool { return x.Contains(a) })
			})
			decision := s.Decide(Query{Resources: []string{bobs}, Source: a, Protocol: v1alpha1.ProtocolTCP, Port: 6379, At: noon})
			want := decision.Verdict == Allowed && effect == Allow || decision.Verdict == Denied
			if got != want {
				t.Fatalf("seed %d: %s is in %+v: %v, and the statement decides: %s", seed, a, unit.Ranges, got, decision.Verdict)
			}
			if got {
				inside++
			} else {
				outside++
			}
		}
	}
	if inside < 500 || outside < 500 {
		t.Errorf("%d inside and %d outside: too few to notice a mistake", inside, outside)
	}
}
