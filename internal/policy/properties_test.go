package policy

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/norace"
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

// dataplane decides a connection by the rules of units, as an engine would in which allows add up, denies win, and any
// unit in Enforce closes the pod. It compares labels and addresses, no names.
type dataplane struct {
	units  []Unit
	groups []ExternalGroup
}

// labelsOf are the labels of a pod that carries the names.
func labelsOf(names []string) map[string]string {
	out := map[string]string{}
	for head, key := range map[string]string{
		appHead + "app/": "com.trip/appid", svcHead: "com.trip/service", redisHead: "com.trip/redis-cluster", webHead: "com.trip/site",
	} {
		for _, n := range names {
			if value, ok := strings.CutPrefix(n, head); ok {
				out[key] = value
			}
		}
	}
	return out
}

func (d dataplane) passes(q Query) bool {
	source, destination := labelsOf(q.Subjects), labelsOf(q.Resources)
	closed, allowed := false, false
	for i := range d.units {
		u := &d.units[i]
		value, carries := destination[u.LabelKey]
		if !carries || !u.Wildcard && value != u.LabelValue || len(u.LabelValues) > 0 && !slices.Contains(u.LabelValues, value) ||
			u.Mode == v1alpha1.ModeObserve {
			continue
		}
		closed = closed || u.Mode == v1alpha1.ModeEnforce
		allowed = allowed || len(destination) == 1 && portsContain(u.OpenPorts, q.Protocol, q.Port)
		for j := range u.Rules {
			r := &u.Rules[j]
			switch {
			case !portsContain(r.Ports, q.Protocol, q.Port) || !d.isPeer(r, source, q.Source):
			case u.Mode != v1alpha1.ModeEnforce && len(r.HTTP) > 0: // not rendered
			case r.Effect == Allow:
				allowed = true
			case u.Mode == v1alpha1.ModeEnforce:
				return false
			}
		}
	}
	return allowed || !closed
}

func (d dataplane) isPeer(r *Rule, labels map[string]string, address netip.Addr) bool {
	has := func(p netip.Prefix) bool { return p.Contains(address) }
	if r.Anyone || slices.ContainsFunc(r.Prefixes, has) {
		return true
	}
	for _, s := range r.Subjects {
		if value, ok := labels[s.LabelKey]; ok && (s.Any || slices.Contains(s.Values, value)) {
			return true
		}
	}
	return slices.ContainsFunc(d.groups, func(g ExternalGroup) bool {
		named := slices.Contains(r.External, g.ID) || slices.Contains(r.ExternalClasses, g.ClassID)
		return named && (slices.ContainsFunc(g.Prefixes, has) || r.Effect == Deny && slices.ContainsFunc(g.Contested, has))
	})
}

// TestUnitsNeverAllowMoreThanDecide checks that the units let through nothing that Decide refuses and, without refusals, the same.
func TestUnitsNeverAllowMoreThanDecide(t *testing.T) {
	norace.SkipUnderRace(t)
	same, less, outside := 0, 0, 0
	for seed := range uint64(4000) {
		d := dice{rand.New(rand.NewPCG(seed, 3))}
		in := d.world()
		s := NewSnapshot(in)
		plane := dataplane{units: s.Compile(noon), groups: s.ExternalGroups()}
		complete := len(s.Refusals()) == 0
		for range 12 {
			q := d.query()
			q.Resources = several(d, 2, pick(d, bobs, orders), shop)
			q.Cluster, q.At, q.Method, q.Path = "", noon, "", ""
			decided := s.Decide(q)
			means := decided.Verdict != Denied && decided.Verdict != DefaultDenied
			passes := plane.passes(q)
			switch {
			case passes && !means:
				t.Fatalf("seed %d: the units let through what is %s: %+v\n%s", seed, decided.Verdict, q, mustJSON(t, plane.units))
			case means && !passes && complete:
				t.Fatalf("seed %d: nothing is refused, and the units refuse what is %s: %+v\n%s", seed, decided.Verdict, q, mustJSON(t, plane.units))
			case means && !passes:
				less++
			case decided.Verdict != Unmanaged:
				same++
				if q.Source.IsValid() {
					outside++
				}
			}
		}
	}
	if same < 5000 || less < 300 || outside < 2000 {
		t.Errorf("%d decisions alike, %d of them from outside, and %d where a refusal shows: too few to notice a mistake", same, outside, less)
	}
}

// An exact unit must contain what the wildcard units give to its resource.
func TestInheritedRules(t *testing.T) {
	s := NewSnapshot(
		world(protect(bobs, v1alpha1.ModeEnforce), protect(orders, v1alpha1.ModeEnforce), statementOf("a", Allow, app888, "redis:connect", allRedis),
			statementOf("b", Allow, app889, "redis:connect", redisHead+"bobs-*"), statementOf("c", Deny, app889, "redis:connect", allRedis)),
	)
	for resource, want := range map[string][]Ref{bobs: {{"p-a", "a"}, {"p-b", "b"}}, orders: {{"p-a", "a"}}} {
		u, ok := s.CompileResource(resource, noon)
		var got []Ref
		for _, r := range u.Inherited {
			got = append(got, r.From...)
		}
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: inherited -want +got:\n%s", resource, diff)
		}
	}
}
