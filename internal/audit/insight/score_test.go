package insight

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

func TestEvidence(t *testing.T) {
	regular := flows(edge(app+"1", bobs, 6379, policy.Audited), 100, every(14)...)
	full := watched(14, "m1", "m2")
	unknown := func(e *audit.Edge) { e.Verdict = audit.VerdictUnknown }
	for name, tc := range map[string]struct {
		reason string
		flows  []*audit.Batch
		in     EvidenceInput
		// want are the points, as observed weekly loss newcomers unattributed long-lived.
		want   string
		enough bool
		// says are parts of what is missing.
		says []string
		// clients are those with a name, those of them that are not covered, and sources without a name.
		clients string
	}{
		"Everything": {
			reason: "two weeks in which nothing was missed",
			flows:  []*audit.Batch{full, regular},
			want:   "40 20 10 10 10 10", enough: true,
		},
		"Nothing": {
			reason: "an empty store knows nothing, not even that nothing is lost",
			want:   "0 0 0 0 0 0",
			says:   []string{message.EvidenceNotWatched().Text},
		},
		"Unused": {
			reason: "a resource that nobody used while it was watched can be closed",
			flows:  []*audit.Batch{full},
			want:   "40 20 10 10 10 10", enough: true,
		},
		"AWeek": {
			reason: "each weekday was seen, but Friday only in two halves; whoever came is as new as the watching",
			flows:  []*audit.Batch{watched(7, "m1"), flows(edge(app+"1", bobs, 6379, policy.Audited), 1, 1)},
			want:   "20 18 10 0 10 10",
			says:   []string{"Flows of m1 were watched for 7d of 14d", "1 of 1 clients came only in the later half"},
		},
		"AWeekAndADay": {
			reason: "enough, since nobody came in the later half",
			flows:  []*audit.Batch{watched(8, "m1"), flows(edge(app+"1", bobs, 6379, policy.Audited), 1, 7)},
			want:   "22 20 10 10 10 10", enough: true,
		},
		"ADay": {
			reason: "one day is no evidence",
			flows:  []*audit.Batch{watched(1, "m1"), flows(edge(app+"1", bobs, 6379, policy.Audited), 1, 0)},
			want:   "2 2 10 0 10 10",
			says:   []string{"These weekdays were not watched from end to end in every member: Sunday, Monday, Tuesday, Wednesday, Thursday, Friday, Saturday"},
		},
		"WorstMember": {
			reason: "the member that was watched for the shortest time counts",
			flows:  []*audit.Batch{watched(14, "m1"), watched(3, "m2"), regular},
			want:   "8 8 10 10 10 10",
			says:   []string{"Flows of m2 were watched for 3d of 14d"},
		},
		"OnlyWhereItRuns": {
			reason: "a member that does not serve the resource does not matter",
			flows:  []*audit.Batch{watched(14, "m1"), watched(3, "m2"), regular},
			in:     EvidenceInput{Fleet: onlyIn("m1")},
			want:   "40 20 10 10 10 10", enough: true,
		},
		"NeverWatchedThere": {
			reason: "a member that serves the resource and is not known to the store was not watched",
			flows:  []*audit.Batch{full, regular},
			in:     EvidenceInput{Fleet: onlyIn("m1", "m3")},
			want:   "0 0 0 0 0 0",
		},
		"NoSundays": {
			reason: "what runs on Sundays was never seen",
			flows: []*audit.Batch{full, regular, lost("m1", 0, audit.LossGap, sunday(0), sunday(0).Add(day)),
				lost("m1", 0, audit.LossGap, sunday(7), sunday(7).Add(day)),
				lost("m1", 0, audit.LossGap, ago(14), ago(14).Add(time.Second))},
			want: "34 17 10 10 10 10", enough: true,
			says: []string{"in every member: Sunday. A job"},
		},
		"OneSunday": {
			reason: "the other Sunday was watched",
			flows:  []*audit.Batch{full, regular, lost("m1", 0, audit.LossGap, sunday(0), sunday(0).Add(day))},
			want:   "37 20 10 10 10 10", enough: true,
		},
		"SomeLoss": {
			reason: "one in a hundred flows lost",
			flows:  []*audit.Batch{full, regular, lost("m1", 14, audit.LossRing, ago(3), ago(3))},
			want:   "40 20 8 10 10 10", enough: true,
			says: []string{"At least 14 flows of m1 were lost (1.0% of all there)"},
		},
		"HardlyLost": {
			reason: "only what is complete has all points",
			flows:  []*audit.Batch{full, flows(edge(app+"1", bobs, 6379, policy.Audited), 100000, every(14)...), lost("m1", 1, audit.LossRing, ago(3), ago(3))},
			want:   "40 20 9 10 10 10", enough: true,
			says: []string{"At least 1 flows of m1 were lost (<0.1% of all there)"},
		},
		"MuchLoss": {
			reason: "with so much lost the rest means little",
			flows:  []*audit.Batch{full, regular, lost("m1", 1000, audit.LossRing, ago(3), ago(3))},
			want:   "40 20 0 10 10 10",
		},
		"Newcomers": {
			reason: "one of ten clients is new",
			flows:  []*audit.Batch{full, many(9, 10), flows(edge(app+"late", bobs, 6379, policy.Audited), 1, 2)},
			want:   "40 20 10 6 10 10", enough: true,
			says: []string{"1 of 10 clients came only in the later half of the window (0.1 a day)"},
		},
		"CoveredNewcomers": {
			reason: "requests made in advance are no evidence about other clients",
			flows:  []*audit.Batch{full, flows(edge(app+"ok", bobs, 6380, policy.Allowed), 1, 2)},
			want:   "40 20 10 10 10 10", enough: true,
		},
		"Unattributed": {
			reason: "a tenth of the connections is nobody's",
			flows: []*audit.Batch{
				full, flows(edge(app+"1", bobs, 6379, policy.Audited), 90, 10),
				flows(edge("", bobs, 6379, policy.Audited, from("203.0.113.0/24")), 10, 10),
			},
			want: "40 20 10 10 5 10", enough: true,
			says: []string{"10 connections (10.0%) come from sources without a name"},
		},
		"MostlyUnattributed": {
			reason: "closing it would cut off nobody knows whom",
			flows:  []*audit.Batch{full, flows(edge("", bobs, 6379, policy.Audited, from("203.0.113.0/24")), 10, 10)},
			want:   "40 20 10 10 0 10", clients: "0 0 1",
		},
		"UnattributedButAllowed": {
			reason: "a range of addresses that a statement allows needs no name, and the own node none either",
			flows: []*audit.Batch{full, flows(edge("", bobs, 6379, policy.Allowed, from("198.51.100.0/24")), 10, 10),
				flows(edge("", bobs, 6379, policy.Allowed, from(ownNode)), 10, 1), flows(edge(app+"ok", bobs, 6380, policy.Allowed), 1, 9)},
			want: "40 20 10 10 10 10", enough: true, clients: "1 0 0",
		},
		"LongLived": {
			reason: "one of two clients only has connections that are older than the policy",
			flows: []*audit.Batch{full, flows(edge(app+"1", bobs, 6379, policy.Audited), 1, 10),
				flows(edge(app+"1", bobs, 6379, policy.Audited, unknown), 1, 10),
				flows(edge(app+"2", bobs, 6379, policy.Audited, unknown), 1, 10)},
			want: "40 20 10 10 10 5", enough: true, clients: "2 2 0",
			says: []string{"1 of 2 clients were seen only in connections that were open already"},
		},
		"HigherThreshold": {
			reason: "an administrator may want more",
			flows:  []*audit.Batch{watched(14, "m1"), watched(13, "m2"), regular},
			in:     EvidenceInput{Threshold: 98},
			want:   "37 20 10 10 10 10",
		},
		"ShortWindow": {
			reason: "a window of minutes is full after minutes, and has only the weekday of today",
			flows: []*audit.Batch{{Watched: []audit.WatchedSpan{{Source: "m1", From: now.Add(-time.Hour), To: now}},
				Rollups: []audit.Rollup{
					{
						Bucket: now.Add(-9 * time.Minute), Edge: edge(app+"1", bobs, 6379, policy.Audited),
						Count: 1, FirstSeen: now.Add(-9 * time.Minute), LastSeen: now.Add(-9 * time.Minute),
					},
				}}},
			in:   EvidenceInput{Window: 10 * time.Minute},
			want: "40 20 10 10 10 10", enough: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Snapshot, tc.in.Now, tc.in.Resource = with(
				world(),
				protect(bobs, v1alpha1.ModeAudit),
				allow("r", cidr+"198.51.100.0/24", "redis:connect", bobs),
				allow("ok", app+"ok", "redis:admin", bobs),
			), now, bobs
			if len(tc.in.Fleet.Everywhere) == 0 {
				tc.in.Fleet = whereWatched(tc.flows...)
			}
			r := store(tc.flows...)
			s := must[Score](t)(Evidence(t.Context(), r, tc.in))
			var points []string
			sum, missing := 0, ""
			for _, p := range s.Parts {
				points = append(points, fmt.Sprint(p.Points))
				sum += p.Points
				missing += p.Missing.Text + "\n"
				if (p.Points == p.Of) != p.Missing.IsZero() {
					t.Errorf("%s has %d of %d points and says %q", p.Name, p.Points, p.Of, p.Missing)
				}
			}
			if got := strings.Join(points, " "); got != tc.want || s.Value != sum || s.Enough != tc.enough {
				t.Errorf("%s: %s (%d, enough %v), want %s (enough %v)\n%s", tc.reason, got, s.Value, s.Enough, tc.want, tc.enough, missing)
			}
			for _, text := range tc.says {
				if !strings.Contains(missing, text) {
					t.Errorf("%q is not among what is missing:\n%s", text, missing)
				}
			}
			if tc.clients != "" && tc.clients != fmt.Sprint(s.Clients, s.Uncovered, s.Unattributed) {
				t.Errorf("%d clients, %d not covered, %d sources without a name, want %s", s.Clients, s.Uncovered, s.Unattributed, tc.clients)
			}
			bulk := must[map[string]Score](t)(EvidenceOf(t.Context(), r, tc.in, []string{bobs, orders}))
			if diff := cmp.Diff(s, bulk[bobs]); diff != "" || len(bulk) != 2 {
				t.Errorf("among others it has another score (-alone +among others):\n%s", diff)
			}
		})
	}
}

