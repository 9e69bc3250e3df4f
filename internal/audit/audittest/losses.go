package audittest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/audit"
)

func lossesAddUp(t *testing.T, s audit.Store) {
	l := audit.Loss{Cluster: "m1", Node: "n1", Reason: audit.LossRing, Count: 3, From: T0, To: T0.Add(time.Second)}
	later := l
	later.Count, later.From, later.To = 4, T0.Add(2*time.Second), T0.Add(3*time.Second)
	gap := audit.Loss{Cluster: "m2", Reason: audit.LossGap, From: T0, To: T0.Add(time.Hour)}
	mustAppend(t, s, &audit.Batch{ID: "1", Losses: []audit.Loss{l, gap}})
	mustAppend(t, s, &audit.Batch{ID: "2", Losses: []audit.Loss{later}})
	got := allLosses(t, s, audit.LossQuery{Since: T0})
	sum := l
	sum.Count, sum.To = 7, later.To
	if diff := cmp.Diff([]audit.Loss{gap, sum}, got); diff != "" {
		t.Errorf("Losses (-want +got):\n%s", diff)
	}
}

func lossesPages(t *testing.T, s audit.Store) {
	var want []audit.Loss
	b := &audit.Batch{ID: "1"}
	for i := range 25 {
		at := T0.Add(-time.Duration(i/5) * time.Hour) // several end at the same time
		l := audit.Loss{Cluster: fmt.Sprint("m", i%5), Node: "n", Reason: audit.LossQueue, Count: int64(i) + 1, From: at.Add(-time.Minute), To: at}
		want = append(want, l)
		b.Losses = append(b.Losses, l)
	}
	mustAppend(t, s, b)
	q := audit.LossQuery{Limit: 4}
	var got []audit.Loss
	for {
		page, err := s.Losses(t.Context(), q)
		if err != nil {
			t.Fatalf("Losses: %v", err)
		}
		if len(page.Items) > q.Limit {
			t.Fatalf("page of %d: got %d losses", q.Limit, len(page.Items))
		}
		got = append(got, page.Items...)
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	byCluster := cmpopts.SortSlices(func(a, b audit.Loss) bool { return a.Cluster+a.To.String() < b.Cluster+b.To.String() })
	if diff := cmp.Diff(want, got, byCluster); diff != "" {
		t.Errorf("all pages of losses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[5:6], allLosses(t, s, audit.LossQuery{Clusters: []string{"m0"}, Since: want[5].To, Until: want[5].To})); diff != "" {
		t.Errorf("losses of a cluster that touch the window (-want +got):\n%s", diff)
	}
	if _, err := s.Losses(t.Context(), audit.LossQuery{Cursor: "bad"}); !errors.Is(err, audit.ErrInvalidQuery) {
		t.Errorf("Losses with a bad cursor: %v, want ErrInvalidQuery", err)
	}
}

func coverageAddsUp(t *testing.T, s audit.Store) {
	day := T0.Truncate(24 * time.Hour)
	at := func(hours int) time.Time { return day.Add(time.Duration(hours) * time.Hour) }
	mustAppend(t, s, &audit.Batch{ID: "1",
		Watched: []audit.WatchedSpan{{Source: "m1", From: at(1), To: at(2)}, {Source: "m2", From: at(30), To: at(31)}},
		Losses: []audit.Loss{{Cluster: "m1", Reason: audit.LossRing, Count: 5, From: at(3), To: at(3)},
			{Cluster: "m1", Reason: audit.LossGap, From: at(23), To: at(26)}}})
	mustAppend(t, s, &audit.Batch{ID: "2", Watched: []audit.WatchedSpan{{Source: "m1", From: at(2), To: at(4)}, {Source: "m1", From: at(3), To: at(5)}}})
	mustAppend(t, s, &audit.Batch{ID: "3", Watched: []audit.WatchedSpan{{Source: "m1", From: at(8), To: at(9)}}})
	mustAppend(t, s, &audit.Batch{ID: "4", Watched: []audit.WatchedSpan{{Source: "m1", From: at(1), To: at(6)}}})
	for name, tc := range map[string]struct {
		reason       string
		since, until time.Time
		want         []audit.Coverage
	}{
		"All": {
			reason: "without bounds everything is returned",
			want: []audit.Coverage{{Cluster: "m1", Day: day, Watched: 6 * time.Hour, Lost: 5, GapTime: time.Hour},
				{Cluster: "m1", Day: at(24), GapTime: 2 * time.Hour}, {Cluster: "m2", Day: at(24), Watched: time.Hour}},
		},
		"Window": {
			reason: "spans are cut at the window", since: at(4), until: at(25),
			want: []audit.Coverage{{Cluster: "m1", Day: day, Watched: 3 * time.Hour, GapTime: time.Hour}, {Cluster: "m1", Day: at(24), GapTime: time.Hour}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Coverage(t.Context(), tc.since, tc.until)
			if err != nil {
				t.Fatalf("Coverage: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
