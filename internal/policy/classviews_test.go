package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/norace"
)

// rollingOut returns a class whose rules of before still count, except in the members in which the rollout has begun.
func rollingOut(c *v1alpha1.ResourceClass, settled v1alpha1.ClassRules, begun ...v1alpha1.ClusterName) *v1alpha1.ResourceClass {
	out := c.DeepCopy()
	out.Status.Rollout = &v1alpha1.ClassRolloutStatus{Settled: settled}
	if len(begun) > 0 {
		out.Status.Rollout.Progress = &v1alpha1.RolloutProgress{Begun: v1alpha1.MemberSet{Clusters: begun}}
	}
	return out
}

// TestClassRulesCountInWaves checks that decisions and units have the rules of the spec where the rollout of the class has begun, and the
// settled ones elsewhere.
func TestClassRulesCountInWaves(t *testing.T) {
	before := v1alpha1.ClassRules{
		OtherPorts: v1alpha1.OtherPortsAllow,
		Actions:    []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{port(7000)}}},
	}
	for _, tc := range []struct {
		reason string
		class  *v1alpha1.ResourceClass
		// present are the members in which the rules of the spec count.
		present map[string]bool
	}{
		{"no status", redisClass(), map[string]bool{"m1": true, "m2": true, "": true}},
		{"the status has the rules of the spec", rollingOut(redisClass(), redisClass().Spec.Rules()), map[string]bool{"m1": true, "m2": true, "": true}},
		{"the adapter has not seen the change", rollingOut(redisClass(), before), map[string]bool{}},
		{"the first wave has begun", rollingOut(redisClass(), before, "m1"), map[string]bool{"m1": true}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			input := world(protect(bobs, v1alpha1.ModeEnforce), statementOf("s", Allow, app888, "redis:connect", bobs))
			input.ResourceClasses[0] = tc.class
			input.Clusters = []Cluster{{Name: "m1"}}
			for _, s := range []*Snapshot{NewSnapshot(input), NewSnapshot(world()).Next(input)} {
				for _, cluster := range []string{"m1", "m2", ""} {
					allowed, denied := uint16(7000), uint16(6379)
					other := Allowed
					if tc.present[cluster] {
						allowed, denied, other = 6379, 7000, DefaultDenied
					}
					for port, want := range map[uint16]Verdict{allowed: Allowed, denied: other, 9999: other} {
						q := Query{
							Subjects:  []string{app888},
							Resources: []string{bobs},
							Cluster:   cluster,
							Protocol:  v1alpha1.ProtocolTCP,
							Port:      port,
							At:        noon,
						}
						if got := s.Decide(q).Verdict; got != want {
							t.Errorf("port %d in %q is %s, want %s", port, cluster, got, want)
						}
						if got := s.DecideEffective(&q).Verdict; got != want {
							t.Errorf("port %d in %q is effectively %s, want %s", port, cluster, got, want)
						}
					}
					u, ok := s.In(cluster).CompileResource(bobs, noon)
					if !ok || len(u.Rules) != 1 || u.Rules[0].Ports[0].Port != int32(allowed) {
						t.Errorf("the unit in %q has the rules %+v, want port %d", cluster, u.Rules, allowed)
					}
				}
			}
		})
	}
}