// sunday is the last one, or the one that many days before it.
func sunday(before int) time.Time { return time.Date(2026, 11, 15-before, 0, 0, 0, 0, time.UTC) }

// many are clients with one connection each, that many days ago.
func many(n, days int) *audit.Batch {
	b := &audit.Batch{}
	for i := range n {
		b.Rollups = append(b.Rollups, flows(edge(fmt.Sprint(app, "many-", i), bobs, 6379, policy.Audited), 1, days).Rollups...)
	}
	return b
}

// More watching, fewer losses and fewer strangers never lower a score.
func TestEvidenceIsMonotone(t *testing.T) {
	s := with(world(), protect(bobs, v1alpha1.ModeAudit))
	value := func(days int, losses, strangers int64) int {
		r := store(
			watched(days, "m1"),
			flows(edge(app+"1", bobs, 6379, policy.Audited), 1000, every(14)...),
			lost("m1", losses, audit.LossRing, ago(1), ago(1)),
			flows(edge("", bobs, 6379, policy.Audited, from("203.0.113.0/24")), strangers+1, 10),
		)
		return must[Score](t)(Evidence(t.Context(), r, EvidenceInput{Snapshot: s, Resource: bobs, Now: now, Fleet: onlyIn("m1")})).Value
	}
	for days := range 15 {
		for _, n := range []int64{0, 10, 200, 5000} {
			v := value(days, n, n)
			if v < 0 || v > 100 {
				t.Fatalf("a score of %d", v)
			}
			for what, better := range map[string]int{
				"a day more": value(days+1, n, n), "fewer losses": value(days, n/2, n), "fewer strangers": value(days, n, n/2),
			} {
				if better < v {
					t.Errorf("%d days, %d lost, %d strangers: %d points, and with %s %d", days, n, n, v, what, better)
				}
			}
		}
	}
}
