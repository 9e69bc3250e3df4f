package accessreview_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
)

// TestDecisions follows each decision from the reviewer to the grant, the ledger and the end of the campaign.
func TestDecisions(t *testing.T) {
	w := newWorld(t)
	kept, shortened, revoked, silent := w.grant("alice", "cart", "orders", 0), w.grant("alice", "cart", "stock", 0), w.grant("lea", "cart", "orders", 0),
		w.grant("lea", "cart", "stock", 0)
	c := w.open(w.input())
	if l := w.line(c.ID, kept); c.State != accessreview.StateOpen || l.State != accessreview.LineOpen || l.Recommendation != accessreview.None {
		t.Fatalf("%+v, %+v", c, l)
	}
	for n, d := range map[int64]accessreview.Decision{kept: accessreview.Keep, shortened: accessreview.Shorten, revoked: accessreview.Revoke} {
		if err := w.decide(bob, c.ID, n, d); err != nil {
			t.Fatal(d, err)
		}
	}
	w.work()
	if got := w.ticket(revoked); got.State() != approval.StateRevoking || got.EndedBy(0) != w.refOf(c.ID, revoked) {
		t.Errorf("the revoked grant is %s by %q", got.State(), got.EndedBy(0))
	}
	if end := w.ticket(shortened).Items[0].End(); !end.Equal(w.now.AddDate(0, 0, 7).Truncate(time.Second)) {
		t.Errorf("the shortened grant ends %s", end)
	}
	if got := w.ticket(kept); got.State() != approval.StateApproved || !got.Items[0].End().IsZero() {
		t.Errorf("the kept grant is %s until %s", got.State(), got.Items[0].End())
	}
	if c := w.campaign(c.ID); c.State != accessreview.StateOpen {
		t.Errorf("with an open line the campaign is %s", c.State)
	}
	w.now = w.now.Add(48 * time.Hour)
	w.work()
	if diff := cmp.Diff(map[string]int64{"bob": 1, "dan": 1}, w.notified("review-reminded")); diff != "" {
		t.Errorf("reminded: %s", diff)
	}
	w.now = w.now.Add(24 * time.Hour)
	if err := w.decide(bob, c.ID, silent, accessreview.Keep); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("after the deadline: %v", err)
	}
	w.work()
	if end := w.ticket(silent).Items[0].End(); !end.Equal(w.now.Add(48 * time.Hour).Truncate(time.Second)) {
		t.Errorf("silence gives a grace period until %s", end)
	}
	c = w.campaign(c.ID)
	want := &accessreview.Counts{Total: 4, Kept: 1, Shortened: 2, Revoked: 1, Silent: 1}
	if diff := cmp.Diff(want, c.Final); c.State != accessreview.StateClosed || diff != "" {
		t.Errorf("%s: %s", c.State, diff)
	}
	if diff := cmp.Diff(map[string]int64{"sam": 4}, w.notified("review-closed")); diff != "" {
		t.Errorf("told about the end: %s", diff)
	}
	counts := map[string]int{}
	for _, e := range w.entries(c.ID) {
		counts[e.Action]++
		if e.Action == "review.decided" && (e.Actor != "bob" || e.Details["evidence"] == "" || e.Details["grant"] == "" || e.Details["comment"] != "seen") {
			t.Errorf("the ledger says %+v", e)
		}
	}
	if diff := cmp.Diff(map[string]int{"review.created": 1, "review.opened": 1, "review.decided": 3, "review.outcome": 3, "review.silent": 1,
		"review.reminded": 1, "review.closed": 1}, counts); diff != "" {
		t.Errorf("ledger: %s", diff)
	}
}

// TestSilence checks the other two kinds of silence, and that an ended campaign changes nothing.
func TestSilence(t *testing.T) {
	for silence, want := range map[accessreview.Silence]accessreview.Counts{
		accessreview.SilenceRevoke: {Total: 1, Revoked: 1, Silent: 1}, accessreview.SilenceKeep: {Total: 1, Kept: 1, Silent: 1},
		"ended": {Total: 1, Skipped: 1},
	} {
		w := newWorld(t)
		n := w.grant("alice", "cart", "stock", 0)
		in := w.input()
		if silence != "ended" {
			in.Silence = silence
		}
		c := w.open(in)
		if silence == "ended" {
			if _, err := w.End(t.Context(), bob, c.ID, "x"); approval.CodeOf(err) != approval.CodeForbidden {
				t.Errorf("bob ends the campaign: %v", err)
			}
			if _, err := w.End(t.Context(), sam, c.ID, "wrong scope"); err != nil {
				t.Fatal(err)
			}
			if err := w.decide(bob, c.ID, n, accessreview.Keep); approval.CodeOf(err) != approval.CodeConflict {
				t.Errorf("after the end: %v", err)
			}
		} else {
			w.now = w.now.Add(73 * time.Hour)
		}
		w.work()
		if c = w.campaign(c.ID); c.State != accessreview.StateClosed || cmp.Diff(&want, c.Final) != "" {
			t.Errorf("%s: %s %+v", silence, c.State, c.Final)
		}
		if got := w.ticket(n).State() == approval.StateRevoking; got != (silence == accessreview.SilenceRevoke) {
			t.Errorf("%s: revoked %t", silence, got)
		}
	}
}

