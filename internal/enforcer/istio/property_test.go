package istio

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/norace"
	"github.com/acp-io/acp/internal/policy"
)

// outcome of comparing one world in one member.
type outcome struct {
	exact, stricter int
	// let is how many connections passed in spite of refusals.
	let           int
	words         map[policy.Verdict]int
	met           istiotest.Met
	disagreements []string
	// effective is how often the decision by what the members have was compared, and differs how often it differs from the
	// statements as written, by the reason; unexplained contains the differences without a reason, and the disagreements.
	effective   int
	differs     map[string]int
	unexplained []string
}

// translator gives decisions what the enforcer leaves out.
type translator struct{ Enforcer }

// Prepare implements policy.Translator.
func (t translator) Prepare(_ []policy.Cluster, denying []policy.Unit) policy.Translation {
	return t.WithUnits(denying)
}

// Enforces implements policy.Translator.
func (translator) Enforces(p v1alpha1.Protocol) bool { return Enforces(p) }

// decideEffective compares the decision by what the members have with what the mesh does.
func (o *outcome) decideEffective(s *policy.Snapshot, q *policy.Query, passes bool, where string, policies []authorizationPolicy) {
	o.effective++
	got := s.DecideEffective(q)
	if into := s.EffectiveInto(q, nil); into.Verdict != got.Verdict || !s.LeavesOut(q) && got.Differs() {
		o.unexplained = append(o.unexplained, fmt.Sprintf("%s: DecideEffective returns %s, EffectiveInto %s: %+v", where, got.Verdict, into.Verdict, q))
	}
	if got.Verdict.LetsThrough() != passes {
		o.unexplained = append(
			o.unexplained,
			fmt.Sprintf("%s: the mesh lets it through: %v, the members have %s: %s\n%+v\n%+v", where, passes, got.Verdict, got.Explain(), q, policies),
		)
	}
	if !got.Differs() {
		return
	}
	if len(got.LeftOut)+len(got.Waiting) == 0 {
		o.unexplained = append(o.unexplained, fmt.Sprintf("%s: %s in place of %s, without a reason: %+v", where, got.Verdict, got.Written.Verdict, q))
	}
	for _, r := range got.LeftOut {
		o.differs[r.Reason]++
	}
	o.differs["Waiting"] += len(got.Waiting)
}

func newOutcome() outcome {
	return outcome{words: map[policy.Verdict]int{}, met: istiotest.Met{}, differs: map[string]int{}}
}

// worlds can be raised for a longer run: go test ./internal/enforcer/istio -run TestMesh -v -worlds 10000.
var worlds = flag.Uint64("worlds", 1000, "random worlds to compare, their seeds counted from 0")

