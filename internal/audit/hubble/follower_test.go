package hubble

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

func verdicts(from, to int) []*observerpb.GetFlowsResponse {
	var out []*observerpb.GetFlowsResponse
	for i := from; i < to; i++ {
		out = append(out, flowResponse(verdict(i)))
	}
	return out
}

func wantEdges(t *testing.T, l *memorySink, want map[audit.Edge]int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.edges); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func wantLosses(t *testing.T, l *memorySink, want ...audit.Loss) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(want, l.losses, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
}

func TestBrokenStreamsCountOnce(t *testing.T) {
	o, l := newObserver(), newMemorySink()
	f, stop := start(t, config(serve(t, o, insecure.NewCredentials()), l))
	const step, steps = 130, 4
	for i := range steps {
		// The stream breaks in the middle of the emitted events, and at their end.
		o.breakBefore(i*step + step/2)
		o.emit(verdicts(i*step, (i+1)*step)...)
		l.until(t, "the first half", func(l *memorySink) bool { return l.takenIn >= i*step+step/2 })
		o.breakBefore((i + 1) * step)
		l.until(t, "the second half", func(l *memorySink) bool { return l.takenIn >= (i+1)*step })
	}
	o.breakBefore(0)
	o.emit(flowResponse(verdict(steps * step)))
	l.until(t, "the last flow", func(l *memorySink) bool { return l.takenIn == steps*step+1 })
	wantEdges(t, l, map[audit.Edge]int64{edge(): steps*step + 1})
	wantLosses(t, l)
	o.mu.Lock()
	sessions := len(o.sessions)
	o.mu.Unlock()
	if sessions < 2*steps {
		t.Errorf("got %d streams, want at least %d", sessions, 2*steps)
	}
	stop() // the state is updated after the sink
	if s := f.State(); !s.Connected || s.Problem != "" || !s.Position.Equal(at(steps*step)) {
		t.Errorf("State = %+v, want connected at the last flow", s)
	}
}

func TestRestartCountsOnce(t *testing.T) {
	o, l := newObserver(), newMemorySink()
	address := serve(t, o, insecure.NewCredentials())
	o.emit(verdicts(0, 300)...)
	_, stop := start(t, config(address, l))
	l.until(t, "the first run", func(l *memorySink) bool { return l.takenIn == 300 })
	stop()
	// A flow that a slow node sent late lies before the position, and was not seen before.
	o.emit(flowResponse(verdict(290, func(f *flowpb.Flow) { f.Uuid = "late"; f.L4.GetTCP().SourcePort = 9 })))
	o.emit(verdicts(300, 320)...)
	start(t, config(address, l))
	l.until(t, "the second run", func(l *memorySink) bool { return l.takenIn == 321 })
	wantEdges(t, l, map[audit.Edge]int64{edge(): 321})
	wantLosses(t, l)
}

func TestEventsDroppedFromTheRingAreAGap(t *testing.T) {
	o, l := newObserver(), newMemorySink()
	address := serve(t, o, insecure.NewCredentials())
	o.emit(verdicts(0, 50)...)
	_, stop := start(t, config(address, l))
	l.until(t, "the first run", func(l *memorySink) bool { return l.takenIn == 50 })
	stop()
	o.emit(verdicts(50, 80)...)
	o.forget(60)
	start(t, config(address, l))
	l.until(t, "the second run", func(l *memorySink) bool { return l.takenIn == 70 })
	wantEdges(t, l, map[audit.Edge]int64{edge(): 70})
	wantLosses(t, l, audit.Loss{Cluster: "m1", Reason: audit.LossGap, From: at(49), To: at(60)})
}

