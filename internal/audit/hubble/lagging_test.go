package hubble

import (
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Flows are decided by what their member has, which a quarantined or late member does not share with the others.
func TestFlowsAreDecidedByWhatTheMemberHas(t *testing.T) {
	change := t0
	resource := edge().Resource
	older := audit.Lag{Kind: audit.LagOlder, From: change, Has: closed(allow("was")), At: change.Add(-1)}
	dropped := func(f *flowpb.Flow) { f.Verdict = flowpb.Verdict_DROPPED }
	later := func(d time.Duration) func(*flowpb.Flow) { return when(change.Add(d)) }
	for name, tc := range map[string]struct {
		reason   string
		lags     audit.Lags
		flow     []func(*flowpb.Flow)
		want     policy.Verdict
		lagging  float64
		unknown  float64
		disagree float64
	}{
		"InStep":         {"the member has what the host asks for", nil, []func(*flowpb.Flow){later(time.Hour), dropped}, policy.DefaultDenied, 0, 0, 0},
		"Behind":         {"the revocation is not in the member, an hour later", audit.Lags{resource: {older}}, []func(*flowpb.Flow){later(time.Hour)}, policy.Allowed, 1, 0, 0},
		"BehindDropped":  {"the dataplane does what the host says before it is read back", audit.Lags{resource: {older}}, []func(*flowpb.Flow){later(time.Hour), dropped}, policy.DefaultDenied, 0, 0, 0},
		"Before":         {"the lag had not begun", audit.Lags{resource: {older}}, []func(*flowpb.Flow){later(-time.Minute), dropped}, policy.DefaultDenied, 0, 0, 0},
		"AnotherOne":     {"another resource lags", audit.Lags{resource + "x": {older}}, []func(*flowpb.Flow){later(time.Hour), dropped}, policy.DefaultDenied, 0, 0, 0},
		"NothingThere":   {"the member has nothing of the resource yet", audit.Lags{resource: {{Kind: audit.LagNothing, From: change}}}, []func(*flowpb.Flow){later(time.Hour)}, policy.Unmanaged, 1, 0, 0},
		"Opened":         {"the member was opened by hand", audit.Lags{resource: {{Kind: audit.LagOpen, From: change}}}, []func(*flowpb.Flow){later(time.Hour)}, policy.Audited, 1, 0, 0},
		"Unknown":        {"nobody knows what it has, and that is said", audit.Lags{resource: {{From: change}}}, []func(*flowpb.Flow){later(time.Hour)}, policy.DefaultDenied, 0, 1, 0},
		"NeitherOfThem":  {"the dataplane does what neither says", audit.Lags{resource: {{Kind: audit.LagOlder, From: change, Has: closed(), At: change}}}, []func(*flowpb.Flow){later(time.Hour)}, policy.DefaultDenied, 0, 0, 1},
		"CaughtUpByThen": {"the lag was over", audit.Lags{resource: {ended(older, change.Add(time.Minute))}}, []func(*flowpb.Flow){later(time.Hour), dropped}, policy.DefaultDenied, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			cfg := config("unused", l)
			cfg.Now, cfg.Evaluators = func() time.Time { return change.Add(2 * time.Hour) }, fixed{[]audit.Epoch{{Evaluator: closed()}}}
			cfg.Lags = func(member string) audit.Lags {
				if member != "m1" {
					t.Errorf("asked about %s", member)
				}
				return tc.lags
			}
			take(intakeOf(t, &cfg, audit.Resume{}), verdict(1, tc.flow...))
			for e := range l.edges {
				if e.Decision != tc.want {
					t.Errorf("%s: %s, want %s", tc.reason, e.Decision, tc.want)
				}
			}
			if len(l.edges) != 1 {
				t.Errorf("%d edges", len(l.edges))
			}
			if got := testutil.ToFloat64(cfg.Metrics.lagging.WithLabelValues("m1")); got != tc.lagging {
				t.Errorf("%s: %v decided by the member", tc.reason, got)
			}
			if got := testutil.ToFloat64(cfg.Metrics.unknown.WithLabelValues("m1")); got != tc.unknown {
				t.Errorf("%s: %v unknown", tc.reason, got)
			}
			if got := testutil.ToFloat64(cfg.Metrics.disagreements.WithLabelValues("m1", string(policy.DefaultDenied), string(audit.VerdictForwarded))); got != tc.disagree {
				t.Errorf("%s: %v disagreements", tc.reason, got)
			}
		})
	}
}

func ended(l audit.Lag, at time.Time) audit.Lag {
	l.Until = at
	return l
}

// A decision by a member's revision is dropped from the cache when that revision changes.
func TestAMemberCatchesUp(t *testing.T) {
	l := newLedger()
	cfg := config("unused", l)
	cfg.Now, cfg.Evaluators = func() time.Time { return t0.Add(2 * time.Hour) }, fixed{[]audit.Epoch{{Evaluator: closed()}}}
	lags := audit.Lags{edge().Resource: {{Kind: audit.LagNothing, From: t0}}}
	cfg.Lags = func(string) audit.Lags { return lags }
	in := intakeOf(t, &cfg, audit.Resume{})
	var got []policy.Verdict
	for i := range 3 {
		clear(l.edges)
		take(in, verdict(10+i, when(t0.Add(time.Duration(i+1)*time.Minute))))
		for e := range l.edges {
			got = append(got, e.Decision)
		}
		if i == 1 {
			lags = nil
		}
	}
	if len(got) != 3 || got[0] != policy.Unmanaged || got[1] != policy.Unmanaged || got[2] != policy.DefaultDenied {
		t.Errorf("decided as %v", got)
	}
}
