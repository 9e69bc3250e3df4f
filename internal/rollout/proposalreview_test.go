package rollout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/rollout"
)

// named returns the entity with a resource name.
func (w *world) named(name string) catalog.Entity {
	w.t.Helper()
	e, ok := w.catalog.ByName(name)
	if !ok {
		w.t.Fatalf("the catalog lacks %s", name)
	}
	return e
}

func TestReviewProposal(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeAudit)
	e, ctx := w.named(orders), t.Context()
	for name, tc := range map[string]struct {
		reason string
		who    approval.Actor
		in     rollout.ReviewInput
		code   approval.Code
		until  time.Time
	}{
		"owner":        {"reviews their resource", bob, rollout.ReviewInput{}, "", w.now},
		"security":     {"reviews every resource", sam, rollout.ReviewInput{NextReview: w.now.Add(time.Hour)}, "", w.now},
		"auditor":      {"only reads", otto, rollout.ReviewInput{}, approval.CodeForbidden, time.Time{}},
		"others":       {"may not", erin, rollout.ReviewInput{}, approval.CodeForbidden, time.Time{}},
		"past":         {"a date lies in the future", bob, rollout.ReviewInput{NextReview: w.now}, approval.CodeInvalid, time.Time{}},
		"far":          {"a date is a reminder", bob, rollout.ReviewInput{NextReview: w.now.AddDate(2, 0, 0)}, approval.CodeInvalid, time.Time{}},
		"seen earlier": {"another reviewer saw later flows", bob, rollout.ReviewInput{SeenUntil: w.now.Add(-time.Hour)}, "", w.now},
		"seen later":   {"nobody sees the future", bob, rollout.ReviewInput{SeenUntil: w.now.Add(time.Hour)}, "", w.now},
	} {
		if name == "seen earlier" {
			if _, err := w.ReviewProposal(ctx, sam, e, rollout.ReviewInput{}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := w.ReviewProposal(ctx, tc.who, e, tc.in)
		if approval.CodeOf(err) != tc.code || !got.SeenUntil.Equal(tc.until) {
			t.Errorf("%s, %s: %+v, %v", name, tc.reason, got, err)
		}
		if err == nil && (got.By != tc.who.ID || !got.NextReview.Equal(tc.in.NextReview)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := len(w.lines()); n != 5 {
		t.Errorf("%d lines of the ledger, want one for each review: %v", n, w.actions())
	}
}

func TestRemindReviews(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeAudit)
	e, ctx := w.named(orders), t.Context()
	remind := func(want int) {
		t.Helper()
		for range 2 { // a second check, or another replica
			if err := w.watcher("a").RemindReviews(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.told()[notify.EventReviewDue]; len(got) != want || want > 0 && got[0] != "bob" {
			t.Errorf("the owners were reminded %d times, want %d: %v", len(got), want, got)
		}
	}
	review := func(next time.Time) {
		t.Helper()
		if _, err := w.ReviewProposal(ctx, bob, e, rollout.ReviewInput{NextReview: next}); err != nil {
			t.Fatal(err)
		}
	}
	review(w.now.Add(24 * time.Hour))
	remind(0)
	w.now = w.now.Add(24 * time.Hour)
	remind(1)
	review(time.Time{})
	w.now = w.now.Add(48 * time.Hour)
	remind(1)
	review(w.now.Add(time.Hour))
	w.now = w.now.Add(2 * time.Hour)
	remind(2)
}

func TestNotifyClient(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeAudit)
	e, app, ctx := w.named(orders), w.named(cart), t.Context()
	seen := rollout.SeenClient{Actions: []string{"redis:connect", "9121/TCP"}, Count: 7, LastSeen: w.now.Add(-time.Hour)}
	tell := func(a approval.Actor, app catalog.Entity, reason string) error {
		_, err := w.NotifyClient(ctx, a, e, app, reason, seen)
		return err
	}
	for name, tc := range map[string]struct {
		who    approval.Actor
		app    catalog.Entity
		reason string
		code   approval.Code
	}{
		"auditor":   {otto, app, "r", approval.CodeForbidden},
		"others":    {erin, app, "r", approval.CodeForbidden},
		"no reason": {bob, app, " ", approval.CodeInvalid},
		"long":      {bob, app, strings.Repeat("长", approval.MaxText+1), approval.CodeInvalid},
		"no owner":  {bob, catalog.Entity{ID: "ghost", Name: scanner, Title: "Ghost"}, "r", approval.CodeConflict},
	} {
		if err := tell(tc.who, tc.app, tc.reason); approval.CodeOf(err) != tc.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := tell(bob, app, " not ours "); err != nil {
		t.Fatal(err)
	}
	if err := tell(sam, app, "again"); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("the owners were notified twice in a week: %v", err)
	}
	notices, err := w.store.ClientNotices(ctx, orders)
	want := map[string]rollout.ClientNotice{cart: {At: w.now, By: "bob", Reason: "not ours", Recipients: 1}}
	if diff := cmp.Diff(want, notices); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if diff := cmp.Diff(map[string][]string{notify.EventClientNotice: {"alice"}}, w.told()); diff != "" {
		t.Error(diff)
	}
	lines := w.lines()
	if len(lines) != 1 || lines[0].Action != "resource.client-notice" || lines[0].Details["application"] != cart || lines[0].Details["reason"] != "not ours" ||
		lines[0].Details["connections"] != "7" || lines[0].Details["actions"] != "redis:connect, 9121/TCP" {
		t.Errorf("%+v", lines)
	}
	w.now = w.now.Add(rollout.NoticeEvery)
	if err := tell(bob, app, "still not ours"); err != nil {
		t.Errorf("after a week: %v", err)
	}
}

// TestNoticesOfAPersonAreBounded checks that a person cannot send any number of notices, whatever the resource.
func TestNoticesOfAPersonAreBounded(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeAudit)
	app, ctx := w.named(cart), t.Context()
	send := func(resource string) error {
		e := w.named(orders)
		e.Name = resource
		_, err := w.NotifyClient(ctx, sam, e, app, "not ours", rollout.SeenClient{Actions: []string{"redis:connect"}, Count: 1, LastSeen: w.now})
		return err
	}
	for i := range 20 {
		if err := send(orders + strings.Repeat("x", i+1)); err != nil {
			t.Fatalf("notice %d: %v", i, err)
		}
	}
	err := send(orders + "-last")
	var ours *approval.Error
	if !errors.As(err, &ours) || ours.Message.Code != "client-notice.budget" {
		t.Errorf("the 21st notice of a day: %v", err)
	}
	if n := len(slices.DeleteFunc(w.actions(), func(a string) bool { return a != "resource.client-notice" })); n != 20 {
		t.Errorf("%d lines of the ledger", n)
	}
	w.now = w.now.Add(25 * time.Hour)
	if err := send(orders + "-last"); err != nil {
		t.Errorf("a day later: %v", err)
	}
}