func TestLostEventsAreRecordedOnce(t *testing.T) {
	o, l := newObserver(), newMemorySink()
	address := serve(t, o, insecure.NewCredentials())
	o.emit(flowResponse(verdict(0)), lostResponse(at(1), flowpb.LostEventSource_PERF_EVENT_RING_BUFFER, 7), flowResponse(verdict(2)),
		lostResponse(at(3), flowpb.LostEventSource_OBSERVER_EVENTS_QUEUE, 1<<63), lostResponse(at(4), flowpb.LostEventSource_HUBBLE_RING_BUFFER, 3))
	_, stop := start(t, config(address, l))
	l.until(t, "the first run", func(l *memorySink) bool { return l.takenIn == 5 })
	stop()
	o.emit(flowResponse(verdict(5)))
	start(t, config(address, l))
	l.until(t, "the second run", func(l *memorySink) bool { return l.takenIn == 6 })
	loss := func(i int, r audit.LossReason, n int64) audit.Loss {
		return audit.Loss{Cluster: "m1", Node: "n1", Reason: r, Count: n, From: at(i), To: at(i)}
	}
	wantLosses(t, l, loss(1, audit.LossDataplane, 7), loss(3, audit.LossQueue, 1<<40), loss(4, audit.LossRing, 3))
	wantEdges(t, l, map[audit.Edge]int64{edge(): 3})
}

func TestEventsOfOneConnectionCountOnce(t *testing.T) {
	denied := func(f *flowpb.Flow) {
		f.Verdict, f.DropReasonDesc, f.IsReply = flowpb.Verdict_DROPPED, flowpb.DropReason_POLICY_DENIED, nil
	}
	o, l := newObserver(), newMemorySink()
	as := func(i int, like int, change ...func(*flowpb.Flow)) *observerpb.GetFlowsResponse {
		f := verdict(i, change...)
		f.L4 = verdict(like).L4
		return flowResponse(f)
	}
	events := []*observerpb.GetFlowsResponse{
		// 0: a verdict, the trace of its opening, and later traffic.
		as(0, 0), as(1, 0, trace(flowpb.TraceReason_NEW)), as(2, 0, trace(flowpb.TraceReason_ESTABLISHED)), as(900, 0, trace(flowpb.TraceReason_ESTABLISHED)),
		// 10: a verdict that refuses, and a drop.
		as(901, 10, denied), as(902, 10, denied, func(f *flowpb.Flow) { f.EventType.Type = eventDrop }),
		// 20: no policy, two traces.
		as(903, 20, trace(flowpb.TraceReason_NEW)), as(904, 20, trace(flowpb.TraceReason_ESTABLISHED)),
		// 30: opened long ago, traffic only.
		as(905, 30, trace(flowpb.TraceReason_ESTABLISHED)), as(906, 30, trace(flowpb.TraceReason_ESTABLISHED)),
		// 0 again: a new connection reuses the client's port, now without a policy.
		as(907, 0, trace(flowpb.TraceReason_NEW)),
		// Not counted: replies, the client's side, passing packets, L7, an agent's own events.
		as(908, 40, trace(flowpb.TraceReason_REPLY)),
		as(909, 40, trace(flowpb.TraceReason_NEW), func(f *flowpb.Flow) { f.IsReply = nil }),
		as(910, 40, trace(flowpb.TraceReason_NEW), func(f *flowpb.Flow) { f.IsReply.Value = true }),
		as(911, 40, trace(flowpb.TraceReason_NEW), func(f *flowpb.Flow) { f.TraceObservationPoint = flowpb.TraceObservationPoint_FROM_ENDPOINT }),
		as(912, 40, func(f *flowpb.Flow) { f.TrafficDirection = flowpb.TrafficDirection_EGRESS }),
		as(913, 40, func(f *flowpb.Flow) { f.EventType.Type = eventL7 }),
		as(914, 40, func(f *flowpb.Flow) { f.EventType = nil }),
		// An aggregate stands for several connections.
		as(915, 50, func(f *flowpb.Flow) { f.Aggregate = &flowpb.Aggregate{IngressFlowCount: 5, EgressFlowCount: 3} }),
	}
	o.emit(events...)
	start(t, config(serve(t, o, insecure.NewCredentials()), l))
	l.until(t, "all that count", func(l *memorySink) bool { return l.takenIn == 6 })
	dropped, long := edge(), edge()
	dropped.Verdict, long.Verdict = audit.VerdictDropped, audit.VerdictUnknown
	// Forwarded: the verdict 0, the trace 20, the reused port, five of the aggregate. The opening of 30 was not observed.
	wantEdges(t, l, map[audit.Edge]int64{edge(): 1 + 1 + 1 + 5, long: 1, dropped: 1})
	wantLosses(t, l)
}

