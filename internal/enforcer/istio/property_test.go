package istio

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/norace"
	"github.com/acp-io/acp/internal/policy"
)

// sender is a source as the statements and as the mesh know it.
type sender struct {
	query   policy.Query
	traffic traffic
	// unmeshed pods have a name in statements and no certificate.
	unmeshed bool
}

func (d dice) sender(s *policy.Snapshot) sender {
	labels := pick(d, map[string]string{"com.trip/appid": "888"}, map[string]string{"com.trip/appid": "889"}, map[string]string{"com.trip/service": "cart"},
		map[string]string{"com.trip/service": "888"}, map[string]string{"com.trip/appid": "8889"})
	x := sender{traffic: traffic{address: netip.MustParseAddr(pick(d, "10.0.3.4", "10.1.3.4", "fd00::7"))}}
	switch d.IntN(6) {
	case 0: // a node
	case 1, 2:
		x.query.Source = netip.MustParseAddr(pick(d, "10.5.0.9", "10.5.0.8", "10.5.7.7", "10.9.9.9", "2001:db8::1", "2001:db8:1::1", "2001:dead::1"))
		x.traffic.address = x.query.Source
	case 3:
		x.query.Subjects, x.unmeshed = s.SubjectsOf(labels), true
	default: // in the mesh; some from addresses outside the fleet, which must not count
		x.query.Subjects = s.SubjectsOf(labels)
		if d.IntN(4) == 0 {
			x.traffic.address = netip.MustParseAddr(pick(d, "10.5.0.9", "10.5.0.8", "2001:db8::1"))
		}
		account := "app-" + labels["com.trip/appid"]
		if v, ok := labels["com.trip/service"]; ok {
			account = "svc-" + v
		}
		x.traffic.principal = pick(d, "cluster.local", "other.domain") + "/ns/" + pick(d, "a", "sa") + "/sa/" + account
	}
	return x
}

// outcome of comparing one world in one member.
type outcome struct {
	exact, stricter int
	// let is how many connections passed in spite of refusals.
	let           int
	words         map[policy.Verdict]int
	met           met
	disagreements []string
	// effective is how often the decision by what the members have was compared, and differs how often it differs from the
	// statements as written, by the reason; untold are the differences without a reason, and the disagreements.
	effective int
	differs   map[string]int
	untold    []string
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
		o.untold = append(o.untold, fmt.Sprintf("%s: DecideEffective says %s, EffectiveInto %s: %+v", where, got.Verdict, into.Verdict, q))
	}
	if got.Verdict.LetsThrough() != passes {
		o.untold = append(
			o.untold,
			fmt.Sprintf("%s: the mesh lets it through: %v, the members have %s: %s\n%+v\n%+v", where, passes, got.Verdict, got.Explain(), q, policies),
		)
	}
	if !got.Differs() {
		return
	}
	if len(got.LeftOut)+len(got.Waiting) == 0 {
		o.untold = append(o.untold, fmt.Sprintf("%s: %s in place of %s, and nothing says why: %+v", where, got.Verdict, got.Written.Verdict, q))
	}
	for _, r := range got.LeftOut {
		o.differs[r.Reason]++
	}
	o.differs["Waiting"] += len(got.Waiting)
}

func newOutcome() outcome {
	return outcome{words: map[policy.Verdict]int{}, met: met{}, differs: map[string]int{}}
}

// worlds can be raised for a longer run: go test ./internal/enforcer/istio -run TestMesh -v -worlds 10000.
var worlds = flag.Uint64("worlds", 1000, "random worlds to compare, their seeds counted from 0")

