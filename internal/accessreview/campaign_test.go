package accessreview_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

// TestReviewers checks who reviews which access: nobody their own, and the security team what nobody else may.
func TestReviewers(t *testing.T) {
	w := newWorld(t)
	plain := w.grant("alice", "cart", "orders", 0)
	own := w.grant("bob", "search", "orders", 0) // bob owns both ends
	team := w.grant("dan", "cart", "stock", 0)
	mine := w.grant("sam", "search", "stock", 0) // requested by a member of the security team
	c := w.open(w.input())
	for _, tc := range []struct {
		reason string
		ticket int64
		rule   accessreview.Rule
		want   []string
	}{
		{"the owner of the resource", plain, accessreview.RuleResourceOwner, []string{"bob"}},
		{"the owner owns the application too", own, accessreview.RuleFallback, []string{"sam", "sue"}},
		{"the owners without the requester", team, accessreview.RuleResourceOwner, []string{"bob"}},
		{"bob owns the application, so dan", mine, accessreview.RuleResourceOwner, []string{"dan"}},
	} {
		if l := w.line(c.ID, tc.ticket); l.Rule != tc.rule || !slices.Equal(l.Reviewers, tc.want) {
			t.Errorf("%s: %s %v, want %s %v", tc.reason, l.Rule, l.Reviewers, tc.rule, tc.want)
		}
	}
	if diff := cmp.Diff(map[string]int64{"bob": 2, "dan": 1, "sam": 1, "sue": 1}, w.notified("review-opened")); diff != "" {
		t.Errorf("notified: %s", diff)
	}
	for _, tc := range []struct {
		reason string
		who    approval.Actor
		ticket int64
		want   approval.Code
	}{
		{"not their line, and not even visible", alice, plain, approval.CodeNotFound},
		{"their own application", bob, own, approval.CodeForbidden},
		{"not a reviewer, with other lines", dan, plain, approval.CodeNotFound},
		{"an auditor changes nothing", otto, plain, approval.CodeForbidden},
		{"their own request", approval.Actor{ID: "sam", Security: true}, mine, approval.CodeForbidden},
		{"a reviewer", bob, plain, ""},
		{"the security team may decide for others", sam, team, ""},
	} {
		err := w.decide(tc.who, c.ID, tc.ticket, accessreview.Keep)
		if got := approval.CodeOf(err); got != tc.want && (tc.ticket != own || got != approval.CodeNotFound) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestReviewerMustStillBeOne checks a decision against the current catalog.
func TestReviewerMustStillBeOne(t *testing.T) {
	w := newWorld(t)
	n := w.grant("alice", "cart", "stock", 0)
	c := w.open(w.input())
	w.catalog = catalog.Build([]catalog.Record{{Kind: catalog.KindPerson, ID: "bob"}, {Kind: catalog.KindPerson, ID: "dan"},
		{Kind: catalog.KindResource, ID: "stock", Name: name("", "stock"), Owners: []catalog.Owner{{Kind: catalog.OwnerPerson, ID: "bob"}}}})
	if err := w.decide(dan, c.ID, n, accessreview.Keep); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("dan does not own the resource any more: %v", err)
	}
	if err := w.decide(bob, c.ID, n, accessreview.Keep); err != nil {
		t.Error(err)
	}
}

func TestScope(t *testing.T) {
	w := newWorld(t)
	w.grant("alice", "cart", "orders", 0)
	w.grant("alice", "cart", "stock", 0)
	for name, tc := range map[string]struct {
		scope accessreview.Scope
		want  int
	}{
		"everything":  {accessreview.Scope{}, 2},
		"class":       {accessreview.Scope{Classes: []string{"other"}}, 0},
		"team":        {accessreview.Scope{Teams: []string{"data"}}, 1},
		"either team": {accessreview.Scope{Teams: []string{"shop"}}, 2},
		"sensitivity": {accessreview.Scope{Sensitivities: []catalog.Sensitivity{catalog.SensitivityHigh}}, 1},
		"age":         {accessreview.Scope{OlderThan: time.Hour}, 0},
	} {
		in := w.input()
		in.Scope = tc.scope
		p, err := w.Preview(t.Context(), sam, in)
		if err != nil || p.Accesses != tc.want {
			t.Errorf("%s: %d, %v, want %d", name, p.Accesses, err, tc.want)
		}
	}
	if _, err := w.Preview(t.Context(), bob, w.input()); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("a preview shows every access: %v", err)
	}
	if _, err := w.Create(t.Context(), otto, w.input()); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("an auditor creates nothing: %v", err)
	}
}

