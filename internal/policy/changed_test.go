package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/norace"
)

// units are all units by name.
func units(t *testing.T, s *Snapshot, at time.Time) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, u := range s.Compile(at) {
		out[u.Resource] = mustJSON(t, u)
	}
	return out
}

func differing(a, b map[string]string) (names []string) {
	for name := range a {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	return sortedUnique(names)
}

// TestChangedMissesNothing checks that ChangedUnits names every unit that differs, and few others after small changes.
func TestChangedMissesNothing(t *testing.T) {
	norace.SkipUnderRace(t)
	var differ, named int
	for seed := range uint64(400) {
		d := dice{rand.New(rand.NewPCG(seed, 8))}
		in := d.world()
		s := NewSnapshot(in)
		for step := range 6 {
			other := d.world()
			switch step {
			case 0:
				in.Policies = append(slices.Clone(in.Policies), acp("new", d.statement("s", []string{bobs, shop})))
			case 1:
				in.Policies = in.Policies[1:]
			case 2:
				in.Resources = append(slices.Clone(in.Resources), protect(pick(d, bobs, orders, redisHead+"new"), d.mode(), as("new")))
			case 3:
				in.Workloads = other.Workloads
			case 4:
				in.KnownNames = append(slices.Clone(in.KnownNames), appHead+"app/team-8", redisHead+"bobs-9")
			case 5:
				in.Resources = in.Resources[1:]
			}
			next := s.Next(in)
			if step == 3 && seed%2 == 0 {
				next = NewSnapshot(in) // not made from the older one
			}
			got, want := ChangedUnits(s, next), differing(units(t, s, noon), units(t, next, noon))
			for _, name := range want {
				if !slices.Contains(got, name) {
					t.Fatalf("seed %d, step %d: %s differs and is not in %v", seed, step, name, got)
				}
			}
			differ, named = differ+len(want), named+len(got)
			s = next
		}
		late := noon.Add(2 * time.Hour)
		got, want := s.ChangedUnitsBetween(noon, late), differing(units(t, s, noon), units(t, s, late))
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Fatalf("seed %d: %s differs later and is not in %v", seed, name, got)
			}
		}
	}
	if differ < 1000 || named > 6*differ {
		t.Errorf("%d units differ and %d are named: too few to notice a mistake, or too many to be of use", differ, named)
	}
}

func TestChangedNamesOnlyWhatIsTouched(t *testing.T) {
	in := fleet(20, 3)
	in.Policies[7].Spec.Statements = append(in.Policies[7].Spec.Statements, statementOf("wild", Allow, app888, "redis:connect", redisHead+"r1*"))
	s := NewSnapshot(in)
	name := func(i int) string { return fmt.Sprintf("%sr%d", redisHead, i) }
	change := func(f func(in *Input)) []string {
		next := in
		next.Policies, next.Resources = slices.Clone(in.Policies), slices.Clone(in.Resources)
		f(&next)
		return ChangedUnits(s, s.Next(next))
	}
	for _, tc := range []struct {
		reason    string
		got, want []string
	}{
		{"nothing", change(func(*Input) {}), nil},
		{"a grant", change(func(in *Input) { in.Policies[3] = in.Policies[3].DeepCopy() }), []string{name(3)}},
		{"a mode", change(func(in *Input) { in.Resources[4] = protect(name(4), v1alpha1.ModeAudit) }), []string{name(4)}},
		{"a wildcard deny is in every unit that it covers", change(func(in *Input) {
			in.Policies = append(in.Policies, acp("deny", statementOf("d", Deny, app889, "redis:connect", redisHead+"r19*")))
		}), []string{name(19)}},
		{"a wildcard allow has its unit, and those that inherit from it", change(func(in *Input) {
			in.Policies = append(in.Policies, acp("allow", statementOf("a", Allow, app889, "redis:connect", redisHead+"r19*")))
		}), []string{name(19), redisHead + "r19*"}},
		{"an address of one who is named", change(func(in *Input) {
			in.Workloads = []*v1alpha1.ExternalWorkload{workload("vm", app888, "10.5.0.7")}
		}), []string{name(10), name(11), name(12), name(13), name(14), name(15), name(16), name(17), name(18), name(19), name(1), redisHead + "r1*"}},
		{"a name under a prefix of resources", change(func(in *Input) { in.KnownNames = []string{redisHead + "r12345"} }),
			[]string{name(10), name(11), name(12), name(13), name(14), name(15), name(16), name(17), name(18), name(19), name(1), redisHead + "r1*"}},
		{"a name under none", change(func(in *Input) { in.KnownNames = []string{redisHead + "r2345", appHead + "app/new"} }), nil},
		{"an address of one whom no statement names", change(func(in *Input) {
			in.Workloads = []*v1alpha1.ExternalWorkload{workload("vm", appHead+"app/nobody", "10.5.0.7")}
		}), nil},
	} {
		slices.Sort(tc.want)
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

// TestUnitsAllowing checks that every unit with a rule that allows the addresses of a subject is named.
func TestUnitsAllowing(t *testing.T) {
	found := 0
	for seed := range uint64(600) {
		s := NewSnapshot(dice{rand.New(rand.NewPCG(seed, 9))}.world())
		for _, u := range s.Compile(time.Unix(1e9, 0)) {
			for i := range u.Rules {
				for _, g := range s.ExternalGroups() {
					if u.Rules[i].Effect != Allow || !slices.Contains(u.Rules[i].External, g.ID) {
						continue
					}
					found++
					if !slices.Contains(s.UnitsAllowing(g.Subject), u.Resource) {
						t.Errorf("seed %d: %s allows %s, and only %v are named", seed, u.Resource, g.Subject, s.UnitsAllowing(g.Subject))
					}
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d rules allow addresses of workloads", found)
	}
}
