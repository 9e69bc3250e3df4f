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
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// propagatedMembers is a fleet of two members that have what KubeFed propagated.
type propagatedMembers struct {
	unreadMembers
	host *store
	// late has the former versions of objects that are not propagated to m2 yet.
	late map[string]*federation.Object
	// unreachable is whether m2 does not answer.
	unreachable bool
}

func (p *propagatedMembers) Observe(cluster, object string) federation.Observation {
	o, ok := p.host.objects[object]
	if before, waits := p.late[object]; waits && cluster == "m2" {
		o, ok = before, before != nil
	}
	seen := federation.Observation{Registered: true, Reachable: !p.unreachable || cluster == "m1"}
	if ok && len(o.Placement) > 0 {
		seen.Object = &federation.Observed{Name: object, Revision: o.RevisionIn(cluster)}
	}
	return seen
}

func (m *machines) machine(name string, subject int, addresses ...string) *v1alpha1.ExternalWorkload {
	return &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(fmt.Sprint(subjectHead, subject)), Addresses: addresses}}
}

// addressesOf returns the addresses in the group of a subject.
func (m *machines) addressesOf(subject int) []string {
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

// TestMovedAddressStaysUntilItsNewSubjectIsPropagated checks that addresses that move from subject 1 to subject 2 stay in the group of subject
// 1 until both members have the group of subject 2, for at most maxHandoverDelay.
func TestMovedAddressStaysUntilItsNewSubjectIsPropagated(t *testing.T) {
	type change struct{ old, now *v1alpha1.ExternalWorkload }
	const a, b = "10.9.0.1", "10.9.0.2"
	var m *machines
	for name, c := range map[string]struct {
		reason string
		had    []string
		change func() []change
		// unreachable is whether m2 does not answer.
		unreachable bool
		// before and after are the addresses of subject 1 before and after both members have subject 2's group.
		before, after []string
	}{
		"Passes": {"one of two addresses moves", []string{a, b}, func() []change {
			return []change{{m.machine("x", 1, a, b), m.machine("x", 1, b)}, {nil, m.machine("y", 2, a)}}
		}, false, []string{a + "/32", b + "/32"}, []string{b + "/32"}},
		"Last": {"the last address moves", []string{a}, func() []change {
			return []change{{m.machine("x", 1, a), nil}, {nil, m.machine("y", 2, a)}}
		}, false, []string{a + "/32"}, nil},
		"Part": {"a part of a network is claimed", []string{"10.9.0.0/30"}, func() []change { return []change{{nil, m.machine("y", 2, b)}} }, false,
			[]string{"10.9.0.0/30"}, []string{"10.9.0.0/31", "10.9.0.3/32"}},
		"Network": {"the other subject gets a network around it", []string{a}, func() []change {
			return []change{{m.machine("x", 1, a), nil}, {nil, m.machine("y", 2, "10.9.0.0/24")}}
		}, false, []string{a + "/32"}, nil},
		"Revoked": {"no other subject gets it, so it is removed at once", []string{a, b}, func() []change {
			return []change{{m.machine("x", 1, a, b), m.machine("x", 1, b)}}
		}, false, []string{b + "/32"}, []string{b + "/32"}},
		"RevokedBeside": {"the other subject gets only a part, so all are removed at once", []string{"10.9.0.0/30"}, func() []change {
			return []change{{m.machine("x", 1, "10.9.0.0/30"), nil}, {nil, m.machine("y", 2, b)}}
		}, false, nil, nil},
		"Unreachable": {"an unreachable member does not delay the removal", []string{a}, func() []change {
			return []change{{m.machine("x", 1, a), nil}, {nil, m.machine("y", 2, a)}}
		}, true, nil, nil},
		"Contested": {"a contested address is not allowed for any subject", []string{a, b},
			func() []change { return []change{{nil, m.machine("y", 2, a)}} }, false,
			[]string{b + "/32"}, []string{b + "/32"}},
	} {
		for _, expired := range []bool{false, true} {
			t.Run(fmt.Sprint(name, expired), func(t *testing.T) {
				m = newMachines(t, 0, 1)
				clock := testclock.NewFakeClock(time.Now())
				members := &propagatedMembers{host: m.host, late: map[string]*federation.Object{}, unreachable: c.unreachable}
				m.groups.Fleet, m.groups.Clock = members, clock
				m.change(nil, m.machine("x", 1, c.had...))
				m.change(nil, m.machine("z", 2, "10.8.0.1"))
				m.work()
				second := v1alpha1.ObjectPrefix + policy.UnitID(fmt.Sprint(subjectHead, 2))
				members.late[second] = m.host.objects[second]
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
				reconcile := func(what string, want []string) {
					t.Helper()
					m.work()
					result, err := m.groups.Reconcile(t.Context(), fmt.Sprint(subjectHead, 1))
					if err != nil {
						t.Fatal(err)
					}
					got := m.addressesOf(1)
					slices.Sort(got)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: %s, -want +got:\n%s", c.reason, what, diff)
					}
					if waits := result.RequeueAfter > 0; waits != !slices.Equal(got, c.after) {
						t.Errorf("%s: %s, requeued: %t", c.reason, what, waits)
					}
				}
				reconcile("before the propagation", c.before)
				if expired {
					clock.Step(maxHandoverDelay)
				} else {
					clear(members.late)
				}
				reconcile("after the propagation or the delay", c.after)
			})
		}
	}
}

