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
		"never, uncertain": {accessreview.Evidence{Watched: true, Uncertain: true}, accessreview.None},
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
