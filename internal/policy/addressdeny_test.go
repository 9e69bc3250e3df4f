package policy

import (
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

func atMember(member string, q Query) Query {
	q.Cluster = member
	return q
}

// TestDecideWhereRequestsCannotBeJudged checks that an allow of requests does not count in a member without a working L7 proxy, and that
// the decision says why.
func TestDecideWhereRequestsCannotBeJudged(t *testing.T) {
	noProxy := &v1alpha1.MemberDataplane{PolicyMapEntries: MapEntries, NoHTTP: "there is no Envoy"}
	get := ask(requesting("GET", "/"))
	for name, c := range map[string]struct {
		reason string
		world  []any
		query  Query
		want   Verdict
		left   string
	}{
		"NoProxy": {
			"the member has no rule about requests", []any{protect(shop, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "web:read", shop)},
			atMember("m1", get), DefaultDenied, "there is no Envoy",
		},
		"Connection": {
			"nor does a connection get in by them", []any{protect(shop, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "web:read", shop)},
			atMember("m1", ask(requesting("", ""))), DefaultDenied, "there is no Envoy",
		},
		"Proxy": {
			"another member has it", []any{protect(shop, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "web:read", shop)},
			atMember("m2", get), Allowed, "",
		},
		"Nowhere": {
			"no member is asked about", []any{protect(shop, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "web:read", shop)},
			atMember("", get), Allowed, "",
		},
		"Whole": {
			"an allow of whole connections is there",
			[]any{protect(shop, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "web:connect", shop)}, atMember("m1", get), Allowed, "",
		},
		"Both": {
			"of two allows one is there", []any{protect(shop, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "web:*", shop)},
			atMember("m1", get), Allowed, "",
		},
		"Audit": {
			"in Audit nobody is refused", []any{protect(shop, v1alpha1.ModeAudit), statementOf("a", Allow, app888, "web:read", shop)},
			atMember("m1", get), Allowed, "",
		},
		"Deny": {
			"denies are there",
			[]any{protect(shop, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "web:read", shop), statementOf("d", Deny, app888, "web:connect", shop)},
			atMember("m1", get), Denied, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := world(c.world...)
			i.Clusters = fleetWith(noProxy, nil)
			got := NewSnapshot(i).DecideEffective(&c.query)
			if got.Verdict != c.want || (len(got.LeftOut) > 0) != (c.left != "") || !strings.Contains(got.Explain().Text, c.left) {
				t.Errorf("%s: %s, want %s: %s", c.reason, got.Verdict, c.want, got.Explain())
			}
		})
	}
}

// reporting is the dataplane of a member in a cluster mesh, with the applications whose pods it has, if that is known.
func reporting(mesh string, known bool, values ...string) *v1alpha1.MemberDataplane {
	d := inMesh(mesh, reports(100, 10, 1))
	if known {
		d.ValuesKnown = true
		d.Labels[1].Values = values
	}
	return d
}

