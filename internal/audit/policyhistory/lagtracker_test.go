package policyhistory

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// lagWorld is a host whose policies and statuses change, with a clock.
type lagWorld struct {
	now     time.Time
	in      policy.Input
	present *policy.Snapshot
	// grouped: the statuses have their members in groups, beside others that became so earlier.
	grouped bool
	*lagTracker
}

func newLagWorld() *lagWorld {
	w := &lagWorld{now: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)}
	w.lagTracker = newLagTracker(func() time.Time { return w.now })
	w.in = policy.Input{ResourceClasses: []*v1alpha1.ResourceClass{class()}}
	w.present = policy.NewSnapshot(w.in)
	return w
}

func (w *lagWorld) pass(d time.Duration) { w.now = w.now.Add(d) }

// change makes a new snapshot, as a change of the host's objects does.
func (w *lagWorld) change(f func(*policy.Input)) {
	next := w.in
	f(&next)
	w.in = next
	s := w.present.Next(next)
	w.recordChange(w.present, s, w.now)
	w.present = s
}

func (w *lagWorld) protect(m v1alpha1.Mode) {
	w.change(func(in *policy.Input) { in.Resources = []*v1alpha1.ProtectedResource{resource(1, "1", m)} })
}

func granting(name string) *v1alpha1.AccessControlPolicy {
	p := &v1alpha1.AccessControlPolicy{Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "all", Effect: v1alpha1.EffectAllow,
		Subjects: []v1alpha1.Subject{"*"}, Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(name)}}}}}
	p.Name = "p"
	return p
}

// state is what the adapter writes about m1: what it wants there, and what it read back.
func (w *lagWorld) state(s v1alpha1.MemberState, desired, observed string) *v1alpha1.ProtectedResource {
	r := resource(1, "2", v1alpha1.ModeEnforce)
	at := metav1.NewMicroTime(w.now)
	r.Status.Clusters = []v1alpha1.ClusterState{{Name: "m1", State: s, DesiredRevision: desired, ObservedRevision: observed, Since: &at}}
	if w.grouped {
		early := metav1.NewMicroTime(at.Add(-time.Hour))
		other := v1alpha1.ClusterState{Name: "m0", State: s, DesiredRevision: desired, ObservedRevision: observed, Since: &early}
		r.Status.Clusters, r.Status.Groups = nil, v1alpha1.GroupMembers(append(r.Status.Clusters, other))
	}
	return r
}

// says is the decision about a connection to the resource in m1 at an instant, and whether it is known.
func (w *lagWorld) says(member string, at time.Time) (policy.Verdict, bool) {
	w.pass(publishEvery)
	r, known := audit.AttributeRealized(
		w.present,
		w.lagsOf(member),
		audit.Observation{Time: at, Cluster: member, Protocol: v1alpha1.ProtocolTCP, Source: audit.Endpoint{Kind: audit.KindReserved},
			Destination: audit.Endpoint{Kind: audit.KindWorkload, Labels: map[string]string{"com.trip/redis-cluster": "bobs-cluster"}, Port: 6379}},
	)
	return r.Decision, known
}

func (w *lagWorld) expect(t *testing.T, reason, member string, at time.Time, want policy.Verdict, known bool) {
	t.Helper()
	if got, ok := w.says(member, at); got != want || ok != known {
		t.Errorf("%s: %s (known %v), want %s (known %v)", reason, got, ok, want, known)
	}
}

func TestAQuarantinedMemberHasWhatItHad(t *testing.T) {
	for _, grouped := range []bool{false, true} {
		t.Run(fmt.Sprint("grouped=", grouped), func(t *testing.T) { quarantinedMember(t, grouped) })
	}
}