// TestInputIsChecked checks the bounds of campaigns.
func TestInputIsChecked(t *testing.T) {
	w := newWorld(t)
	for field, change := range map[string]func(*accessreview.Input){
		"name":            func(in *accessreview.Input) { in.Name = " " },
		"silence":         func(in *accessreview.Input) { in.Silence = "x" },
		"graceDays":       func(in *accessreview.Input) { in.Grace = time.Hour },
		"deadline":        func(in *accessreview.Input) { in.Deadline = w.now },
		"windowDays":      func(in *accessreview.Input) { in.WindowDays = 13 }, // shorter than what proves a lack of use
		"scope.teams":     func(in *accessreview.Input) { in.Scope.Teams = []string{"none"} },
		"reviewers[0]":    func(in *accessreview.Input) { in.Rules = []accessreview.Rule{"group:none"} },
		"remindEveryDays": func(in *accessreview.Input) { in.RemindEvery = time.Second },
	} {
		in := w.input()
		change(&in)
		_, err := w.Create(t.Context(), sam, in)
		var e *approval.Error
		if !errors.As(err, &e) || e.Code != approval.CodeInvalid || len(e.Fields) != 1 || e.Fields[0].Path != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestTooLarge checks that a campaign that is too large is refused before it is created.
func TestTooLarge(t *testing.T) {
	w := newWorld(t)
	w.grant("alice", "cart", "orders", 0) // one reviewer
	w.grant("alice", "cart", "stock", 0)  // two reviewers
	for _, tc := range []struct {
		lines, assignments int
		want               approval.Code
	}{{2, 3, ""}, {1, 3, approval.CodeInvalid}, {2, 2, approval.CodeInvalid}} {
		w.SetBounds(tc.lines, tc.assignments)
		if _, err := w.Preview(t.Context(), sam, w.input()); approval.CodeOf(err) != tc.want {
			t.Errorf("preview with at most %d lines and %d assignments: %v, want %q", tc.lines, tc.assignments, err, tc.want)
		}
		if _, err := w.Create(t.Context(), sam, w.input()); approval.CodeOf(err) != tc.want {
			t.Errorf("with at most %d lines and %d assignments: %v, want %q", tc.lines, tc.assignments, err, tc.want)
		}
	}
}

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

func (w *world) refOf(id, ticket int64) string {
	l := w.line(id, ticket)
	return l.Ref()
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

// TestRecommendations checks what follows from evidence; unknown is no reason to keep or to end an access.
func TestRecommendations(t *testing.T) {
	for name, tc := range map[string]struct {
		evidence accessreview.Evidence
		want     accessreview.Decision
	}{
		"never, watched":   {accessreview.Evidence{Watched: true}, accessreview.Revoke},
		"never, unwatched": {accessreview.Evidence{}, accessreview.None},
		"used lately":      {accessreview.Evidence{LastUsed: start.Add(-24 * time.Hour)}, accessreview.Keep},
		"used long ago":    {accessreview.Evidence{Watched: true, LastUsed: start.Add(-60 * 24 * time.Hour)}, accessreview.Shorten},
		"long, unwatched":  {accessreview.Evidence{LastUsed: start.Add(-60 * 24 * time.Hour)}, accessreview.None},
		"refused, no use":  {accessreview.Evidence{Watched: true, Refused: true}, accessreview.Keep},
	} {
		w := newWorld(t)
		w.evidence["stock"] = tc.evidence
		n := w.grant("alice", "cart", "stock", 0)
		c := w.open(w.input())
		if l := w.line(c.ID, n); l.Recommendation != tc.want {
			t.Errorf("%s: %s, want %s", name, l.Recommendation, tc.want)
		}
	}
}

// TestUnreadableFlows checks that a campaign waits for the flow store for a while, and opens without evidence then.
func TestUnreadableFlows(t *testing.T) {
	w := newWorld(t)
	w.failing = errors.New("away")
	n := w.grant("alice", "cart", "stock", 0)
	c, err := w.Create(t.Context(), sam, w.input())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.worker.Once(t.Context()); err == nil {
		t.Error("the error is reported")
	}
	if c = w.campaign(c.ID); c.State != accessreview.StatePreparing || !c.Unreadable {
		t.Errorf("%+v", c)
	}
	w.now = w.now.Add(time.Hour)
	w.work()
	if l := w.line(c.ID, n); l.Recommendation != accessreview.None || !l.Evidence.At.IsZero() {
		t.Errorf("%+v", l)
	}
}

// TestHostUnknown checks that a campaign does not collect lines while the classes of the host cluster are not known, because a
// scope by class would select nothing then.
func TestHostUnknown(t *testing.T) {
	w := newWorld(t)
	w.grant("alice", "cart", "stock", 0)
	in := w.input()
	in.Scope.Classes = []string{"redis"}
	c, err := w.Create(t.Context(), sam, in)
	if err != nil {
		t.Fatal(err)
	}
	w.hostUnknown = true
	if err := w.worker.Once(t.Context()); err == nil {
		t.Error("the error is reported")
	}
	if c = w.campaign(c.ID); c.State != accessreview.StatePreparing {
		t.Errorf("the campaign is %s", c.State)
	}
	w.hostUnknown = false
	w.work()
	if c = w.campaign(c.ID); c.State != accessreview.StateOpen {
		t.Errorf("the campaign is %s", c.State)
	}
}

// TestLateOpening checks that reviewers have the time that they were promised, although the flows could not be read for a
// while: nothing is decided by silence before anybody could decide it.
func TestLateOpening(t *testing.T) {
	w := newWorld(t)
	w.failing = errors.New("away")
	n := w.grant("alice", "cart", "stock", 0)
	in := w.input()
	in.Deadline = w.now.Add(accessreview.MinLength)
	c, err := w.Create(t.Context(), sam, in)
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(50 * time.Hour) // the portal was down
	if err := w.worker.Once(t.Context()); err == nil {
		t.Error("the flows are unreadable for the first time, and the campaign opens")
	}
	w.now = w.now.Add(time.Hour)
	w.work()
	w.work()
	if c = w.campaign(c.ID); c.State != accessreview.StateOpen || !c.Deadline.Equal(w.now.Add(accessreview.MinLength)) {
		t.Errorf("the campaign is %s until %s", c.State, c.Deadline)
	}
	if err := w.decide(dan, c.ID, n, accessreview.Keep); err != nil {
		t.Error(err)
	}
	for _, e := range w.entries(c.ID) {
		if e.Action == "review.opened" && e.Details["deadline"] != c.Deadline.Format(time.RFC3339) {
			t.Errorf("the ledger does not contain the new deadline: %+v", e)
		}
	}
}

// TestAppliedOnce checks that a decision that was applied before a crash is not applied to an extension that was approved
// after it.
func TestAppliedOnce(t *testing.T) {
	w := newWorld(t)
	n := w.grant("alice", "cart", "stock", 240*time.Hour)
	c := w.open(w.input())
	if err := w.decide(dan, c.ID, n, accessreview.Shorten); err != nil {
		t.Fatal(err)
	}
	w.worker.SetStep(func(point string) {
		if point == "executed" {
			panic(errCrash)
		}
	})
	func() {
		defer func() {
			if err, ok := recover().(error); !ok || !errors.Is(err, errCrash) {
				t.Fatal("no crash")
			}
		}()
		w.work()
	}()
	again := w.grant("alice", "cart", "stock", 480*time.Hour, n)
	want := w.ticket(again).Items[0].End()
	w.now = w.now.Add(2 * time.Minute)
	if err := w.another("two").Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := w.line(c.ID, n); l.Outcome != accessreview.OutcomeShortened || !w.ticket(again).Items[0].End().Equal(want) {
		t.Errorf("the line is %s %s, and the extension ends %s, want %s", l.State, l.Outcome, w.ticket(again).Items[0].End(), want)
	}
}

// TestCrashAnywhere kills the worker at each point, lets another replica go on after the lease, and expects one outcome for
// every line and one revocation of every grant.
func TestCrashAnywhere(t *testing.T) {
	for at := 1; ; at++ {
		w := newWorld(t)
		numbers := []int64{w.grant("alice", "cart", "orders", 0), w.grant("alice", "cart", "stock", 0)}
		in := w.input()
		in.Silence = accessreview.SilenceRevoke
		c, err := w.Create(t.Context(), sam, in)
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		w.worker.SetStep(func(string) {
			if calls++; calls == at {
				panic(errCrash)
			}
		})
		run := func(x *accessreview.Worker) (crashed bool) {
			defer func() {
				if v := recover(); v != nil {
					if err, ok := v.(error); !ok || !errors.Is(err, errCrash) {
						panic(v)
					}
					crashed = true
				}
			}()
			if err := x.Once(t.Context()); err != nil {
				t.Fatal(at, err)
			}
			return false
		}
		crashed := run(w.worker)
		w.now = w.now.Add(73 * time.Hour)
		if !crashed {
			crashed = run(w.worker)
		}
		if !crashed {
			if at < 9 {
				t.Fatalf("only %d points were tried", at-1)
			}
			return
		}
		w.now = w.now.Add(2 * time.Minute)
		second := w.another("two")
		run(second)
		if got := w.campaign(c.ID).Deadline; got.After(w.now) { // it opened late
			w.now = got
		}
		run(second)
		if got := w.campaign(c.ID); got.State != accessreview.StateClosed {
			t.Errorf("crash %d: the campaign is %s", at, got.State)
		}
		for _, n := range numbers {
			requested := 0
			for _, e := range w.ticket(n).Events {
				if e.Kind == approval.EventRevokeRequested {
					requested++
				}
			}
			if l := w.line(c.ID, n); l.Outcome != accessreview.OutcomeRevoked || requested != 1 {
				t.Errorf("crash %d: the line is %s %s, revoked %d times", at, l.State, l.Outcome, requested)
			}
		}
	}
}

// TestOneReplicaWorks checks that a replica does nothing while another one has the lease.
func TestOneReplicaWorks(t *testing.T) {
	w := newWorld(t)
	w.grant("alice", "cart", "stock", 0)
	w.work()
	c, err := w.Create(t.Context(), sam, w.input())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.another("two").Once(t.Context()); err == nil {
		t.Error("the second replica works")
	}
	if got := w.campaign(c.ID).State; got != accessreview.StatePreparing {
		t.Errorf("the campaign is %s", got)
	}
}
