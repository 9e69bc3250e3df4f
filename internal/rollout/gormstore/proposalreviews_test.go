package gormstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/rollout"
)

func TestProposalReviews(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		s, ctx := New(db), t.Context()
		line := rollout.News{Entries: []ledger.Entry{{At: start, Actor: "bob", Action: "resource.proposal-reviewed", Object: "a"}}}
		change := func(resource string, want rollout.ProposalReview) {
			t.Helper()
			got, err := s.ChangeProposalReview(ctx, resource, func(r *rollout.ProposalReview) (rollout.News, error) { *r = want; return line, nil })
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("%v %s", err, diff)
			}
		}
		a := rollout.ProposalReview{At: start, By: "bob", SeenUntil: start.Add(-time.Minute), NextReview: start.Add(time.Hour)}
		b := rollout.ProposalReview{At: start, By: "bob", SeenUntil: start, NextReview: start.Add(time.Minute)}
		change("a", rollout.ProposalReview{At: start, By: "erin"})
		change("a", a)
		change("b", b)
		change("c", rollout.ProposalReview{At: start, By: "bob", SeenUntil: start})
		change("d", rollout.ProposalReview{At: start, By: "bob", SeenUntil: start, NextReview: start, RemindedAt: start})
		no := errors.New("no")
		if _, err := s.ChangeProposalReview(ctx, "a", func(r *rollout.ProposalReview) (rollout.News, error) {
			if diff := cmp.Diff(a, *r); diff != "" {
				t.Error(diff)
			}
			*r = rollout.ProposalReview{}
			return line, no
		}); !errors.Is(err, no) {
			t.Errorf("an error is returned as it is: %v", err)
		}
		got, err := s.ProposalReviews(ctx, "a", "b", "none")
		if diff := cmp.Diff(map[string]rollout.ProposalReview{"a": a, "b": b}, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		if none, err := s.ProposalReviews(ctx); err != nil || len(none) != 0 {
			t.Errorf("without names: %v, %v", none, err)
		}
		for _, tc := range []struct {
			reason string
			now    time.Time
			limit  int
			want   []string
		}{
			{"no date has passed", start, 10, []string{}},
			{"the longest overdue first", start.Add(time.Hour), 10, []string{"b", "a"}},
			{"no more than the limit", start.Add(time.Hour), 1, []string{"b"}},
		} {
			due, err := s.DueProposalReviews(ctx, tc.now, tc.limit)
			if diff := cmp.Diff(tc.want, due); err != nil || diff != "" {
				t.Errorf("%s: %v %s", tc.reason, err, diff)
			}
		}
		if last, _, err := ledgerstore.NewReader(db).Last(ctx); err != nil || last.Seq != 5 {
			t.Errorf("%d lines of the ledger, %v", last.Seq, err)
		}
	})
}

func TestClientNotices(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		s, ctx := New(db), t.Context()
		line := rollout.News{Entries: []ledger.Entry{{At: start, Actor: "bob", Action: "resource.client-notice", Object: "a"}}}
		add := func(resource, application, sender string, at time.Time, wantRecent int64, wantPrevious rollout.ClientNotice) rollout.ClientNotice {
			t.Helper()
			want := rollout.ClientNotice{At: at, By: sender, Reason: "not ours", Recipients: 2}
			got, err := s.AddClientNotice(ctx, resource, application, sender, start,
				func(previous rollout.ClientNotice, recent int64) (rollout.ClientNotice, rollout.News, error) {
					if diff := cmp.Diff(wantPrevious, previous); diff != "" || recent != wantRecent {
						t.Errorf("%d recent notices, want %d; %s", recent, wantRecent, diff)
					}
					return want, line, nil
				})
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("%v %s", err, diff)
			}
			return want
		}
		old := add("a", "x", "bob", start.Add(-time.Hour), 0, rollout.ClientNotice{})
		x := add("a", "x", "bob", start.Add(time.Second), 0, old)
		y := add("a", "y", "bob", start.Add(time.Second), 1, rollout.ClientNotice{})
		add("b", "x", "bob", start.Add(time.Second), 2, rollout.ClientNotice{})
		add("b", "y", "sam", start.Add(time.Second), 0, rollout.ClientNotice{})
		no := errors.New("no")
		if _, err := s.AddClientNotice(ctx, "a", "z", "bob", start, func(rollout.ClientNotice, int64) (rollout.ClientNotice, rollout.News, error) {
			return rollout.ClientNotice{By: "bob"}, line, no
		}); !errors.Is(err, no) {
			t.Errorf("an error is returned as it is: %v", err)
		}
		got, err := s.ClientNotices(ctx, "a")
		if diff := cmp.Diff(map[string]rollout.ClientNotice{"x": x, "y": y}, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		if last, _, err := ledgerstore.NewReader(db).Last(ctx); err != nil || last.Seq != 5 {
			t.Errorf("%d lines of the ledger, %v", last.Seq, err)
		}
	})
}