func quarantinedMember(t *testing.T, grouped bool) {
	w := newLagWorld()
	w.grouped = grouped
	w.change(func(in *policy.Input) {
		in.Resources = []*v1alpha1.ProtectedResource{resource(1, "1", v1alpha1.ModeEnforce)}
		in.Policies = []*v1alpha1.AccessControlPolicy{granting(bobs)}
	})
	asked := w.now
	w.pass(time.Second)
	first := w.state(v1alpha1.MemberPending, "r1", "")
	w.observe(nil, first, w.present)
	w.expect(t, "nothing is there yet", "m1", w.now, policy.Unmanaged, true)
	w.expect(t, "since it was asked for", "m1", asked, policy.Unmanaged, true)
	w.expect(t, "another member has no such lag", "m2", w.now, policy.Allowed, true)
	w.pass(time.Second)
	realized := w.state(v1alpha1.MemberRealized, "r1", "r1")
	w.observe(first, realized, w.present)
	w.expect(t, "it is there", "m1", w.now, policy.Allowed, true)

	w.pass(time.Minute)
	revoked := w.now
	w.change(func(in *policy.Input) { in.Policies = nil })
	w.pass(time.Second)
	w.change(func(in *policy.Input) { in.Policies = []*v1alpha1.AccessControlPolicy{granting(bobs + "-2")} })
	w.pass(3 * time.Second)
	quarantined := w.state(v1alpha1.MemberQuarantined, "r2", "r1")
	w.observe(realized, quarantined, w.present)
	w.expect(t, "the member still allows what was revoked", "m1", w.now, policy.Allowed, true)
	w.expect(t, "from the revocation on", "m1", revoked, policy.Allowed, true)
	w.expect(t, "where it is realized it is refused", "m2", w.now, policy.DefaultDenied, true)
	for i := range 3 * keptChanges { // others change, for long
		w.pass(time.Minute)
		w.change(func(in *policy.Input) {
			in.Policies = []*v1alpha1.AccessControlPolicy{granting(fmt.Sprint(bobs, "-", i))}
		})
		w.says("m1", w.now)
	}
	w.expect(t, "also hours later", "m1", w.now, policy.Allowed, true)
	again := w.state(v1alpha1.MemberPending, "r2", "r1")
	w.observe(quarantined, again, w.present)
	w.expect(t, "it is let in again, and lags as it did", "m1", w.now, policy.Allowed, true)
	w.pass(time.Second)
	before := w.now
	w.pass(time.Second)
	w.observe(again, w.state(v1alpha1.MemberRealized, "r2", "r2"), w.present)
	w.expect(t, "it has caught up", "m1", w.now, policy.DefaultDenied, true)
	w.expect(t, "flows of before come late", "m1", before, policy.Allowed, true)
	w.pass(keptFor + time.Minute)
	w.touch("m1")
	w.touch("m0")
	w.says("m1", w.now)
	if w.n != 0 || len(w.held) != 0 {
		t.Errorf("%d lags and %d states are kept of a member that caught up long ago", w.n, len(w.held))
	}
}

func TestUnknownStatesAreReported(t *testing.T) {
	w := newLagWorld()
	w.protect(v1alpha1.ModeEnforce)
	synced := w.state(v1alpha1.MemberRealized, "r1", "r1")
	for name, tc := range map[string]struct {
		reason    string
		was, is   *v1alpha1.ProtectedResource
		want      policy.Verdict
		wantKnown bool
	}{
		"Started":     {"the collector was started when it lagged already", nil, w.state(v1alpha1.MemberPending, "r2", "r1"), policy.DefaultDenied, false},
		"Drifted":     {"somebody changed what is there", synced, w.state(v1alpha1.MemberDrifted, "r1", "x"), policy.DefaultDenied, false},
		"Away":        {"a member that was never read", nil, w.state(v1alpha1.MemberUnreachable, "r1", ""), policy.DefaultDenied, false},
		"Downgraded":  {"somebody opened it", synced, w.state(v1alpha1.MemberDowngraded, "r1", "x"), policy.Audited, true},
		"Unreachable": {"nobody can read it, and it had it", synced, w.state(v1alpha1.MemberUnreachable, "r1", "r1"), policy.DefaultDenied, true},
		"Overridden":  {"it has it", synced, w.state(v1alpha1.MemberOverridden, "r1", "r1"), policy.DefaultDenied, true},
	} {
		t.Run(name, func(t *testing.T) {
			w.lagTracker = newLagTracker(func() time.Time { return w.now })
			w.observe(tc.was, tc.is, w.present)
			w.expect(t, tc.reason, "m1", w.now.Add(time.Second), tc.want, tc.wantKnown)
		})
	}
}

// A grant that has expired is in force where its end is not realized.
func TestAnEndThatIsNotRealized(t *testing.T) {
	w := newLagWorld()
	p := granting(bobs)
	end := metav1.NewTime(w.now.Add(time.Minute))
	p.Spec.Statements[0].NotAfter = &end
	w.change(func(in *policy.Input) {
		in.Resources, in.Policies = []*v1alpha1.ProtectedResource{resource(1, "1", v1alpha1.ModeEnforce)}, []*v1alpha1.AccessControlPolicy{p}
	})
	w.pass(time.Second)
	synced := w.state(v1alpha1.MemberRealized, "r1", "r1")
	w.pass(2 * time.Minute)
	w.observe(synced, w.state(v1alpha1.MemberPending, "r2", "r1"), w.present)
	w.expect(t, "the member still has it", "m1", w.now, policy.Allowed, true)
	w.expect(t, "elsewhere it has ended", "m2", w.now, policy.DefaultDenied, true)
}