// compare asks the statements and the mesh about random connections. change may break what is rendered.
func compare(t *testing.T, seed uint64, plain, knowing bool, out *outcome, change func(spec map[string]any) map[string]any) {
	t.Helper()
	d := dice{rand.New(rand.NewPCG(seed, 7))}
	in := d.world(plain)
	e, err := New(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	in.Translators = map[v1alpha1.EnforcerName]policy.Translator{v1alpha1.EnforcerIstio: translator{e}}
	s := policy.NewSnapshot(in)
	units := s.Compile(goldenTime)
	if knowing {
		e = e.WithUnits(units)
	}
	cluster := pick(d, "m1", "m2", "m3", "unnamed")
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
		labels := pick(
			d,
			map[string]string{"com.trip/redis-cluster": "bobs-cluster"},
			map[string]string{"com.trip/site": "shop"},
			map[string]string{
				"com.trip/redis-cluster": "orders-cache",
				"com.trip/site":          "shop",
			},
			map[string]string{"com.trip/redis-cluster": "bobs-cluster", "com.trip/site": "blog"},
		)
		x := d.sender(s)
		if x.unmeshed && cluster == "m1" {
			continue // mutual TLS is required: it cannot connect
		}
		q, tr := x.query, x.traffic
		q.Resources, q.Cluster, q.At, q.Protocol = s.ResourcesOf(labels), cluster, goldenTime, v1alpha1.ProtocolTCP
		q.Port = pick[uint16](d, 6379, 6379, 6380, 16380, 80, 8080, 8080, 9121)
		if q.Port == 80 || q.Port == 8080 { // their protocol is HTTP, so a request is what is decided
			q.Method, q.Path = pick(d, "GET", "POST", "PUT"), pick(d, "/", "/orders", "/orders/1", "/ordersx", "/a.css", "/axb")
		}
		tr.port, tr.method, tr.path = q.Port, q.Method, q.Path
		decision := s.Decide(q)
		means := decision.Verdict != policy.Denied && decision.Verdict != policy.DefaultDenied
		passes := m.passes(labels, tr)
		exact := !refused && !x.unmeshed && sameMode(s, q)
		if knowing && change == nil && !x.unmeshed {
			out.decideEffective(s, &q, passes, fmt.Sprintf("seed %d in %s", seed, cluster), m.policies)
		}
		switch {
		case passes && !means, exact && passes != means:
			out.disagreements = append(out.disagreements, fmt.Sprintf("seed %d in %s: the mesh lets it through: %v, the statements mean %s (%v)\n%+v\n%+v\n%+v",
				seed, cluster, passes, decision.Verdict, decision.Statements, q, tr, m.policies))
		case exact:
			out.exact++
			out.met.add(features(in, s, q, decision))
			out.words[decision.Verdict]++
		case passes != means:
			out.stricter++
		case decision.Verdict == policy.Allowed:
			out.let++
		}
	}
}

// sameMode reports whether all of the destination's resources have one mode. An allow of a resource in Audit or Observe
// cannot open, for Istio, what another resource of the pod closes.
func sameMode(s *policy.Snapshot, q policy.Query) bool {
	modes := map[v1alpha1.Mode]bool{}
	for _, r := range q.Resources {
		modes[s.EffectiveMode(r, q.Cluster, q.At)] = true
	}
	return len(modes) == 1 || len(q.Resources) == 0
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
			for _, text := range out.untold[:min(3, len(out.untold))] {
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
			if missing := out.met.missing(); tc.plain && len(missing) > 0 {
				t.Errorf("never compared: %s", strings.Join(missing, ", "))
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
		d := dice{rand.New(rand.NewPCG(seed, 19))}
		in := d.world(false)
		in.Translators = map[v1alpha1.EnforcerName]policy.Translator{v1alpha1.EnforcerIstio: translator{e}}
		s := policy.NewSnapshot(in)
		for range 6 {
			x := d.sender(s)
			q := x.query
			q.Resources, q.Cluster, q.At, q.Protocol = several(
				d,
				2,
				redis+"bobs-cluster",
				sites+"shop",
			), pick(
				d,
				"m1",
				"m2",
				"m3",
				"",
			), goldenTime, v1alpha1.ProtocolTCP
			q.Port = pick[uint16](d, 6379, 6380, 80, 8080, 9121)
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
