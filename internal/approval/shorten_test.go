package approval_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

func (w *world) policy(resource string) *v1alpha1.AccessControlPolicy {
	w.t.Helper()
	p := &v1alpha1.AccessControlPolicy{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Name: "p-" + resource}, p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// notAfter returns the end of a ticket's statement in its policy.
func (w *world) notAfter(resource string, n int64) time.Time {
	w.t.Helper()
	for _, s := range w.policy(resource).Spec.Statements {
		if s.SID == approval.SID(n, 0) && s.NotAfter != nil {
			return s.NotAfter.UTC()
		}
	}
	return time.Time{}
}

func (w *world) shorten(n int64, until time.Time) {
	w.t.Helper()
	if _, err := w.svc.ShortenReviewed(w.t.Context(), approval.Target{Ticket: n},
		approval.ReviewDecision{Person: "bob", Review: "R-1/1", SIDs: []string{approval.SID(n, 0)}, Until: until,
			Why: approval.Event{Comment: "too long"}}); err != nil {
		w.t.Fatal(err)
	}
}

// TestShortenWritesTheEarlierEnd checks that a shortened grant gets its end in the policy, is never regarded as altered in
// between, and ends at that time.
func TestShortenWritesTheEarlierEnd(t *testing.T) {
	w := newWorld(t)
	n := w.approved("a", "r")
	x := w.worker("one")
	w.drain(x)
	before := w.policy("r")
	until := w.clock.Now().Add(30 * time.Minute).Truncate(time.Second).UTC()
	w.shorten(n, until)
	get := func() *approval.Ticket {
		got, err := w.store.Get(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	it := get().Items[0]
	if !it.End().Equal(until) || approval.Altered(it, before) {
		t.Errorf("before the write: end %s, altered %t", it.End(), approval.Altered(it, before))
	}
	if _, ok, err := w.svc.StandingGrant(t.Context(), approval.Target{Ticket: n}); err != nil || !ok {
		t.Errorf("a shortened grant stands until its end: %t, %v", ok, err)
	}
	w.drain(x)
	it = get().Items[0]
	if got := w.notAfter("r", n); !got.Equal(until) || !it.ExpiresAt.Equal(until) || !it.ShortenTo.IsZero() || approval.Altered(it, w.policy("r")) {
		t.Errorf("after the write the policy says %s, the item %s and %s, altered %t", got, it.ExpiresAt, it.ShortenTo, approval.Altered(it, w.policy("r")))
	}
	if approval.Altered(it, before) {
		t.Error("a policy that is older than the write is no alteration")
	}
	if got := get().EndedBy(0); got != "R-1/1" {
		t.Errorf("the ticket names the review: %q", got)
	}
	w.clock.pass(30 * time.Minute)
	if err := w.svc.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.state(n); got != approval.StateRevoking {
		t.Errorf("after its end the grant is %s", got)
	}
}

// TestShortenGivesNothingBack checks that a shortening does not write a statement that somebody removed, narrowed or turned
// into a deny in the host cluster, and that the item ends at the earlier time all the same.
func TestShortenGivesNothingBack(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.AccessControlPolicy){
		"Removed": func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = nil },
		"Denied":  func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements[0].Effect = v1alpha1.EffectDeny },
		"Narrowed": func(p *v1alpha1.AccessControlPolicy) {
			p.Spec.Statements[0].NotAfter = &metav1.Time{Time: p.Spec.Statements[0].NotAfter.Add(-time.Hour)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n := w.approved("a", "r")
			x := w.worker("one")
			w.drain(x)
			p := w.policy("r")
			change(p)
			if err := w.client.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			until := w.clock.Now().Add(30 * time.Minute).Truncate(time.Second).UTC()
			w.shorten(n, until)
			w.drain(x)
			if diff := cmp.Diff(p.Spec, w.policy("r").Spec); diff != "" {
				t.Errorf("the policy changed: %s", diff)
			}
			got, err := w.store.Get(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			if it := got.Items[0]; !it.ExpiresAt.Equal(until) || !it.ShortenTo.IsZero() {
				t.Errorf("the item ends at %s, with %s under way", it.ExpiresAt, it.ShortenTo)
			}
		})
	}
}

// TestShortenOnlyShortens checks that a grant never gets a later end, and that a shortening does not write an unapproved
// or revoked one.
func TestShortenOnlyShortens(t *testing.T) {
	w := newWorld(t)
	n := w.approved("a", "r")
	x := w.worker("one")
	w.drain(x)
	until := w.clock.Now().Add(40 * time.Minute)
	w.shorten(n, until)
	w.drain(x)
	w.shorten(n, until.Add(time.Hour))
	w.drain(x)
	if got := w.notAfter("r", n); !got.Equal(until.Truncate(time.Second).UTC()) {
		t.Errorf("the end is %s, want %s", got, until)
	}
	w.shorten(n, until.Add(-10*time.Minute))
	w.revoke(n)
	w.drain(x)
	if got := w.sids("r"); len(got) != 0 {
		t.Errorf("a revoked grant came back: %v", got)
	}
	w.shorten(n, until.Add(-20*time.Minute)) // no effect on what has ended
}

// TestShortenBeforeTheWrite checks that a grant that is shortened before it was ever written is written with the earlier
// end.
func TestShortenBeforeTheWrite(t *testing.T) {
	w := newWorld(t)
	n := w.approved("a", "r")
	until := w.clock.Now().Add(30 * time.Minute).Truncate(time.Second).UTC()
	w.shorten(n, until)
	w.drain(w.worker("one"))
	if got := w.notAfter("r", n); !got.Equal(until) {
		t.Errorf("written until %s, want %s", got, until)
	}
	it, err := w.store.Get(t.Context(), n)
	if err != nil || !it.Items[0].ExpiresAt.Equal(until) || approval.Altered(it.Items[0], w.policy("r")) {
		t.Errorf("%+v, %v", it.Items[0], err)
	}
}

// TestShortenDuringTheWrite checks that a grant that is shortened while its statement is being written gets the earlier end
// after that, and is not regarded as altered.
func TestShortenDuringTheWrite(t *testing.T) {
	w := newWorld(t)
	n := w.approved("a", "r")
	until := w.clock.Now().Add(30 * time.Minute).Truncate(time.Second).UTC()
	x := w.worker("one")
	x.SetStep(func(point string) {
		if point == "checked" && w.item(n).ShortenedAt.IsZero() {
			w.shorten(n, until)
		}
	})
	w.drain(x)
	if it := w.item(n); !w.notAfter("r", n).Equal(until) || !it.ExpiresAt.Equal(until) || !it.ShortenTo.IsZero() || approval.Altered(it, w.policy("r")) {
		t.Errorf("the policy says %s, the item %s and %s, altered %t", w.notAfter("r", n), it.ExpiresAt, it.ShortenTo, approval.Altered(it, w.policy("r")))
	}
}

// item returns the item of a ticket that has one.
func (w *world) item(n int64) approval.Item {
	w.t.Helper()
	got, err := w.store.Get(w.t.Context(), n)
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Items[0]
}

// TestShortenCrashAnywhere kills the worker at each point of a shortening.
func TestShortenCrashAnywhere(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		n := w.approved("a", "r")
		w.drain(w.worker("zero"))
		until := w.clock.Now().Add(30 * time.Minute).Truncate(time.Second).UTC()
		w.shorten(n, until)
		calls := 0
		first := w.worker("first")
		first.SetStep(func(string) {
			if calls++; calls == at {
				panic(errCrash)
			}
		})
		if untilCrash(first) == nil {
			if at < 4 {
				t.Fatalf("only %d points were tried", at-1)
			}
			return
		}
		w.clock.pass(lease)
		w.drain(w.worker("second"))
		got, err := w.store.Get(t.Context(), n)
		if err != nil || !w.notAfter("r", n).Equal(until) || !got.Items[0].ExpiresAt.Equal(until) {
			t.Errorf("crash %d: the policy says %s, %v", at, w.notAfter("r", n), err)
		}
	}
}

