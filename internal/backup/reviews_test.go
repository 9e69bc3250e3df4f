package backup

import (
	"testing"
	"time"

	"github.com/acp-io/acp/internal/accessreview"
	reviewstore "github.com/acp-io/acp/internal/accessreview/gormstore"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
)

// TestReviewsInProgress checks that silence decides nothing after a restore about what people may have decided after the backup,
// and that the number of a review is not used again if it may have been used.
func TestReviewsInProgress(t *testing.T) {
	backup := now.Add(-100 * time.Hour)
	for mode, want := range map[Mode]struct {
		reason   string
		ended    bool
		deadline time.Time
		next     int64
	}{
		ModeNothingSince: {"nobody could decide while no portal ran", false, now.Add(-time.Hour).Add(100 * time.Hour), 2},
		ModeHoldGrants:   {"later decisions are not known", true, now.Add(-time.Hour), 2 + skippedNumbers},
	} {
		t.Run(string(mode), func(t *testing.T) {
			db := databasetest.Open(t, databasetest.SQLite(t))
			s := reviewstore.New(db)
			c, err := s.Create(t.Context(), accessreview.Campaign{State: accessreview.StatePreparing, CreatedAt: backup, Name: "Quarterly",
				Silence: accessreview.SilenceRevoke, Deadline: now.Add(-time.Hour)}, func(accessreview.Campaign) accessreview.News {
				return accessreview.News{Entries: []ledger.Entry{{At: backup, Action: "review.created", Object: "R-1"}}}
			})
			if err == nil {
				err = s.Rebuild(t.Context(), c.ID, "b")
			}
			if err == nil {
				err = s.AddLines(t.Context(), c.ID, "b", []accessreview.Line{
					{Campaign: c.ID, Number: 1, Version: 1, Target: approval.Target{Ticket: 1}, State: accessreview.LineOpen, Reviewers: []string{"bob"}},
					{Campaign: c.ID, Number: 2, Version: 1, Target: approval.Target{Ticket: 2}, State: accessreview.LineOpen, Reviewers: []string{"bob"}},
				})
			}
			if err == nil {
				_, err = s.Change(t.Context(), c.ID, func(c *accessreview.Campaign) (accessreview.News, error) {
					c.State, c.Build = accessreview.StateOpen, ""
					return accessreview.News{}, nil
				})
			}
			if err == nil { // silence had begun to apply its decision
				_, _, err = s.ChangeLines(t.Context(), c.ID, []int{2}, func(_ accessreview.Campaign, l *accessreview.Line) (bool, accessreview.News, error) {
					l.State, l.Decision, l.Silent = accessreview.LineApplying, accessreview.Revoke, true
					return true, accessreview.News{}, nil
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			path := backedUpAt(t, db, backup)
			target := databasetest.Open(t, databasetest.SQLite(t))
			r, err := restored(t, path, target, mode)
			if err != nil {
				t.Fatal(err)
			}
			s = reviewstore.New(target)
			got, err := s.Campaign(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			if !got.EndedAt.IsZero() != want.ended || !got.Deadline.Equal(want.deadline) || want.ended != (got.EndMessage.Code == "review.restored") ||
				want.ended != (len(r.EndedReviews) == 1) {
				t.Errorf("%s: %+v, %v", want.reason, got, r.EndedReviews)
			}
			lines, err := s.Lines(t.Context(), accessreview.LineFilter{Campaign: c.ID})
			if err != nil || len(lines) != 2 {
				t.Fatal(lines, err)
			}
			for _, l := range lines {
				if l.State != accessreview.LineOpen || l.Silent || l.Decision != "" {
					t.Errorf("the line is %+v", l)
				}
			}
			next, err := s.Create(
				t.Context(),
				accessreview.Campaign{CreatedAt: now},
				func(accessreview.Campaign) accessreview.News { return accessreview.News{} },
			)
			if err != nil || next.ID != want.next {
				t.Errorf("the next review is %d, want %d: %v", next.ID, want.next, err)
			}
		})
	}
}

// TestLastReview checks that the later ledger reserves the numbers of reviews.
func TestLastReview(t *testing.T) {
	l := newLedgerExport()
	for _, object := range []string{"R-7", "R-9", "R-8", "other"} {
		l.add(ledger.Entry{Action: "review.created", Object: object})
	}
	if l.lastReview != 9 {
		t.Errorf("the last review is %d", l.lastReview)
	}
}
