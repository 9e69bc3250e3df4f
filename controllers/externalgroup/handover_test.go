package externalgroup

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// carried is a fleet of two members that have what KubeFed propagated; late is what it has not propagated to m2 yet.
type carried struct {
	two
	host *store
	late map[string]*federation.Object
	away bool
}

func (c *carried) Observe(cluster, object string) federation.Observation {
	o, ok := c.host.objects[object]
	if before, waits := c.late[object]; waits && cluster == "m2" {
		o, ok = before, before != nil
	}
	seen := federation.Observation{Registered: true, Reachable: !c.away || cluster == "m1"}
	if ok && len(o.Placement) > 0 {
		seen.Object = &federation.Observed{Name: object, Revision: o.RevisionIn(cluster)}
	}
	return seen
}

func (m *machines) machine(name string, subject int, addresses ...string) *v1alpha1.ExternalWorkload {
	return &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(fmt.Sprint(subjectHead, subject)), Addresses: addresses}}
}

// has returns the addresses of a subject in every member that follows.
func (m *machines) has(subject int) []string {
	o, ok := m.host.objects[v1alpha1.ObjectPrefix+policy.UnitID(fmt.Sprint(subjectHead, subject))]
	if !ok || len(o.Placement) == 0 {
		return nil
	}
	var out []string
	for _, p := range addressesIn(o.TemplateSpec) {
		out = append(out, p.String())
	}
	return out
}

func TestAnAddressStaysUntilItsNextSubjectHasIt(t *testing.T) {
	// The first change takes addresses from subject 1. They stay until subject 2's group is in both members.
	type change struct{ old, now *v1alpha1.ExternalWorkload }
	const a, b = "10.9.0.1", "10.9.0.2"
	var m *machines
	for name, c := range map[string]struct {
		reason string
		had    []string
		change func() []change
		away   bool
		// before and after subject 2's group is in the members
		before, after []string
	}{
		"Passes": {"a machine becomes another subject's", []string{a, b}, func() []change {
			return []change{{m.machine("x", 1, a, b), m.machine("x", 1, b)}, {nil, m.machine("y", 2, a)}}
		}, false, []string{a + "/32", b + "/32"}, []string{b + "/32"}},
		"Last": {"the last one does", []string{a}, func() []change {
			return []change{{m.machine("x", 1, a), nil}, {nil, m.machine("y", 2, a)}}
		}, false, []string{a + "/32"}, nil},
		"Part": {"a part of a network does", []string{"10.9.0.0/30"}, func() []change { return []change{{nil, m.machine("y", 2, b)}} }, false,
			[]string{"10.9.0.0/30"}, []string{"10.9.0.0/31", "10.9.0.3/32"}},
		"Network": {"a network around it is another's", []string{a}, func() []change {
			return []change{{m.machine("x", 1, a), nil}, {nil, m.machine("y", 2, "10.9.0.0/24")}}
		}, false, []string{a + "/32"}, nil},
		"Revoked": {"nobody gets it, so it goes at once", []string{a, b}, func() []change {
			return []change{{m.machine("x", 1, a, b), m.machine("x", 1, b)}}
		}, false, []string{b + "/32"}, []string{b + "/32"}},
		"RevokedBeside": {"one is nobody's, so both go at once", []string{"10.9.0.0/30"}, func() []change {
			return []change{{m.machine("x", 1, "10.9.0.0/30"), nil}, {nil, m.machine("y", 2, b)}}
		}, false, nil, nil},
		"Away": {"a member that does not answer delays nobody", []string{a}, func() []change {
			return []change{{m.machine("x", 1, a), nil}, {nil, m.machine("y", 2, a)}}
		}, true, nil, nil},
		"Quarrel": {"an address that two claim is nobody's to allow", []string{a, b}, func() []change { return []change{{nil, m.machine("y", 2, a)}} }, false,
			[]string{b + "/32"}, []string{b + "/32"}},
	} {
		for _, impatient := range []bool{false, true} {
			t.Run(fmt.Sprint(name, impatient), func(t *testing.T) {
				m = newMachines(t, 0, 1)
				clock := testclock.NewFakeClock(time.Now())
				members := &carried{host: m.host, late: map[string]*federation.Object{}, away: c.away}
				m.groups.Fleet, m.groups.Clock = members, clock
				m.change(nil, m.machine("x", 1, c.had...))
				m.change(nil, m.machine("z", 2, "10.8.0.1"))
				m.work()
				two := v1alpha1.ObjectPrefix + policy.UnitID(fmt.Sprint(subjectHead, 2))
				members.late[two] = m.host.objects[two]
				for _, x := range c.change() {
					switch {
					case x.old == nil:
						m.change(nil, x.now)
					case x.now == nil:
						m.change(x.old, nil)
					default:
						x.now.Generation = 2
						m.change(x.old, x.now)
					}
				}
				look := func(what string, want []string) {
					t.Helper()
					m.work()
					result, err := m.groups.Reconcile(t.Context(), fmt.Sprint(subjectHead, 1))
					if err != nil {
						t.Fatal(err)
					}
					got := m.has(1)
					slices.Sort(got)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: %s, -want +got:\n%s", c.reason, what, diff)
					}
					if waits := result.RequeueAfter > 0; waits != !slices.Equal(got, c.after) {
						t.Errorf("%s: %s, looked at again: %t", c.reason, what, waits)
					}
				}
				look("before the other has it", c.before)
				if impatient {
					clock.Step(maxHandoverDelay)
				} else {
					clear(members.late)
				}
				look("then", c.after)
			})
		}
	}
}