// A denied subject with pods in another cluster mesh comes as an address, so a member in Enforce denies all addresses.
func TestDecideWhereAddressesAreDenied(t *testing.T) {
	apart := fleetWith(reporting("a", true, "888"), reporting("b", true, "889"))
	together := fleetWith(reporting("a", true, "888"), reporting("a", true, "889"))
	elsewhere := fleetWith(reporting("a", true, "888", "889"), reporting("b", true, "888"))
	unread := fleetWith(reporting("a", true, "888"), reporting("b", false))
	enforced, allow := protect(bobs, v1alpha1.ModeEnforce), statementOf("a", Allow, "*", "redis:*", bobs)
	deny := statementOf("d", Deny, app889, "redis:connect", bobs)
	for name, c := range map[string]struct {
		reason string
		fleet  []Cluster
		world  []any
		query  Query
		want   Verdict
	}{
		"Apart":     {"its pods come as addresses", apart, []any{enforced, allow, deny}, atMember("m1", ask(outside("203.0.113.9"))), Denied},
		"OtherPort": {"only on the ports of the deny", apart, []any{enforced, allow, deny}, atMember("m1", ask(outside("203.0.113.9"), at(6380))), Allowed},
		"Pod":       {"pods of the mesh keep their names", apart, []any{enforced, allow, deny}, atMember("m1", ask()), Allowed},
		"Same":      {"in its own mesh it has a name", apart, []any{enforced, allow, deny}, atMember("m2", ask(outside("203.0.113.9"))), Allowed},
		"Together":  {"there is one mesh", together, []any{enforced, allow, deny}, atMember("m1", ask(outside("203.0.113.9"))), Allowed},
		"Elsewhere": {"its pods are in the mesh", elsewhere, []any{enforced, allow, deny}, atMember("m1", ask(outside("203.0.113.9"))), Allowed},
		"Unread": {
			"it may have pods in a member that nobody read", unread,
			[]any{enforced, allow, deny}, atMember("m1", ask(outside("203.0.113.9"))), Denied,
		},
		"Audit": {
			"in Audit nobody is refused", apart, []any{protect(bobs, v1alpha1.ModeAudit), allow, deny},
			atMember("m1", ask(outside("203.0.113.9"))), Allowed,
		},
		"Addressed": {
			"its addresses are known", apart, []any{enforced, allow, deny, workload("w", app889, "203.0.113.10")},
			atMember("m1", ask(outside("203.0.113.9"))), Allowed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := world(c.world...)
			i.Clusters = c.fleet
			got := NewSnapshot(i).DecideEffective(&c.query)
			if got.Verdict != c.want {
				t.Errorf("%s: %s, want %s: %s", c.reason, got.Verdict, c.want, got.Explain())
			}
			if c.want == Denied && (len(got.LeftOut) != 1 || got.LeftOut[0].Reason != v1alpha1.RefusedShadowingDeny || got.Statements[0].SID != "d") {
				t.Errorf("%s: %+v", c.reason, got)
			}
		})
	}
}

// TestDecideAsIfEnforcedWhereAddressesAreDenied checks that what Enforce would do includes the denial of all addresses, before the resource
// is in Enforce and before it is protected at all.
func TestDecideAsIfEnforcedWhereAddressesAreDenied(t *testing.T) {
	apart, together := fleetWith(reporting("a", true, "888"), reporting("b", true, "889")), fleetWith(reporting("a", true, "888"), reporting("a", true, "889"))
	allow, deny := statementOf("a", Allow, "*", "redis:*", bobs), statementOf("d", Deny, app889, "redis:connect", bobs)
	for name, c := range map[string]struct {
		reason string
		fleet  []Cluster
		query  Query
		want   Verdict
	}{
		"Apart":     {"its pods come as addresses", apart, atMember("m1", ask(outside("203.0.113.9"))), Denied},
		"OtherPort": {"only on the ports of the deny", apart, atMember("m1", ask(outside("203.0.113.9"), at(6380))), Allowed},
		"Pod":       {"pods of the mesh keep their names", apart, atMember("m1", ask()), Allowed},
		"Same":      {"in its own mesh it has a name", apart, atMember("m2", ask(outside("203.0.113.9"))), Allowed},
		"Together":  {"there is one mesh", together, atMember("m1", ask(outside("203.0.113.9"))), Allowed},
	} {
		for _, protected := range [][]any{
			{}, {protect(bobs, v1alpha1.ModeObserve)}, {protect(bobs, v1alpha1.ModeAudit)}, {protect(bobs, v1alpha1.ModeEnforce)},
		} {
			i := world(append([]any{allow, deny}, protected...)...)
			i.Clusters = c.fleet
			s := NewSnapshot(i)
			got := s.EffectiveEnforced(&c.query, nil)
			if got.Verdict != c.want || c.want == Denied && (len(got.Statements) != 1 || got.Statements[0].SID != "d") {
				t.Errorf("%s: %s with %v: got %s by %v, want %s", name, c.reason, protected, got.Verdict, got.Statements, c.want)
			}
			if len(protected) == 0 || i.Resources[0].Spec.Mode == v1alpha1.ModeObserve { // the two views of a resource are apart
				if now := s.EffectiveInto(&c.query, nil); now.Verdict == Denied {
					t.Errorf("%s: %s with %v: denied before it is enforced", name, c.reason, protected)
				}
			}
		}
	}
}