func TestTrafficOfKnownConnectionsAfterARestart(t *testing.T) {
	o, l := newObserver(), newMemorySink()
	address := serve(t, o, insecure.NewCredentials())
	pool := func(i int) *observerpb.GetFlowsResponse {
		f := verdict(i, trace(flowpb.TraceReason_ESTABLISHED))
		f.L4 = verdict(0).L4
		return flowResponse(f)
	}
	o.emit(flowResponse(verdict(0)), flowResponse(verdict(500)))
	_, stop := start(t, config(address, l))
	l.until(t, "the first run", func(l *memorySink) bool { return l.takenIn == 2 })
	stop()
	o.emit(pool(600), pool(601), flowResponse(verdict(602)))
	start(t, config(address, l))
	l.until(t, "the second run", func(l *memorySink) bool { return l.takenIn == 4 })
	// The connection is reported as still in use and not counted, because it may have been counted before.
	open := edge()
	open.Verdict = audit.VerdictUnknown
	wantEdges(t, l, map[audit.Edge]int64{edge(): 3, open: 0})
}

func TestUnreadableFlowsAreRecordedAsLosses(t *testing.T) {
	o, l := newObserver(), newMemorySink()
	o.emit(
		flowResponse(verdict(0, func(f *flowpb.Flow) { f.IP = nil })),
		flowResponse(verdict(1, func(f *flowpb.Flow) { f.IP.Destination = "nonsense" })),
		flowResponse(verdict(2, func(f *flowpb.Flow) { f.L4 = nil })),
		&observerpb.GetFlowsResponse{},
		flowResponse(verdict(3)),
	)
	start(t, config(serve(t, o, insecure.NewCredentials()), l))
	l.until(t, "all events", func(l *memorySink) bool { return l.takenIn == 4 })
	wantEdges(t, l, map[audit.Edge]int64{edge(): 1})
	loss := func(i int) audit.Loss {
		return audit.Loss{Cluster: "m1", Node: "n1", Reason: audit.LossUnreadable, Count: 1, From: at(i), To: at(i)}
	}
	wantLosses(t, l, loss(0), loss(1), loss(2))
}

func TestMembersDoNotWaitForEachOther(t *testing.T) {
	o, l := newObserver(), newMemorySink()
	down, _ := start(t, config("127.0.0.1:1", newMemorySink()))
	start(t, config(serve(t, o, insecure.NewCredentials()), l))
	o.emit(verdicts(0, 10)...)
	l.until(t, "the flows of the member that is up", func(l *memorySink) bool { return l.takenIn == 10 })
	if s := down.State(); s.Connected || s.Problem == "" {
		t.Errorf("State of the member that is down = %+v, want a problem", s)
	}
}

func TestNodeWithClockAheadDoesNotHideOtherNodes(t *testing.T) {
	o, l := newObserver(), newMemorySink()
	address := serve(t, o, insecure.NewCredentials())
	ahead := verdict(0, func(f *flowpb.Flow) { f.Uuid = "ahead"; f.Time.Seconds += 10 * 3600; f.NodeName = "n2" })
	o.emit(flowResponse(ahead))
	_, stop := start(t, config(address, l))
	l.until(t, "the first run", func(l *memorySink) bool { return l.takenIn == 1 })
	stop()
	if l.resume.Position.After(clock()) {
		t.Errorf("the position %v is in the future", l.resume.Position)
	}
	for _, s := range l.resume.Seen {
		if s.Time.After(clock()) {
			t.Errorf("got an event at %v, which is in the future", s.Time)
		}
	}
}

func TestSeenIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		at     func(i int) time.Time
	}{
		"past":  {"a node with a clock far behind another's never moves the position", func(int) time.Time { return t0.Add(-time.Hour) }},
		"stuck": {"a clock that stands still", func(int) time.Time { return t0 }},
		"moves": {"as it should be", func(i int) time.Time { return t0.Add(time.Duration(i) * time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeenEvents(audit.Resume{Position: t0}, 100)
			for i := range 1000 {
				if !s.observe(uint64(i+1), tc.at(i), t0.Add(24*time.Hour)) {
					t.Fatalf("event %d is known, want new", i)
				}
				if name != "past" && s.observe(uint64(i+1), tc.at(i), t0.Add(24*time.Hour)) { // events of the past are not requested again
					t.Fatalf("event %d is new, want known", i)
				}
			}
			if s.n > 100 || len(s.byID) > 100 {
				t.Errorf("%s: got %d events by second and %d by ID, want at most the limit", tc.reason, s.n, len(s.byID))
			}
		})
	}
}

// TestFutureEventsAreDecidedAtPresent verifies that a node with a clock ahead does not make a grant look expired.
func TestFutureEventsAreDecidedAtPresent(t *testing.T) {
	l := newMemorySink()
	cfg := config("unused", l)
	var at time.Time
	cfg.Policies = always(evaluatorFunc(func(q policy.Query) policy.Decision {
		at = q.At
		return policy.Decision{Verdict: policy.Allowed}
	}))
	for reason, shift := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		take(ingesterOf(t, &cfg, audit.Resume{}), verdict(0, func(f *flowpb.Flow) { f.Time = timestamppb.New(clock().Add(shift)) }))
		if want := clock().Add(min(shift, 0)); !at.Equal(want) {
			t.Errorf("clock %s: got decision time %v, want %v", reason, at, want)
		}
	}
}

// evaluatorFunc is an Evaluator without any names.
type evaluatorFunc func(policy.Query) policy.Decision

func (f evaluatorFunc) NextChange(time.Time) (time.Time, bool)               { return time.Time{}, false }
func (f evaluatorFunc) LastChange(time.Time) (time.Time, bool)               { return time.Time{}, false }
func (f evaluatorFunc) SubjectsOf(map[string]string) []string                { return nil }
func (f evaluatorFunc) ResourcesOf(map[string]string) []string               { return nil }
func (f evaluatorFunc) SubjectsOfServiceAccount(string) []string             { return nil }
func (f evaluatorFunc) EnforcersOf([]string) []v1alpha1.EnforcerName         { return nil }
func (f evaluatorFunc) SubjectOfAddress(netip.Addr) (string, bool)           { return "", false }
func (f evaluatorFunc) ActionsOn(string, v1alpha1.Protocol, uint16) []string { return nil }
func (f evaluatorFunc) DecideEffective(q *policy.Query) policy.Effective {
	return policy.Effective{Decision: f(*q), Cilium: f(*q).Verdict, Written: f(*q)}
}
func (f evaluatorFunc) EffectiveMode(string, string, time.Time) v1alpha1.Mode {
	return v1alpha1.ModeObserve
}
func (f evaluatorFunc) RequestsOn(string, v1alpha1.Protocol, uint16, string, string) ([]string, bool) {
	return nil, false
}

func TestNewRejectsIncompleteConfig(t *testing.T) {
	good := config("127.0.0.1:1", newMemorySink())
	for name, tc := range map[string]struct {
		reason string
		change func(*Config)
	}{
		"NoMember":      {"no member", func(c *Config) { c.Member = "" }},
		"NoAddress":     {"no address", func(c *Config) { c.Address = "" }},
		"NoCredentials": {"no credentials", func(c *Config) { c.Credentials = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			tc.change(&c)
			if _, err := New(c); err == nil {
				t.Errorf("New accepted a configuration with %s", tc.reason)
			}
		})
	}
}
