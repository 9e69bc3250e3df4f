package hubble

import (
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// TestFlowsAreDecidedByWhatTheMemberHas verifies that flows are decided by the policies of their member, which may differ from
// those of others while it is quarantined or late.
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
		"InStep": {"the member has the host's policies", nil, []func(*flowpb.Flow){later(time.Hour), dropped}, policy.DefaultDenied, 0, 0, 0},
		"Behind": {
			"the revocation is not in the member, an hour later", audit.Lags{resource: {older}},
			[]func(*flowpb.Flow){later(time.Hour)}, policy.Allowed, 1, 0, 0,
		},
		"BehindDropped": {
			"the dataplane applies the host's policies before they are read back", audit.Lags{resource: {older}},
			[]func(*flowpb.Flow){later(time.Hour), dropped}, policy.DefaultDenied, 0, 0, 0,
		},
		"Before": {"the lag had not begun", audit.Lags{resource: {older}}, []func(*flowpb.Flow){later(-time.Minute), dropped}, policy.DefaultDenied, 0, 0, 0},
		"AnotherOne": {
			"another resource lags", audit.Lags{resource + "x": {older}},
			[]func(*flowpb.Flow){later(time.Hour), dropped}, policy.DefaultDenied, 0, 0, 0,
		},
		"NothingThere": {
			"the member does not have the resource yet", audit.Lags{resource: {{Kind: audit.LagNothing, From: change}}},
			[]func(*flowpb.Flow){later(time.Hour)}, policy.Unmanaged, 1, 0, 0,
		},
		"Opened": {
			"enforcement was suspended in the member", audit.Lags{resource: {{Kind: audit.LagOpen, From: change}}},
			[]func(*flowpb.Flow){later(time.Hour)}, policy.Audited, 1, 0, 0,
		},
		"Unknown": {
			"the member's revision is unknown, and counted as such", audit.Lags{resource: {{From: change}}},
			[]func(*flowpb.Flow){later(time.Hour)}, policy.DefaultDenied, 0, 1, 0,
		},
		"NeitherOfThem": {
			"the dataplane differs from both policies",
			audit.Lags{resource: {{Kind: audit.LagOlder, From: change, Has: closed(), At: change}}},
			[]func(*flowpb.Flow){later(time.Hour)}, policy.DefaultDenied, 0, 0, 1,
		},
		"CaughtUpByThen": {
			"the lag has ended", audit.Lags{resource: {ended(older, change.Add(time.Minute))}},
			[]func(*flowpb.Flow){later(time.Hour), dropped}, policy.DefaultDenied, 0, 0, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("unused", l)
			cfg.Now, cfg.Policies = func() time.Time { return change.Add(2 * time.Hour) }, fixed{[]audit.Epoch{{Evaluator: closed()}}}
			cfg.Lags = func(member string) audit.Lags {
				if member != "m1" {
					t.Errorf("got lags requested for member %s", member)
				}
				return tc.lags
			}
			take(ingesterOf(t, &cfg, audit.Resume{}), verdict(1, tc.flow...))
			for e := range l.edges {
				if e.Decision != tc.want {
					t.Errorf("%s: got %s, want %s", tc.reason, e.Decision, tc.want)
				}
			}
			if len(l.edges) != 1 {
				t.Errorf("got %d edges, want 1", len(l.edges))
			}
			if got := testutil.ToFloat64(cfg.Metrics.byMember.WithLabelValues("m1")); got != tc.lagging {
				t.Errorf("%s: got %v decided by the member's policies", tc.reason, got)
			}
			if got := testutil.ToFloat64(cfg.Metrics.unknown.WithLabelValues("m1")); got != tc.unknown {
				t.Errorf("%s: got %v with unknown policies", tc.reason, got)
			}
			if got := testutil.ToFloat64(
				cfg.Metrics.disagreements.WithLabelValues("m1", string(policy.DefaultDenied), string(audit.VerdictForwarded)),
			); got != tc.disagree {
				t.Errorf("%s: got %v disagreements", tc.reason, got)
			}
		})
	}
}

// TestPropagationDelayWhileAMemberLags verifies that a dataplane which still does what the policies before a change said is no disagreement
// within the propagation delay, and is one afterwards.
func TestPropagationDelayWhileAMemberLags(t *testing.T) {
	for name, lag := range map[string]audit.Lag{
		"Unknown":       {From: t0},
		"NeitherOfThem": {Kind: audit.LagOlder, From: t0, Has: closed(), At: t0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("unused", l)
			cfg.Now = func() time.Time { return t0.Add(2 * time.Hour) }
			cfg.Policies = fixed{[]audit.Epoch{{Evaluator: closed(), Since: t0}, {Evaluator: closed(allow("was"))}}}
			lags := audit.Lags{edge().Resource: {lag}}
			cfg.Lags = func(string) audit.Lags { return lags } // the same one, whose decisions are kept
			in := ingesterOf(t, &cfg, audit.Resume{})
			for i, after := range []time.Duration{10 * time.Second, time.Hour} {
				clear(l.edges)
				take(in, verdict(i+1, when(t0.Add(after))))
				if len(l.edges) != 1 {
					t.Fatalf("got %d edges after %s, want 1", len(l.edges), after)
				}
				for e := range l.edges {
					if e.Disagrees() != (after > propagationDelay) {
						t.Errorf("after %s: %s by the policies, %s by the dataplane", after, e.Decision, e.Verdict)
					}
				}
			}
		})
	}
}

func ended(l audit.Lag, at time.Time) audit.Lag {
	l.Until = at
	return l
}

// TestDecisionsChangeWhenAMemberCatchesUp verifies that a decision by a member's policies is dropped from the cache when the
// member's lags change.
func TestDecisionsChangeWhenAMemberCatchesUp(t *testing.T) {
	l := newMemorySink()
	cfg := config("unused", l)
	cfg.Now, cfg.Policies = func() time.Time { return t0.Add(2 * time.Hour) }, fixed{[]audit.Epoch{{Evaluator: closed()}}}
	lags := audit.Lags{edge().Resource: {{Kind: audit.LagNothing, From: t0}}}
	cfg.Lags = func(string) audit.Lags { return lags }
	in := ingesterOf(t, &cfg, audit.Resume{})
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
		t.Errorf("got decisions %v", got)
	}
}