// TestDecideWhereASubjectIsInAnotherMesh checks that an allow of a subject counts only in members that know its pods by name.
func TestDecideWhereASubjectIsInAnotherMesh(t *testing.T) {
	apart := fleetWith(reporting("a", true, "888"), reporting("b", true, "889"))
	both := fleetWith(reporting("a", true, "888", "889"), reporting("b", true, "889"))
	unread := fleetWith(reporting("a", true, "888"), reporting("b", false))
	unknown := fleetWith(reporting("a", true, "888"), reporting("b", true))
	far := ask(by(app889))
	identified := atMember("m1", far)
	identified.Identified = true
	for name, c := range map[string]struct {
		reason string
		fleet  []Cluster
		world  []any
		query  Query
		want   Verdict
	}{
		"Apart": {"m1 has no identities of its pods", apart, []any{statementOf("a", Allow, app889, "redis:connect", bobs)}, atMember("m1", far), DefaultDenied},
		"Class": {"neither by its class", apart, []any{statementOf("a", Allow, appHead+"app/*", "redis:connect", bobs)}, atMember("m1", far), DefaultDenied},
		"Near": {
			"one of the same statement has pods in the mesh", apart,
			[]any{statementOf("a", Allow, appHead+"app/*", "redis:connect", bobs)}, atMember("m1", ask()), Allowed,
		},
		"Anyone":  {"its address is anyone's", apart, []any{statementOf("a", Allow, "*", "redis:connect", bobs)}, atMember("m1", far), Allowed},
		"Own":     {"m2 is in its mesh", apart, []any{statementOf("a", Allow, app889, "redis:connect", bobs)}, atMember("m2", far), Allowed},
		"Nowhere": {"no member is asked about", apart, []any{statementOf("a", Allow, app889, "redis:connect", bobs)}, atMember("", far), Allowed},
		"Both":    {"it has pods in both", both, []any{statementOf("a", Allow, app889, "redis:connect", bobs)}, atMember("m1", far), Allowed},
		"Unread":  {"its pods elsewhere are unknown", unread, []any{statementOf("a", Allow, app889, "redis:connect", bobs)}, atMember("m1", far), Allowed},
		"Unknown": {
			"it has pods nowhere, and wherever they appear they are known", unknown,
			[]any{statementOf("a", Allow, app889, "redis:connect", bobs)}, atMember("m1", far), Allowed,
		},
		"Addressed": {
			"its addresses are registered", apart,
			[]any{statementOf("a", Allow, app889, "redis:connect", bobs), workload("w", app889, "203.0.113.10")}, atMember("m1", far), Allowed,
		},
		"Identified": {"the dataplane of the member saw its name", apart, []any{statementOf("a", Allow, app889, "redis:connect", bobs)}, identified, Allowed},
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []v1alpha1.Mode{v1alpha1.ModeEnforce, v1alpha1.ModeAudit} {
				i := world(append([]any{protect(bobs, mode)}, c.world...)...)
				i.Clusters = c.fleet
				s := NewSnapshot(i)
				want := c.want
				if want == DefaultDenied && mode == v1alpha1.ModeAudit {
					want = Audited
				}
				got := s.DecideEffective(&c.query)
				if got.Verdict != want || got.Differs() != (c.want == DefaultDenied) {
					t.Errorf("%s in %s: %s, want %s: %s", c.reason, mode, got.Verdict, want, got.Explain())
				}
				if got.Differs() &&
					(len(got.LeftOut) != 1 || got.LeftOut[0].Reason != v1alpha1.RefusedUnsupported ||
						!strings.Contains(got.Explain().Text, "has pods in m2 only, which is in another cluster mesh")) {
					t.Errorf("%s in %s: %s", c.reason, mode, got.Explain())
				}
				if d := s.EffectiveInto(&c.query, nil); d.Verdict != want {
					t.Errorf("%s in %s: EffectiveInto says %s, want %s", c.reason, mode, d.Verdict, want)
				}
				if d := s.EffectiveEnforced(&c.query, nil); d.Verdict != c.want {
					t.Errorf("%s in %s: EffectiveEnforced says %s, want %s", c.reason, mode, d.Verdict, c.want)
				}
			}
		})
	}
}