// rollClasses puts some classes of a world into rollouts and returns, by member, the world in which they are in none.
func (d dice) rollClasses(in *Input, members []string) map[string]Input {
	out := map[string]Input{}
	for _, m := range members {
		plain := *in
		plain.ResourceClasses = slices.Clone(in.ResourceClasses)
		out[m] = plain
	}
	in.ResourceClasses = slices.Clone(in.ResourceClasses)
	for i, c := range in.ResourceClasses {
		settled := v1alpha1.ClassRules{OtherPorts: pick(d, v1alpha1.OtherPortsAllow, v1alpha1.OtherPortsDeny)}
		for _, a := range c.Spec.Actions {
			if d.IntN(3) > 0 {
				a.Ports = []v1alpha1.Port{pick(d, port(80), port(6379), port(6380), ports(6000, 7000, v1alpha1.ProtocolTCP))}
			}
			if d.IntN(4) > 0 {
				settled.Actions = append(settled.Actions, a)
			}
		}
		var begun []v1alpha1.ClusterName
		for _, m := range members {
			if m != "" && d.IntN(2) == 0 {
				begun = append(begun, v1alpha1.ClusterName(m))
			}
		}
		in.ResourceClasses[i] = rollingOut(c, settled, begun...)
		for _, m := range members {
			plain := c.DeepCopy()
			if m == "" || !slices.Contains(begun, v1alpha1.ClusterName(m)) {
				plain.Spec.Actions, plain.Spec.OtherPorts = settled.Actions, settled.OtherPorts
			}
			out[m].ResourceClasses[i] = plain
		}
	}
	return out
}

// TestMembersDecideByTheirRules checks that each member is decided as if its rules were those of the classes, and that ChangedUnits names
// every unit that differs in some member.
func TestMembersDecideByTheirRules(t *testing.T) {
	norace.SkipUnderRace(t)
	members := []string{"m1", "m2", "m3", ""}
	s := NewSnapshot(Input{})
	for seed := range uint64(80) {
		d := dice{rand.New(rand.NewPCG(seed, 21))}
		in := d.world()
		d.breakWorld(&in)
		plain := d.rollClasses(&in, members)
		next := s.Next(in)
		checkMembers(t, fmt.Sprintf("seed %d", seed), d, next, plain)
		in.Policies = append(slices.Clone(in.Policies), acp("new", d.statement("s", []string{bobs, shop})))
		after := next.Next(in)
		for m, p := range plain {
			p.Policies = in.Policies
			plain[m] = p
		}
		checkMembers(t, fmt.Sprintf("seed %d after a change", seed), d, after, plain)
		changed := ChangedUnits(next, after)
		for _, m := range members {
			for _, name := range differing(units(t, next.In(m), noon), units(t, after.In(m), noon)) {
				if !slices.Contains(changed, name) {
					t.Fatalf("seed %d: %s differs in %q and is not in %v", seed, name, m, changed)
				}
			}
		}
		s = after
	}
}

func checkMembers(t *testing.T, what string, d dice, s *Snapshot, plain map[string]Input) {
	t.Helper()
	for m, in := range plain {
		alone := NewSnapshot(in)
		if diff := cmp.Diff(units(t, alone, noon), units(t, s.In(m), noon)); diff != "" {
			t.Fatalf("%s: the units in %q: -alone +in waves:\n%s", what, m, diff)
		}
		for range 10 {
			q := d.query()
			q.Cluster = m
			if diff := cmp.Diff(alone.Decide(q), s.Decide(q)); diff != "" {
				t.Fatalf("%s: Decide(%+v): -alone +in waves:\n%s", what, q, diff)
			}
			if diff := cmp.Diff(alone.DecideEffective(&q), s.DecideEffective(&q)); diff != "" {
				t.Fatalf("%s: DecideEffective(%+v): -alone +in waves:\n%s", what, q, diff)
			}
			if diff := cmp.Diff(alone.EffectiveEnforced(&q, nil), s.EffectiveEnforced(&q, nil)); diff != "" {
				t.Fatalf("%s: EffectiveEnforced(%+v): -alone +in waves:\n%s", what, q, diff)
			}
			if len(q.Subjects) == 1 && len(q.Resources) == 1 && !q.Source.IsValid() {
				got := s.DecideResolved(s.ResolveSubject(q.Subjects[0]), s.ResolveResource(q.Resources[0]), &q, nil)
				if diff := cmp.Diff(alone.Decide(q), got); diff != "" {
					t.Fatalf("%s: DecideResolved(%+v): -alone +in waves:\n%s", what, q, diff)
				}
			}
		}
	}
}
