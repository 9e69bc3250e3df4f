package policy

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestCompileIsIndependentOfOrder(t *testing.T) {
	for seed := range uint64(150) {
		d := dice{rand.New(rand.NewPCG(seed, 2))}
		in := d.world()
		want := mustJSON(t, compiled(NewSnapshot(in)))
		for range 3 {
			shuffle(d, in.Policies)
			shuffle(d, in.Resources)
			shuffle(d, in.Workloads)
			shuffle(d, in.ResourceClasses)
			for _, p := range in.Policies {
				shuffle(d, p.Spec.Statements)
				for i := range p.Spec.Statements {
					st := &p.Spec.Statements[i]
					shuffle(d, st.Subjects)
					shuffle(d, st.Actions)
					shuffle(d, st.Resources)
				}
			}
			if diff := cmp.Diff(want, mustJSON(t, compiled(NewSnapshot(in)))); diff != "" {
				t.Fatalf("seed %d: the order of the input shows:\n%s", seed, diff)
			}
		}
	}
}

func TestNextIsNewSnapshot(t *testing.T) {
	s := NewSnapshot(Input{})
	for seed := range uint64(100) {
		d := dice{rand.New(rand.NewPCG(seed, 4))}
		in := d.world()
		s = s.Next(in)
		// Changes one after the other, each on the snapshot before, with most pointers kept.
		for step := range 6 {
			switch other := d.world(); step {
			case 0:
				in.ResourceClasses = in.ResourceClasses[:1]
			case 1:
				in.ResourceClasses = other.ResourceClasses
			case 2:
				in.SubjectClasses = in.SubjectClasses[1:]
			case 3:
				in.Resources = other.Resources
			case 4:
				in.Policies = append(in.Policies, acp("new", d.statement("s", []string{bobs, shop})))
			default:
				in.Policies = in.Policies[1:]
			}
			s = s.Next(in)
			if diff := cmp.Diff(mustJSON(t, compiled(NewSnapshot(in))), mustJSON(t, compiled(s))); diff != "" {
				t.Fatalf("seed %d, step %d: -anew +next:\n%s", seed, step, diff)
			}
		}
	}
}

func compiled(s *Snapshot) any {
	return []any{s.Compile(noon), s.Refusals(), s.Problems(), s.WhoCanReach(bobs, noon), s.WhatCanReach(app888, noon)}
}

func shuffle[T any](d dice, s []T) { d.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] }) }

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dataplane decides a connection by the rules of the units of a pod, as an engine would in which allows add up, denies
// win, and any unit in Enforce closes the pod.
func dataplane(units []Unit, q Query) bool {
	matches := func(r Rule) bool {
		return portsContain(r.Ports, q.Protocol, q.Port) && slices.ContainsFunc(r.Subjects, func(s SubjectSelector) bool {
			head := map[string]string{"com.trip/appid": appHead + "app/", "com.trip/service": svcHead}[s.LabelKey]
			return slices.ContainsFunc(s.Values, func(v string) bool { return slices.Contains(q.Subjects, head+v) })
		})
	}
	closed, allowed := false, false
	for _, u := range units {
		closed = closed || u.Mode == v1alpha1.ModeEnforce
		allowed = allowed || len(q.Resources) == 1 && portsContain(u.OpenPorts, q.Protocol, q.Port)
		for _, r := range u.Rules {
			switch {
			case !matches(r):
			case r.Effect == Allow:
				allowed = true
			case u.Mode == v1alpha1.ModeEnforce:
				return false
			}
		}
	}
	return allowed || !closed
}

// What the units let through must be what the statements mean; where nothing is refused, the other way round, too.
func TestUnitsNeverAllowMoreThanDecide(t *testing.T) {
	same, less := 0, 0
	for seed := range uint64(4000) {
		d := dice{rand.New(rand.NewPCG(seed, 3))}
		in := d.world()
		s := NewSnapshot(in)
		for range 12 {
			q := d.query()
			q.Resources = several(d, 2, pick(d, bobs, orders), shop)
			q.Cluster, q.At, q.Source, q.Method, q.Path = "", noon, netip.Addr{}, "", ""
			var units []Unit
			complete := true
			for _, r := range q.Resources {
				// Where the mode is Observe the unit has no place.
				if u, ok := s.CompileResource(r, noon); ok && u.Mode != v1alpha1.ModeObserve {
					units = append(units, u)
					complete = complete && len(u.Refused) == 0
				}
				complete = complete && !slices.ContainsFunc(s.WhoCanReach(r, noon), func(g Grant) bool { return g.Wildcard && g.Effect == Allow })
			}
			decided := s.Decide(q)
			means := decided.Word != Denied && decided.Word != DefaultDenied
			passes := dataplane(units, q)
			switch {
			case passes && !means:
				t.Fatalf("seed %d: the units let through what is %s: %+v\n%s", seed, decided.Word, q, mustJSON(t, units))
			case means && !passes && complete:
				t.Fatalf("seed %d: nothing is refused, and the units refuse what is %s: %+v\n%s", seed, decided.Word, q, mustJSON(t, units))
			case means && !passes:
				less++
			case decided.Word != Unmanaged:
				same++
			}
		}
	}
	if same < 5000 || less < 500 {
		t.Errorf("%d decisions alike and %d where a refusal shows: too few to notice a mistake", same, less)
	}
}
