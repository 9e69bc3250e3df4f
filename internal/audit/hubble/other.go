package hubble

import (
	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/protobuf/proto"

	"github.com/cespare/xxhash/v2"

	"github.com/acp-io/acp/internal/audit"
)

// takeOther takes what is no flow.
func (t *intake) takeOther(r *observerpb.GetFlowsResponse) {
	switch {
	case r.GetLostEvents() != nil:
		t.takeLost(r)
	case r.GetNodeStatus() != nil:
		t.takeNodeStatus(r)
	}
	t.publish()
}

func (t *intake) takeLost(r *observerpb.GetFlowsResponse) {
	now := t.cfg.Now()
	lost := r.GetLostEvents()
	loss := audit.Loss{Cluster: t.cfg.Member, Node: r.GetNodeName(), Reason: lossReason(lost.GetSource()), Count: clampCount(lost.GetNumEventsLost()), From: now, To: now}
	timed := r.GetTime().CheckValid() == nil
	if timed {
		loss.From, loss.To = r.GetTime().AsTime(), r.GetTime().AsTime()
	}
	if lost.GetFirst().CheckValid() == nil {
		loss.From = lost.GetFirst().AsTime()
	}
	if lost.GetLast().CheckValid() == nil {
		loss.To = lost.GetLast().AsTime()
	}
	if !timed {
		t.cfg.Sink.Lose(loss)
		return
	}
	// It lies in the ring like a flow, and is delivered again like one.
	at, id := r.GetTime().AsTime(), identifyLost(r)
	if at.Before(t.since) {
		t.counters.repeated.Inc()
		return
	}
	t.first(id, at, now)
	if !t.seen.take(id, at, now) {
		t.counters.repeated.Inc()
		return
	}
	t.hand(audit.Taken{Seen: audit.Seen{Time: earlier(at, now), ID: id}, Loss: &loss})
}

// identifyLost gives a report of lost events, which has no UUID, a number that is the same whenever it is delivered.
func identifyLost(r *observerpb.GetFlowsResponse) uint64 {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		return 0 // what was decoded can be encoded
	}
	return xxhash.Sum64(append(b, "lost"...))
}

// clampCount keeps a hostile number from turning a sum negative.
func clampCount(n uint64) int64 {
	const most = 1 << 40
	return int64(min(n, most))
}

func lossReason(s flowpb.LostEventSource) audit.LossReason {
	switch s {
	case flowpb.LostEventSource_PERF_EVENT_RING_BUFFER:
		return audit.LossDataplane
	case flowpb.LostEventSource_OBSERVER_EVENTS_QUEUE:
		return audit.LossQueue
	case flowpb.LostEventSource_HUBBLE_RING_BUFFER:
		return audit.LossRing
	}
	return audit.LossUnknown
}

// takeNodeStatus records nodes that a relay cannot reach: their flows are missing, nobody knows how many.
func (t *intake) takeNodeStatus(r *observerpb.GetFlowsResponse) {
	status := r.GetNodeStatus()
	switch state := status.GetStateChange().String(); state {
	case "NODE_UNAVAILABLE", "NODE_GONE", "NODE_ERROR":
		now := t.cfg.Now()
		for _, node := range status.GetNodeNames() {
			t.cfg.Log.Warn("the relay does not receive flows of a node", "node", node, "state", state, "message", status.GetMessage())
			t.cfg.Sink.Lose(audit.Loss{Cluster: t.cfg.Member, Node: node, Reason: audit.LossGap, From: now, To: now})
		}
	}
}
