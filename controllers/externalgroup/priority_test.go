package externalgroup

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// growingMembers is a fleet that a member may join.
type growingMembers struct {
	unreadMembers
	joined []federation.Cluster
}

func (g *growingMembers) Clusters() []federation.Cluster {
	return append(g.unreadMembers.Clusters(), g.joined...)
}

// engines records which objects are carried first.
type engines struct{ urgent []string }

func (e *engines) DeliverUrgent(o *federation.Object)           { e.urgent = append(e.urgent, o.Meta.Name) }
func (e *engines) WithoutPriorities(clusters []string) []string { return clusters }

// TestAddressesOfDeniedSubjectsDoNotWait checks that a new address of a subject that a deny names is written at once, although KubeFed still has
// other objects to propagate: until the members have the address in the group, they do not deny it.
func TestAddressesOfDeniedSubjectsDoNotWait(t *testing.T) {
	const subject, other = subjectHead + "3", subjectHead + "4"
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: time.Now().Add(d)} }
	add := func(m *machines) { m.change(nil, m.machine("more", 3, "10.9.0.1")) }
	for name, c := range map[string]struct {
		reason string
		effect v1alpha1.Effect
		// of are the subjects of the statement about the resource 1.
		of                  v1alpha1.Subject
		notBefore, notAfter *metav1.Time
		change              func(m *machines)
		waits               bool
		// emptied is whether the subjects had no address before, and their groups are still to be deleted.
		emptied bool
	}{
		"Denied":  {"a deny names it", v1alpha1.EffectDeny, subject, nil, nil, add, false, false},
		"Class":   {"a deny is for all of its class", v1alpha1.EffectDeny, subjectHead + "*", nil, nil, add, false, false},
		"Future":  {"its deny begins soon", v1alpha1.EffectDeny, subject, at(time.Hour), nil, add, false, false},
		"Ended":   {"its deny has ended", v1alpha1.EffectDeny, subject, nil, at(-time.Hour), add, true, false},
		"Allowed": {"no deny names it", v1alpha1.EffectAllow, subject, nil, nil, add, true, false},
		"Other":   {"a deny names another subject", v1alpha1.EffectDeny, other, nil, nil, add, true, false},
		"Anyone":  {"a deny for anyone refers to no group", v1alpha1.EffectDeny, "*", nil, nil, add, true, false},
		"FirstGroup": {"its first address makes its group", v1alpha1.EffectDeny, other, nil, nil, func(m *machines) {
			m.change(nil, m.machine("more", 4, "10.9.0.1"))
		}, false, false},
		"Again":    {"its group is not deleted yet", v1alpha1.EffectDeny, subject, nil, nil, add, false, true},
		"Replaced": {"it gets another address", v1alpha1.EffectAllow, subject, nil, nil, func(m *machines) { m.move(3, 7) }, false, false},
		"Joined": {"a member that joins gets no new address", v1alpha1.EffectDeny, subject, nil, nil, func(m *machines) {
			m.groups.Fleet = &growingMembers{joined: []federation.Cluster{{Name: "m3"}}}
			m.index.EnqueueWorkloads()
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachines(t, 4, 4)
			m.change(nil, &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny"},
				Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "s", Effect: c.effect,
					Subjects: []v1alpha1.Subject{c.of}, Actions: []v1alpha1.Action{"redis:connect"},
					Resources: []v1alpha1.ResourceName{resourceHead + "1"}, NotBefore: c.notBefore, NotAfter: c.notAfter}}}})
			m.work()
			for i := range m.all {
				if c.emptied {
					m.change(m.all[i], nil)
				}
			}
			m.work()
			m.groups.Queue.SetPending("another object", []string{"m1", "m2"}, time.Now())
			before := m.host.writes
			c.change(m)
			m.work()
			if got := m.host.writes == before; got != c.waits {
				t.Errorf("%s: waits: %t, want %t", c.reason, got, c.waits)
			}
		})
	}
}

// TestUnitsDeliverAddressesOfDeniedSubjectsUrgently checks the same for a group that is written because a unit refers to it.
func TestUnitsDeliverAddressesOfDeniedSubjectsUrgently(t *testing.T) {
	for effect, first := range map[v1alpha1.Effect]bool{v1alpha1.EffectDeny: true, v1alpha1.EffectAllow: false} {
		t.Run(fmt.Sprint(effect), func(t *testing.T) {
			m := newMachines(t, 0, 1)
			e := &engines{}
			m.groups.Engines = e
			m.change(nil, &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny"},
				Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "s", Effect: effect,
					Subjects: []v1alpha1.Subject{subjectHead + "3"}, Actions: []v1alpha1.Action{"redis:connect"},
					Resources: []v1alpha1.ResourceName{resourceHead + "1"}}}}})
			m.change(nil, m.machine("x", 3, "10.9.0.1"))
			if err := m.groups.Ensure(t.Context(), m.index.View(), subjectHead+"3"); err != nil {
				t.Fatal(err)
			}
			group := v1alpha1.ObjectPrefix + policy.UnitID(subjectHead+"3")
			if m.host.objects[group] == nil || slices.Contains(e.urgent, group) != first {
				t.Errorf("the group is %v, delivered urgently: %q, want it to be carried first: %t", m.host.objects[group], e.urgent, first)
			}
		})
	}
}

// TestLargeGroupsAreComparedOnce checks that a new address of an application with many machines is written in a fraction of the time that a
// reconcile may take, and that the specs are compared once for all members.
func TestLargeGroupsAreComparedOnce(t *testing.T) {
	const count = 20_000
	m := newMachines(t, count, 1)
	fleet := &growingMembers{}
	for i := range 8 { // beside the two of unreadMembers
		fleet.joined = append(fleet.joined, federation.Cluster{Name: fmt.Sprint("n", i)})
	}
	m.groups.Fleet = fleet
	m.index.EnqueueWorkloads()
	m.work()
	group := v1alpha1.ObjectPrefix + policy.UnitID(subjectHead+"0")
	if o := m.host.objects[group]; len(o.Placement) != 10 {
		t.Fatalf("the group is placed in %v", o.Placement)
	}
	compared, compare := 0, m.groups.Effect
	m.groups.Effect = func(before, after map[string]any) enforcer.Effect {
		compared++
		return compare(before, after)
	}
	begin := time.Now()
	m.change(nil, m.machine("more", 0, "10.9.0.1"))
	m.work()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("a new address took %s", took)
	}
	if got := len(addressesIn(m.host.objects[group].TemplateSpec)); got != count+1 {
		t.Errorf("the group has %d addresses", got)
	}
	if compared > 3 {
		t.Errorf("the specs were compared %d times", compared)
	}
}
