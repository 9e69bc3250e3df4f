package hubble

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/audit/rollup"
	"github.com/acp-io/acp/internal/audit/spool"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/policy"
)

// hourRecorder is a Sink that records counts and edges by the time since t0.
type hourRecorder struct {
	*memorySink
	shown map[time.Duration]int64
	as    map[audit.Verdict]int
}

func (h *hourRecorder) Add(t *audit.Event) {
	if t.EdgeGroup != nil {
		h.shown[t.Time.Sub(t0)] += t.Count
		h.as[t.EdgeGroup.Edges[0].Verdict]++
	}
	h.memorySink.Add(t)
}

// of returns an event of the connection of verdict(n), at the time since t0.
func of(n, i int, since time.Duration, change ...func(*flowpb.Flow)) *flowpb.Flow {
	f := verdict(i, append(change, when(t0.Add(since)))...)
	f.L4 = verdict(n).L4
	return f
}

func TestOpenConnectionsAreReportedOnceAnHour(t *testing.T) {
	const minute = time.Minute
	traffic, opened := trace(flowpb.TraceReason_ESTABLISHED), trace(flowpb.TraceReason_NEW)
	denied := closed()
	for name, tc := range map[string]struct {
		reason  string
		resumed time.Time
		later   audit.Evaluator // decides after the first hour; nil means no change
		events  []*flowpb.Flow
		want    map[time.Duration]int64
		as      map[audit.Verdict]int
	}{
		"Verdict": {
			reason: "each hour once, under the verdict of its opening",
			events: []*flowpb.Flow{
				of(1, 1, 0), of(1, 2, minute, traffic), of(1, 3, 61*minute, traffic),
				of(1, 4, 62*minute, traffic), of(1, 5, 125*minute, traffic),
			},
			want: map[time.Duration]int64{0: 1, 61 * minute: 0, 125 * minute: 0},
			as:   map[audit.Verdict]int{audit.VerdictForwarded: 3},
		},
		"OpenedWithoutPolicy": {
			reason: "a trace of its opening is what it was counted by",
			events: []*flowpb.Flow{of(1, 1, 0, opened), of(1, 2, 61*minute, traffic)},
			want:   map[time.Duration]int64{0: 1, 61 * minute: 0},
			as:     map[audit.Verdict]int{audit.VerdictForwarded: 2},
		},
		"OpenedLongAgo": {
			reason: "its opening was not observed",
			events: []*flowpb.Flow{of(1, 1, 0, traffic), of(1, 2, 61*minute, traffic)},
			want:   map[time.Duration]int64{0: 1, 61 * minute: 0},
			as:     map[audit.Verdict]int{audit.VerdictUnknown: 2},
		},
		"ManyOfOnePair": {
			reason: "their edge is shown once, and not at all where it counts in the hour",
			events: []*flowpb.Flow{
				of(1, 1, 0), of(2, 2, 1), of(1, 3, 61*minute, traffic),
				of(2, 4, 62*minute, traffic), of(3, 5, 121*minute), of(1, 6, 122*minute, traffic),
			},
			want: map[time.Duration]int64{0: 1, 1: 1, 61 * minute: 0, 121 * minute: 1},
			as:   map[audit.Verdict]int{audit.VerdictForwarded: 4},
		},
		"AfterARestart": {
			reason:  "whether it was counted is not known, that it is in use is",
			resumed: t0.Add(-time.Second),
			events:  []*flowpb.Flow{of(1, 1, 0, traffic), of(1, 2, minute, traffic), of(1, 3, 61*minute, traffic)},
			want:    map[time.Duration]int64{0: 0, 61 * minute: 0},
			as:      map[audit.Verdict]int{audit.VerdictUnknown: 2},
		},
		"Repeated": {
			reason: "an event that is delivered again shows nothing new",
			events: []*flowpb.Flow{of(1, 1, 0), of(1, 2, 61*minute, traffic), of(1, 2, 61*minute, traffic)},
			want:   map[time.Duration]int64{0: 1, 61 * minute: 0},
			as:     map[audit.Verdict]int{audit.VerdictForwarded: 2},
		},
		"LateFromAnotherNode": {
			reason: "an event of an hour that is over does not open it again",
			events: []*flowpb.Flow{of(1, 1, 59*minute), of(1, 2, 60*minute, traffic), of(1, 3, 60*minute-1, traffic), of(1, 4, 60*minute+1, traffic)},
			want:   map[time.Duration]int64{59 * minute: 1, 60 * minute: 0},
			as:     map[audit.Verdict]int{audit.VerdictForwarded: 2},
		},
		"RefusedSince": {
			reason: "the verdict of its opening is none about the policies of today, so nothing disagrees",
			later:  denied,
			events: []*flowpb.Flow{of(1, 1, 0), of(1, 2, 61*minute, traffic)},
			want:   map[time.Duration]int64{0: 1, 61 * minute: 0},
			as:     map[audit.Verdict]int{audit.VerdictForwarded: 1, audit.VerdictUnknown: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hourRecorder{newMemorySink(), map[time.Duration]int64{}, map[audit.Verdict]int{}}
			cfg := config("unused", h.memorySink)
			cfg.Sink, cfg.Now = h, func() time.Time { return t0.Add(24 * time.Hour) }
			if tc.later != nil {
				cfg.Policies = fixed{[]audit.Epoch{{Evaluator: tc.later, Since: t0.Add(time.Hour)}, {Evaluator: snapshot()}}}
			}
			in := ingesterOf(t, &cfg, audit.Resume{Position: tc.resumed})
			for _, f := range tc.events {
				take(in, f)
			}
			if diff := cmp.Diff(tc.want, h.shown); diff != "" {
				t.Errorf("%s: counts by time (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.as, h.as); diff != "" {
				t.Errorf("%s: by verdict (-want +got):\n%s", tc.reason, diff)
			}
			for e := range h.edges {
				if e.Disagrees() {
					t.Errorf("%s: got edge %+v that disagrees, want none", tc.reason, e)
				}
			}
		})
	}
}

// TestOpenConnectionsToIstioAreReported checks that a connection that the access log counts is reported as still open by Hubble: the
// proxy writes its entry only when it is closed.
func TestOpenConnectionsToIstioAreReported(t *testing.T) {
	h := &hourRecorder{newMemorySink(), map[time.Duration]int64{}, map[audit.Verdict]int{}}
	cfg := config("unused", h.memorySink)
	cfg.Sink, cfg.Now = h, func() time.Time { return t0.Add(24 * time.Hour) }
	cfg.Policies, cfg.BesideIstio = always(meshed(v1alpha1.ModeEnforce, v1alpha1.EnforcerIstio)), func() bool { return true }
	in := ingesterOf(t, &cfg, audit.Resume{})
	toFraud := func(f *flowpb.Flow) {
		f.Destination.Labels = []string{"k8s:com.trip/grpc-service=fraud"}
		f.L4.GetTCP().DestinationPort = 9090
	}
	opened := of(1, 1, 0)
	toFraud(opened)
	take(in, opened)
	for i := range 3 {
		f := of(1, 2+i, time.Duration(i)*40*time.Minute, trace(flowpb.TraceReason_ESTABLISHED))
		toFraud(f)
		take(in, f)
	}
	if diff := cmp.Diff(map[time.Duration]int64{80 * time.Minute: 0}, h.shown); diff != "" {
		t.Errorf("counts by time (-want +got):\n%s", diff)
	}
	for e := range h.edges {
		if e.Resource != fraud || e.Disagrees() {
			t.Errorf("got edge %+v", e)
		}
	}
}

// granted returns policies with a resource that two applications may use, since long before the flows.
func granted() *policy.Snapshot {
	in := classes()
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "clients", CreationTimestamp: metav1.NewTime(t0.Add(-90 * 24 * time.Hour))}}
	for _, app := range []string{"888", "889"} {
		p.Spec.Statements = append(
			p.Spec.Statements,
			v1alpha1.Statement{
				SID:       "app-" + app,
				Effect:    v1alpha1.EffectAllow,
				Subjects:  []v1alpha1.Subject{v1alpha1.Subject("trnv1:rsc:trip-com:iam:sa:app/" + app)},
				Actions:   []v1alpha1.Action{"redis:connect"},
				Resources: []v1alpha1.ResourceName{"trnv1:rsc:trip-com:redis:clusters:a"},
			},
		)
	}
	in.Policies = append(in.Policies, p)
	return policy.NewSnapshot(in)
}