// compare asks the statements and the mesh about random connections. change may break what is rendered.
func compare(t *testing.T, seed uint64, plain, knowing bool, out *outcome, change func(spec map[string]any) map[string]any) {
	t.Helper()
	d := istiotest.NewGenerator(seed, 7)
	in := d.World(plain)
	e, err := New(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	in.Translators = map[v1alpha1.EnforcerName]policy.Translator{v1alpha1.EnforcerIstio: translator{e}}
	s := policy.NewSnapshot(in)
	units := s.Compile(istiotest.Noon)
	if knowing {
		e = e.WithUnits(units)
	}
	cluster := istiotest.Pick(d, "m1", "m2", "m3", "unnamed")
	m := mesh{ambient: cluster == "m2"}
	refused := len(s.Refusals()) > 0 && !plain
	for _, u := range units {
		r, err := e.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		refused = refused || len(r.RefusedBy(cluster)) > 0
		if mode, ok := u.ClusterModes[cluster]; ok && mode == v1alpha1.ModeObserve || !ok && u.Mode == v1alpha1.ModeObserve {
			continue // the member gets no object
		}
		for _, o := range r.Objects {
			spec := o.Object.Spec
			if other, ok := o.Overrides[cluster]; ok {
				spec = other
			}
			if change != nil {
				if spec = change(spec); spec == nil {
					continue
				}
			}
			if err := m.add(spec); err != nil && change == nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	for range 30 {
		labels := istiotest.Pick(d, d.Destinations()...)
		x := d.Connection(s, labels, cluster)
		if x.Unmeshed && cluster == "m1" {
			continue // mutual TLS is required: it cannot connect
		}
		q, tr := x.Query, x.Traffic
		decision := s.Decide(q)
		means := decision.Verdict != policy.Denied && decision.Verdict != policy.DefaultDenied
		passes := m.passes(labels, tr)
		exact := !refused && !x.Unmeshed && istiotest.SameMode(s, &q)
		if knowing && change == nil && !x.Unmeshed {
			out.decideEffective(s, &q, passes, fmt.Sprintf("seed %d in %s", seed, cluster), m.policies)
		}
		switch {
		case passes && !means, exact && passes != means:
			out.disagreements = append(out.disagreements, fmt.Sprintf("seed %d in %s: the mesh lets it through: %v, the statements mean %s (%v)\n%+v\n%+v\n%+v",
				seed, cluster, passes, decision.Verdict, decision.Statements, q, tr, m.policies))
		case exact:
			out.exact++
			out.met.Add(istiotest.Features(&in, s, &q, &decision))
			out.words[decision.Verdict]++
		case passes != means:
			out.stricter++
		case decision.Verdict == policy.Allowed:
			out.let++
		}
	}
}

func TestMeshAgreesWithDecide(t *testing.T) {
	norace.SkipUnderRace(t)
	for name, tc := range map[string]struct {
		reason                  string
		plain                   bool
		leastExact, leastStrict int
		leastLet                int
	}{
		"Plain":   {reason: "nothing is refused, so the mesh does what the statements mean", plain: true, leastExact: 8000},
		"Refused": {reason: "what is refused may close more, and never opens anything", leastStrict: 300, leastLet: 300},
	} {
		t.Run(name, func(t *testing.T) {
			out := newOutcome()
			for seed := range *worlds {
				compare(t, seed, tc.plain, true, &out, nil)
			}
			for _, text := range out.disagreements[:min(3, len(out.disagreements))] {
				t.Errorf("%s: %s", tc.reason, text)
			}
			for _, text := range out.unexplained[:min(3, len(out.unexplained))] {
				t.Errorf("what the members have: %s", text)
			}
			if out.effective < 15000 ||
				!tc.plain &&
					(out.differs[v1alpha1.RefusedUnsupported] < 500 || out.differs[v1alpha1.RefusedShadowingDeny] < 100 || out.differs["Waiting"] < 100) {
				t.Errorf("%d decisions by what the members have, differing because of %v: too few to notice a mistake", out.effective, out.differs)
			}
			if n := len(out.disagreements); n > 0 {
				t.Fatalf("%d disagreements", n)
			}
			if out.exact < tc.leastExact || out.stricter < tc.leastStrict || out.let < tc.leastLet {
				t.Errorf("%d decisions alike, %d stricter, %d let through: too few to notice a mistake", out.exact, out.stricter, out.let)
			}
			for _, w := range []policy.Verdict{policy.Allowed, policy.Denied, policy.DefaultDenied, policy.Audited, policy.Unmanaged} {
				if tc.plain && out.words[w] < 100 {
					t.Errorf("only %d of the compared decisions are %s", out.words[w], w)
				}
			}
			if missing := out.met.Missing(); tc.plain && len(missing) > 0 {
				t.Errorf("features of the compared decisions: %s", strings.Join(missing, "; "))
			}
			t.Logf("seeds 0 to %d; how often features and pairs of them met: %v", *worlds-1, out.met)
			t.Logf("%d alike, %d stricter, %d let through, %v", out.exact, out.stricter, out.let, slices.Sorted(maps.Keys(out.words)))
			t.Logf("%d decisions by what the members have; reasons why they differ from the statements: %v", out.effective, out.differs)
		})
	}
}

// TestEffectiveEnforcedIsEffectiveInEnforce compares the decision as if resources were in Enforce with the decision after
// their mode is changed to Enforce, in random worlds.
func TestEffectiveEnforcedIsEffectiveInEnforce(t *testing.T) {
	norace.SkipUnderRace(t)
	e, err := New(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	compared, differ := 0, 0
	for seed := range uint64(1000) {
		d := istiotest.NewGenerator(seed, 19)
		in := d.World(false)
		in.Translators = map[v1alpha1.EnforcerName]policy.Translator{v1alpha1.EnforcerIstio: translator{e}}
		s := policy.NewSnapshot(in)
		for range 6 {
			q := d.Sender(s).Query
			q.Resources, q.Cluster, q.At, q.Protocol = istiotest.Several(
				d,
				2,
				istiotest.RedisHead+"bobs-cluster",
				istiotest.SiteHead+"shop",
			), istiotest.Pick(
				d,
				"m1",
				"m2",
				"m3",
				"",
			), istiotest.Noon, v1alpha1.ProtocolTCP
			q.Port = istiotest.Pick[uint16](d, 6379, 6380, 80, 8080, 9121)
			if slices.ContainsFunc(q.Resources, func(r string) bool { _, ok := s.ResourceClassOf(r); return !ok }) {
				continue // such a resource cannot be onboarded
			}
			closed := in
			closed.Resources = slices.DeleteFunc(slices.Clone(in.Resources), func(p *v1alpha1.ProtectedResource) bool {
				return slices.Contains(q.Resources, string(p.Spec.Resource))
			})
			for _, name := range q.Resources {
				closed.Resources = append(
					closed.Resources,
					&v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(name), Mode: v1alpha1.ModeEnforce}},
				)
			}
			want, got := policy.NewSnapshot(closed).DecideEffective(&q), s.EffectiveEnforced(&q, nil)
			if want.Verdict != got.Verdict || !slices.Equal(want.Statements, got.Statements) {
				t.Fatalf("seed %d: %+v: in Enforce %s by %v, as if %s by %v", seed, q, want.Verdict, want.Statements, got.Verdict, got.Statements)
			}
			compared++
			if s.DecideEnforced(&q, nil).Verdict != got.Verdict {
				differ++
			}
		}
	}
	if compared < 4000 || differ < 500 {
		t.Errorf("%d decisions, and what is left out shows in %d: too few to notice a mistake", compared, differ)
	}
}
