package policy

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestDecideAllocatesNothing checks that a decision needs no memory, so that the collector's cost per flow stays flat.
func TestDecideAllocatesNothing(t *testing.T) {
	s := NewSnapshot(world(
		protect(bobs, v1alpha1.ModeEnforce),
		statementOf("a", Allow, app888, "redis:connect", bobs),
		statementOf("b", Allow, app889, "redis:connect", bobs),
		statementOf(
			"c",
			Allow,
			appHead+"app/889*",
			"redis:*",
			allRedis,
		),
		statementOf("d", Allow, appHead+"app/*", "redis:admin", bobs),
		statementOf("e", Deny, cart, "redis:connect", allRedis),
	))
	var refs [4]Ref
	for name, tc := range map[string]struct {
		q    Query
		want Verdict
		by   int
	}{
		"Allowed":       {ask(on(bobs), by(app888)), Allowed, 1},
		"Several":       {ask(on(bobs), by(app889)), Allowed, 2},
		"Denied":        {ask(on(bobs), by(app888, cart)), Denied, 1},
		"DefaultDenied": {ask(on(bobs), by(teamApp)), DefaultDenied, 0},
		"Unknown":       {ask(on(redisHead+"unknown"), by(app889)), Allowed, 1},
		"Unmanaged":     {ask(on(orders), by(app888)), Unmanaged, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := s.DecideInto(&tc.q, refs[:])
			if d.Verdict != tc.want || len(d.Statements) != tc.by {
				t.Fatalf("%s by %v, want %s by %d", d.Verdict, d.Statements, tc.want, tc.by)
			}
			if n := testing.AllocsPerRun(100, func() { s.DecideInto(&tc.q, refs[:]) }); n > 0 {
				t.Errorf("%v allocations, want none", n)
			}
		})
	}
}

// TestDecideResolvedIsDecide checks that names that were resolved before are decided like names.
func TestDecideResolvedIsDecide(t *testing.T) {
	for seed := range uint64(300) {
		d := dice{rand.New(rand.NewPCG(seed, 11))}
		s := NewSnapshot(d.world())
		for range 20 {
			q := d.query()
			q.Source = netip.Addr{}
			q.Subjects, q.Resources = []string{pick(d, app888, app889, cart, "unknown")}, []string{pick(d, bobs, orders, shop, redisHead+"unknown")}
			want := s.Decide(q)
			got := s.DecideResolved(s.ResolveSubject(q.Subjects[0]), s.ResolveResource(q.Resources[0]), &q, nil)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, %+v: -Decide +DecideResolved:\n%s", seed, q, diff)
			}
		}
	}
}