// TestOpenConnectionsCountAsUsed runs events of Hubble through roll-ups, spool and store to the report of unused grants: two
// clients opened a connection 40 days ago, and one of them still uses it. The collector restarts in between.
func TestOpenConnectionsCountAsUsed(t *testing.T) {
	const days = 40
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	log := slog.New(slog.DiscardHandler)
	sp, err := spool.Open(spool.Config{Dir: t.TempDir(), Store: store, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	totals, err := rollup.New(rollup.Config{Store: sp, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, now := granted(), t0.Add(days*24*time.Hour)
	cfg := config("unused", newMemorySink())
	cfg.Sink, cfg.Policies, cfg.Now = totals, always(snapshot), func() time.Time { return now }
	gone := func(f *flowpb.Flow) { f.Source.Labels[0] = "k8s:com.trip/appid=889" }
	in := ingesterOf(t, &cfg, audit.Resume{})
	take(in, of(1, 1, 0))
	take(in, of(2, 2, 1, gone))
	seen := 3
	for day := range days {
		for half := range 48 {
			take(in, of(1, seen, time.Duration(day)*24*time.Hour+time.Duration(1+half)*30*time.Minute, trace(flowpb.TraceReason_ESTABLISHED)))
			seen++
		}
		if err := totals.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if day == days/2 {
			r, err := store.Resume(t.Context(), "m1")
			if err != nil {
				t.Fatal(err)
			}
			in = ingesterOf(t, &cfg, r)
		}
	}
	totals.Progress(audit.Progress{WatchedSpan: audit.WatchedSpan{Source: "m1", From: t0, To: now}})
	if err := totals.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	unused, err := insight.Unused(t.Context(), store, insight.UnusedInput{Snapshot: snapshot, Now: now, Fleet: insight.Fleet{Everywhere: []string{"m1"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range unused {
		got = append(got, u.Ref.SID)
	}
	if diff := cmp.Diff([]string{"app-889"}, got); diff != "" {
		t.Errorf("unused grants (-want +got):\n%s", diff)
	}
	counts := map[string]int64{}
	if err := store.Totals(t.Context(), audit.Filter{}, func(x audit.Total) error {
		counts[x.Subject[len(x.Subject)-len("888"):]+" "+string(x.Verdict)] = x.Count
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int64{"888 forwarded": 1, "888 unknown": 0, "889 forwarded": 1}, counts); diff != "" {
		t.Errorf("connections (-want +got):\n%s", diff)
	}
}