// TestGrantsThatChange checks decisions about grants that were extended, revoked or expired since the line was shown.
func TestGrantsThatChange(t *testing.T) {
	w := newWorld(t)
	extended, revoked, late := w.grant(
		"alice",
		"cart",
		"orders",
		240*time.Hour,
	), w.grant(
		"lea",
		"cart",
		"stock",
		0,
	), w.grant(
		"alice",
		"cart",
		"stock",
		240*time.Hour,
	)
	c := w.open(w.input())
	shown := w.line(c.ID, extended)
	ext := w.grant("lea", "cart", "orders", 480*time.Hour, extended)
	err := w.choose(bob, c.ID, accessreview.Choice{Line: shown.Number, Version: shown.Version, Decision: accessreview.Revoke, Comment: "x"})
	if now := w.line(c.ID, extended); approval.CodeOf(err) != approval.CodeStale || now.State != accessreview.LineOpen || now.Version == shown.Version ||
		!now.End.After(shown.End) || now.Changed.IsZero() {
		t.Errorf("a decision about a grant that was extended: %v, %+v", err, now)
	}
	err = w.choose(bob, c.ID, accessreview.Choice{Line: shown.Number, Version: shown.Version, Decision: accessreview.Revoke, Comment: "x"})
	if approval.CodeOf(err) != approval.CodeStale {
		t.Errorf("a decision about an earlier version of the line: %v", err)
	}
	if err := w.decide(bob, c.ID, extended, accessreview.Revoke); err != nil {
		t.Error(err)
	}
	// Decided, then extended before it is applied: the decision was about less.
	if err := w.decide(dan, c.ID, late, accessreview.Revoke); err != nil {
		t.Error(err)
	}
	again := w.grant("alice", "cart", "stock", 480*time.Hour, late)
	w.revoke(revoked)
	w.work()
	for _, n := range []int64{extended, ext} {
		if got := w.ticket(n).State(); got != approval.StateRevoking {
			t.Errorf("%s is %s", approval.FormatID(n), got)
		}
	}
	reopened := slices.DeleteFunc(w.entries(c.ID), func(e ledger.Entry) bool { return e.Action != "review.reopened" })
	if len(reopened) != 1 || reopened[0].Details["decidedBy"] != "dan" || reopened[0].Details["decision"] != "revoke" ||
		reopened[0].Details["comment"] != "seen" {
		t.Errorf("the ledger keeps the decision that became void: %+v", reopened)
	}
	if diff := cmp.Diff(map[string]int64{"dan": 1}, w.notified("review-reopened")); diff != "" {
		t.Errorf("notified of the void decision: %s", diff)
	}
	if l := w.line(c.ID, late); l.State != accessreview.LineOpen || l.DecidedBy != "" || w.ticket(again).State() == approval.StateRevoking {
		t.Errorf("an extension after the decision is decided again: %+v", l)
	}
	if l := w.line(c.ID, revoked); l.Outcome != accessreview.OutcomeEnded || l.Silent {
		t.Errorf("a grant that was revoked outside of the review: %+v", l)
	}
	w.now = w.now.Add(73 * time.Hour)
	w.work()
	if l := w.line(
		c.ID,
		late,
	); l.Outcome != accessreview.OutcomeShortened ||
		!w.ticket(again).Items[0].End().Equal(w.now.Add(48*time.Hour).Truncate(time.Second)) {
		t.Errorf("silence is about the grant as it is: %+v, %s", l, w.ticket(again).Items[0].End())
	}
}

// TestKeptCanBeChanged checks that a confirmation can be taken back until the deadline, and nothing else can.
func TestKeptCanBeChanged(t *testing.T) {
	w := newWorld(t)
	n := w.grant("alice", "cart", "stock", 0)
	c := w.open(w.input())
	for i, tc := range []struct {
		decision accessreview.Decision
		want     approval.Code
	}{{accessreview.Keep, ""}, {accessreview.Revoke, ""}, {accessreview.Keep, approval.CodeConflict}} {
		if err := w.decide(bob, c.ID, n, tc.decision); approval.CodeOf(err) != tc.want {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestKeptAndChanged checks that a confirmed access whose grant changed since keeps its outcome, with an answer that says so.
func TestKeptAndChanged(t *testing.T) {
	w := newWorld(t)
	n := w.grant("alice", "cart", "stock", 240*time.Hour)
	c := w.open(w.input())
	if err := w.decide(bob, c.ID, n, accessreview.Keep); err != nil {
		t.Fatal(err)
	}
	w.grant("alice", "cart", "stock", 480*time.Hour, n)
	w.work()
	for range 2 {
		var refused *approval.Error
		if err := w.decide(bob, c.ID, n, accessreview.Revoke); !errors.As(err, &refused) || refused.Message.Code != "review.kept-and-changed" {
			t.Errorf("%v", err)
		}
	}
	if l := w.line(c.ID, n); l.Outcome != accessreview.OutcomeKept {
		t.Errorf("the outcome is %s", l.Outcome)
	}
}

// TestReasons checks which decisions need a reason.
func TestReasons(t *testing.T) {
	for _, tc := range []struct {
		evidence accessreview.Evidence
		decision accessreview.Decision
		want     bool
	}{
		{accessreview.Evidence{}, accessreview.Keep, false}, {accessreview.Evidence{}, accessreview.Revoke, true},
		{accessreview.Evidence{}, accessreview.Shorten, true},
		{accessreview.Evidence{Watched: true}, accessreview.Keep, true},
	} {
		w := newWorld(t)
		w.evidence["stock"] = tc.evidence
		n := w.grant("alice", "cart", "stock", 0)
		c := w.open(w.input())
		l := w.line(c.ID, n)
		err := w.choose(bob, c.ID, accessreview.Choice{Line: l.Number, Version: l.Version, Decision: tc.decision, Days: 3})
		if got := approval.CodeOf(err) == approval.CodeInvalid; got != tc.want {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

func (w *world) refOf(id, ticket int64) string {
	l := w.line(id, ticket)
	return l.Ref()
}
