package hubble

import (
	"slices"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/acp-io/acp/internal/audit"
)

// TestOldEventsAreRecordedAsLosses verifies that an event that is older than Config.MaxAge is recorded as lost, in the present, and
// changes neither the position nor the policies' view of the past.
func TestOldEventsAreRecordedAsLosses(t *testing.T) {
	l := newMemorySink()
	cfg := config("unused", l)
	cfg.RawFlows, cfg.MaxAge = RawFlowsAll, 100*24*time.Hour
	in := ingesterOf(t, &cfg, audit.Resume{})
	times := []time.Time{t0.AddDate(0, 0, -200), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(-1, 0), t0.Add(-cfg.MaxAge - 1)}
	for i, at := range times {
		take(in, verdict(i, func(f *flowpb.Flow) { f.Time = timestamppb.New(at) }))
	}
	if len(l.flows) != 0 || l.total() != 0 || !in.seen.position.IsZero() {
		t.Errorf("got %d flows, %d connections and the position %v; want none", len(l.flows), l.total(), in.seen.position)
	}
	want := slices.Repeat([]audit.Loss{{Cluster: "m1", Node: "n1", Reason: audit.LossUnreadable, Count: 1, From: t0, To: t0}}, len(times))
	wantLosses(t, l, want...)
	take(in, verdict(9, func(f *flowpb.Flow) { f.Time = timestamppb.New(t0.Add(-cfg.MaxAge)) }))
	take(in, verdict(10))
	if len(l.flows) != 2 || l.total() != 2 {
		t.Errorf("got %d flows and %d connections, want the two that are not too old", len(l.flows), l.total())
	}
}

// TestTimesOfLossesAreBounded verifies that the times of a source's reports of lost events are neither in the future nor older than
// Config.MaxAge.
func TestTimesOfLossesAreBounded(t *testing.T) {
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{first, last, t0, {}} {
		l := newMemorySink()
		cfg := config("unused", l)
		in := ingesterOf(t, &cfg, audit.Resume{})
		r := lostResponse(at, flowpb.LostEventSource_HUBBLE_RING_BUFFER, 3)
		r.GetLostEvents().First, r.GetLostEvents().Last = timestamppb.New(first), timestamppb.New(last)
		in.ingestOther(r)
		wantLosses(t, l, audit.Loss{Cluster: "m1", Node: "n1", Reason: audit.LossRing, Count: 3, From: t0.Add(-cfg.MaxAge), To: t0})
		r.GetLostEvents().First, r.GetLostEvents().Last = timestamppb.New(last), timestamppb.New(first)
		in.ingestOther(r)
		if x := l.losses[len(l.losses)-1]; x.From.After(x.To) || x.To.After(t0) {
			t.Errorf("got a loss from %v to %v", x.From, x.To)
		}
	}
}