// TestStandingGrantIncludesExtensions checks that an access and its extensions are one, revoked and shortened together, and
// that its version changes with its end.
func TestStandingGrantIncludesExtensions(t *testing.T) {
	w := newWorld(t)
	n := w.approved("a", "r")
	other := w.approved("b", "r")
	x := w.worker("one")
	w.drain(x)
	w.shorten(n, w.clock.Now().Add(40*time.Minute))
	w.drain(x)
	first, ok, err := w.svc.StandingGrant(t.Context(), approval.Target{Ticket: n})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	longer := first.End.Add(time.Hour)
	ext := approval.NewTicket(approval.Draft{Kind: approval.KindExtend, Requester: "carol", Reason: "more", Items: []approval.Item{{
		Application: "a", ApplicationName: "name:a", Resource: "r", ResourceName: "name:r", Actions: []string{"redis:admin"},
		Target:   &approval.Target{Ticket: n},
		Duration: longer.Sub(w.clock.Now()), Steps: []approval.Step{{Name: "owner", Approvers: []string{"bob"}, Quorum: 1}}}}}, w.clock.Now())
	ext, err = w.store.Create(t.Context(), ext)
	if err != nil {
		t.Fatal(err)
	}
	w.apply(ext.Number, func(x *approval.Ticket) error {
		return x.Vote(0, approval.Vote{Person: "bob", Approve: true, At: w.clock.Now()})
	})
	all, err := w.svc.StandingGrants(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d accesses, %v", len(all), err)
	}
	one, ok, err := w.svc.StandingGrant(t.Context(), approval.Target{Ticket: n})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	i := slices.IndexFunc(all, func(g approval.StandingGrant) bool { return g.Ticket == n })
	if i < 0 || all[i].Version != one.Version || !all[i].End.Equal(one.End) {
		t.Errorf("the list and the single access differ: %+v, %+v", all, one)
	}
	if one.Version == first.Version || !one.End.Equal(longer) || !slices.Equal(one.Requesters, []string{"alice", "carol"}) || len(one.SIDs) != 2 {
		t.Errorf("the extension belongs to the access: %+v", one)
	}
	decision := approval.ReviewDecision{Review: "R-1/1", SIDs: one.SIDs, Why: approval.Event{Message: message.TicketTimeOver()}}
	for range 2 { // the second execution finds the first one
		if got, err := w.svc.RevokeReviewed(t.Context(), approval.Target{Ticket: n}, decision); err != nil || !got.Changed || len(got.Later) != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	decision.Review = "R-1/2"
	if got, err := w.svc.RevokeReviewed(t.Context(), approval.Target{Ticket: n}, decision); err != nil || got.Changed {
		t.Errorf("another review changed what had ended: %+v, %v", got, err)
	}
	w.drain(x)
	if got, want := w.sids("r"), []string{approval.SID(other, 0)}; !slices.Equal(got, want) {
		t.Errorf("after the revocation the policy has %v, want %v", got, want)
	}
}

// TestReviewedLeavesLaterGrants checks that a decision ends only the grants that it is about, and reports those that stand.
func TestReviewedLeavesLaterGrants(t *testing.T) {
	m := quiet(t)
	n := m.granted(240 * time.Hour)
	m.now = m.now.Add(time.Hour)
	of := approval.Target{Ticket: n}
	shown, ok, err := m.svc.StandingGrant(t.Context(), of)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	later := m.granted(240 * time.Hour)
	d := approval.ReviewDecision{Person: "bob", Review: "R-1/1", SIDs: shown.SIDs, Why: approval.Event{Comment: "enough"}}
	got, err := m.svc.RevokeReviewed(t.Context(), of, d)
	if want := (approval.ReviewResult{Changed: true, Later: []string{approval.SID(later, 0)}}); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	m.settle()
	m.is(n, approval.StateRevoked)
	m.is(later, approval.StateEffective)
	d.Review, d.Until = "R-1/2", m.now.Add(240*time.Hour)
	if got, err := m.svc.ShortenReviewed(t.Context(), of, d); err != nil || got.Changed {
		t.Errorf("a review changed what had ended: %+v, %v", got, err)
	}
}

// TestStandingSince checks since when grants have given an access: an extension continues it, and a grant of a part of the
// actions does not.
func TestStandingSince(t *testing.T) {
	m := quiet(t)
	request := func(actions ...string) int64 {
		t.Helper()
		r := grant(240 * time.Hour)
		r.Items[0].Actions = actions
		n := m.submit("alice", r).Number
		m.approve(n, "carol", "bob", "erin")
		m.settle()
		m.is(n, approval.StateEffective)
		return n
	}
	since := func(n int64) time.Time {
		t.Helper()
		g, ok, err := m.svc.StandingGrant(t.Context(), approval.Target{Ticket: n})
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return g.Since
	}
	began := m.now
	part := request("x:read")
	m.now = m.now.Add(100 * time.Hour)
	wider := m.now
	both := request("x:read", "x:write")
	m.now = m.now.Add(100 * time.Hour)
	extension := request("x:read", "x:write")
	for n, want := range map[int64]time.Time{part: began, both: wider, extension: wider} {
		if got := since(n); !got.Equal(want) {
			t.Errorf("%s: since %s, want %s", approval.FormatID(n), got, want)
		}
	}
}
