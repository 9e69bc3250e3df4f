package audit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestComputeCoverage(t *testing.T) {
	d := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	at := func(hours float64) time.Time { return d.Add(time.Duration(hours * float64(time.Hour))) }
	watch := func(from, to float64) WatchedSpan { return WatchedSpan{"m1", at(from), at(to)} }
	for name, tc := range map[string]struct {
		reason       string
		since, until time.Time
		watched      []WatchedSpan
		losses       []Loss
		want         []Coverage
	}{
		"Nothing": {reason: "days without data are omitted", since: d, until: at(48)},
		"Overlap": {
			reason: "time that two spans cover counts once", since: d, until: at(24),
			watched: []WatchedSpan{watch(4, 6), watch(1, 5), watch(2, 3)},
			want:    []Coverage{{Cluster: "m1", Day: d, Watched: 5 * time.Hour}},
		},
		"Days": {
			reason: "a span is cut at midnight and at the window", since: at(20), until: at(49),
			watched: []WatchedSpan{watch(0, 72)},
			want: []Coverage{{Cluster: "m1", Day: d, Watched: 4 * time.Hour}, {Cluster: "m1", Day: at(24), Watched: 24 * time.Hour},
				{Cluster: "m1", Day: at(48), Watched: time.Hour}},
		},
		"NoBounds": {
			reason:  "without bounds everything counts",
			watched: []WatchedSpan{watch(23, 25)}, losses: []Loss{{Cluster: "m0", Reason: LossRing, Count: 3, From: d, To: d}},
			want: []Coverage{{Cluster: "m0", Day: d, Lost: 3}, {Cluster: "m1", Day: d, Watched: time.Hour}, {Cluster: "m1", Day: at(24), Watched: time.Hour}},
		},
		"Losses": {
			reason: "counts fall on the end of a loss, gaps on the time that they last, whichever node reports them", since: d, until: at(48),
			losses: []Loss{
				{Cluster: "m1", Reason: LossGap, From: at(22), To: at(25)}, {Cluster: "m1", Node: "n", Reason: LossGap, From: at(23), To: at(26)},
				{Cluster: "m1", Reason: LossQueue, Count: 7, From: at(23), To: at(25)}, {Cluster: "m1", Reason: LossRing, Count: 9, From: at(48), To: at(48)},
			},
			want: []Coverage{{Cluster: "m1", Day: d, GapTime: 2 * time.Hour}, {Cluster: "m1", Day: at(24), Lost: 7, GapTime: 2 * time.Hour}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ComputeCoverage(tc.since, tc.until, tc.watched, tc.losses), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
