package policy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/norace"
)

// TestDecideEnforcedIsDecideInEnforce checks that DecideEnforced returns what Decide returns once all resources of a pod are in Enforce.
func TestDecideEnforcedIsDecideInEnforce(t *testing.T) {
	norace.SkipUnderRace(t)
	differ := 0
	for seed := range uint64(1500) {
		d := dice{rand.New(rand.NewPCG(seed, 9))}
		in := d.world()
		s := NewSnapshot(in)
		in.Resources = nil
		for _, name := range []string{bobs, orders, shop} {
			in.Resources = append(in.Resources, protect(name, v1alpha1.ModeEnforce))
		}
		enforced := NewSnapshot(in)
		for range 12 {
			q := d.query()
			q.Resources = several(d, 2, bobs, orders, shop)
			want, got := enforced.Decide(q), s.DecideEnforced(&q, nil)
			if len(q.Resources) == 0 {
				continue
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: %+v -in Enforce +as if:\n%s", seed, q, diff)
			}
			if s.Decide(q).Verdict != got.Verdict {
				differ++
			}
		}
	}
	if differ < 1000 {
		t.Errorf("only %d decisions differ from those in their own modes: too few to notice a mistake", differ)
	}
}

func TestStatements(t *testing.T) {
	s := NewSnapshot(
		world(
			statementOf("b", Allow, app888, "redis:connect", allRedis),
			statementOf("a", Deny, app889, "redis:connect", bobs),
			statementOf("c", Allow, app889, "web:read", shop),
		),
	)
	refs := func(in []PolicyStatement) (out []string) {
		for _, w := range in {
			if w.Statement.SID != w.Ref.SID || w.Policy.Name != w.Ref.Policy {
				t.Errorf("%s comes with the statement %s of %s", w.Ref, w.Statement.SID, w.Policy.Name)
			}
			out = append(out, w.Ref.String())
		}
		return out
	}
	if got, want := refs(s.Statements()), []string{"p-a/a", "p-b/b", "p-c/c"}; !slices.Equal(got, want) {
		t.Errorf("Statements() = %v, want %v", got, want)
	}
	if got, want := refs(s.StatementsAbout(bobs)), []string{"p-a/a", "p-b/b"}; !slices.Equal(got, want) {
		t.Errorf("StatementsAbout = %v, want %v: by name and by wildcard", got, want)
	}
}