// However many resources change one after the other while a member is away, few older states are kept.
func TestFewStatesAreKeptForAnUnreachableMember(t *testing.T) {
	w := newLagWorld()
	const many = 200
	name := func(i int) v1alpha1.ResourceName { return v1alpha1.ResourceName(fmt.Sprint(bobs, "-", i)) }
	w.change(func(in *policy.Input) {
		for i := range many {
			r := resource(1, "1", v1alpha1.ModeAudit)
			r.Name, r.Spec.Resource = fmt.Sprint("r", i), name(i)
			in.Resources = append(in.Resources, r)
		}
	})
	w.pass(time.Second)
	for i := range many {
		synced, away := w.state(v1alpha1.MemberRealized, "r1", "r1"), (*v1alpha1.ProtectedResource)(nil)
		w.pass(time.Second)
		w.change(func(in *policy.Input) {
			r := *in.Resources[i]
			r.Spec.Mode = v1alpha1.ModeEnforce
			in.Resources = append(
				append([]*v1alpha1.ProtectedResource{}, in.Resources[:i]...),
				append([]*v1alpha1.ProtectedResource{&r}, in.Resources[i+1:]...)...)
		})
		w.pass(time.Second)
		away = w.state(v1alpha1.MemberQuarantined, "r2", "r1")
		synced.Spec.Resource, away.Spec.Resource = name(i), name(i)
		w.observe(synced, away, w.present)
		w.says("m1", w.now)
	}
	known := 0
	for i := range many {
		if l := w.lagsOf("m1").Of(string(name(i)), w.now); l != nil && l.Kind == audit.LagOlder {
			known++
		}
	}
	if known != many || len(w.held) > keptPolicies {
		t.Errorf("of %d resources the member's policies are known for %d, with %d states", many, known, len(w.held))
	}
}

// A member of a group is judged by its own time: what changed after the others of the group had the revision, and before it had it, is
// not what it lacks; and a member that the status has no room for is not taken for one that has nothing any more.
func TestTimesOfMembersInGroups(t *testing.T) {
	w := newLagWorld()
	w.change(func(in *policy.Input) {
		in.Resources = []*v1alpha1.ProtectedResource{resource(1, "1", v1alpha1.ModeEnforce)}
	})
	w.pass(time.Minute)
	early, late := metav1.NewMicroTime(w.now), metav1.NewMicroTime(w.now.Add(10*time.Minute))
	status := func(s v1alpha1.MemberState, desired, observed string) *v1alpha1.ProtectedResource {
		r := resource(1, "2", v1alpha1.ModeEnforce)
		r.Status.Groups = v1alpha1.GroupMembers([]v1alpha1.ClusterState{
			{Name: "m1", State: s, DesiredRevision: desired, ObservedRevision: observed, Since: &early},
			{Name: "m2", State: s, DesiredRevision: desired, ObservedRevision: observed, Since: &late}})
		return r
	}
	w.observe(nil, status(v1alpha1.MemberPending, "r1", ""), w.present)
	w.now = late.Time
	w.observe(status(v1alpha1.MemberPending, "r1", ""), status(v1alpha1.MemberRealized, "r1", "r1"), w.present)
	between := early.Add(5 * time.Minute)
	w.expect(t, "it had it early", "m1", between, policy.DefaultDenied, true)
	w.expect(t, "it had it late", "m2", between, policy.Unmanaged, true)

	short := status(v1alpha1.MemberQuarantined, "r2", "r1")
	w.pass(time.Minute)
	w.change(func(in *policy.Input) { in.Policies = []*v1alpha1.AccessControlPolicy{granting(bobs)} })
	w.pass(time.Second)
	w.observe(status(v1alpha1.MemberRealized, "r1", "r1"), short, w.present)
	w.expect(t, "it has not got the grant", "m1", w.now, policy.DefaultDenied, true)
	cut := short.DeepCopy()
	cut.Status.Groups, cut.Status.Members = nil, &v1alpha1.MemberCounts{Total: 2, Quarantined: 2}
	w.pass(time.Second)
	w.observe(short, cut, w.present)
	w.expect(t, "nothing was said of it", "m1", w.now, policy.DefaultDenied, true)
}