// TestMovedAddressStaysUntilUnitsReferToIt checks that an address stays in the group of its former subject until the members have the
// units that refer to the group of the next one, also when a unit is about to be written, which may add addresses at any time.
func TestMovedAddressStaysUntilUnitsReferToIt(t *testing.T) {
	m := newMachines(t, 0, 1)
	clock := testclock.NewFakeClock(time.Now())
	m.groups.Fleet, m.groups.Clock = &propagatedMembers{host: m.host}, clock
	inUse := false
	m.groups.InUse = func(_ *policycache.View, subject string) bool {
		if subject != subjectHead+"2" {
			t.Errorf("units of %s were looked up", subject)
		}
		return inUse
	}
	before := m.machine("x", 1, "10.9.0.0/30")
	m.change(nil, before)
	m.work()
	m.change(nil, m.machine("y", 2, "10.9.0.2"))
	m.work()

	ensure := func(want ...string) {
		t.Helper()
		if err := m.groups.Ensure(t.Context(), m.index.View(), subjectHead+"1"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, m.addressesOf(1)); diff != "" {
			t.Errorf("addresses of the former subject, -want +got:\n%s", diff)
		}
	}
	ensure("10.9.0.0/30")
	inUse = true
	ensure("10.9.0.0/31", "10.9.0.3/32")

	// An address that is added is written at once: until then, a deny does not match it.
	inUse = false
	now := m.machine("x", 1, "10.9.0.0/30", "10.9.1.1")
	now.Generation = 2
	m.change(before, now)
	m.change(nil, m.machine("z", 2, "10.9.0.3"))
	m.index.View()
	ensure("10.9.0.0/31", "10.9.0.3/32", "10.9.1.1/32")
	inUse = true
	m.work() // subject 2 gets its address
	ensure("10.9.0.0/31", "10.9.1.1/32")
}

// TestSwappedAddresses checks that two subjects that swap addresses get the new ones at once, and lose the former ones when the other one
// has them in every member, without waiting for maxHandoverDelay.
func TestSwappedAddresses(t *testing.T) {
	m := newMachines(t, 0, 1)
	clock := testclock.NewFakeClock(time.Now())
	m.groups.Fleet, m.groups.Clock = &propagatedMembers{host: m.host, late: map[string]*federation.Object{}}, clock
	first, second := m.machine("x", 1, "10.9.0.1"), m.machine("y", 2, "10.9.0.2")
	m.change(nil, first)
	m.change(nil, second)
	m.work()
	now, other := m.machine("x", 1, "10.9.0.2"), m.machine("y", 2, "10.9.0.1")
	now.Generation, other.Generation = 2, 2
	m.change(first, now)
	m.change(second, other)
	m.index.View()
	reconcile := func(subject int, want ...string) {
		t.Helper()
		if _, err := m.groups.Reconcile(t.Context(), fmt.Sprint(subjectHead, subject)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, m.addressesOf(subject)); diff != "" {
			t.Errorf("addresses of subject %d, -want +got:\n%s", subject, diff)
		}
	}
	reconcile(1, "10.9.0.1/32", "10.9.0.2/32")
	reconcile(2, "10.9.0.1/32") // subject 1 has 10.9.0.2 everywhere, too
	reconcile(1, "10.9.0.2/32")
}

// TestExceededHandoverDoesNotLookUpUnits checks that nothing is computed for an address whose period is over.
func TestExceededHandoverDoesNotLookUpUnits(t *testing.T) {
	m := newMachines(t, 0, 1)
	clock := testclock.NewFakeClock(time.Now())
	m.groups.Fleet, m.groups.Clock = &propagatedMembers{host: m.host}, clock
	lookups := 0
	m.groups.InUse = func(*policycache.View, string) bool { lookups++; return false }
	m.change(nil, m.machine("x", 1, "10.9.0.0/30"))
	m.work()
	m.change(nil, m.machine("y", 2, "10.9.0.2"))
	m.work()
	reconcile := func(lookedUp int, want ...string) {
		t.Helper()
		if _, err := m.groups.Reconcile(t.Context(), subjectHead+"1"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, m.addressesOf(1)); diff != "" || lookups != lookedUp {
			t.Errorf("%d lookups, want %d; addresses, -want +got:\n%s", lookups, lookedUp, diff)
		}
	}
	before := lookups
	reconcile(before+1, "10.9.0.0/30")
	clock.Step(maxHandoverDelay)
	reconcile(before+1, "10.9.0.0/31", "10.9.0.3/32")
	// A later move has a period of its own.
	m.change(nil, m.machine("z", 2, "10.9.0.3"))
	m.work()
	if diff := cmp.Diff([]string{"10.9.0.0/31", "10.9.0.3/32"}, m.addressesOf(1)); diff != "" {
		t.Errorf("a later move, -want +got:\n%s", diff)
	}
}
