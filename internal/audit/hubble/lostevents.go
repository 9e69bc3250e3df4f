package hubble

import (
	"strings"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/protobuf/proto"

	"github.com/cespare/xxhash/v2"

	"github.com/acp-io/acp/internal/audit"
)

// ingestOther ingests a message that is not a flow.
func (t *ingester) ingestOther(r *observerpb.GetFlowsResponse) {
	switch {
	case r.GetLostEvents() != nil:
		t.ingestLost(r)
	case r.GetNodeStatus() != nil:
		t.ingestNodeStatus(r)
	}
	t.publish()
}

func (t *ingester) ingestLost(r *observerpb.GetFlowsResponse) {
	now := t.cfg.Now()
	lost := r.GetLostEvents()
	loss := audit.Loss{
		Cluster: t.cfg.Member,
		Node:    nodeName([]byte(r.GetNodeName())),
		Reason:  lossReason(lost.GetSource()),
		Count:   clampCount(lost.GetNumEventsLost()),
		From:    now,
		To:      now,
	}
	oldest := t.oldest(now)
	timed := r.GetTime().CheckValid() == nil && !r.GetTime().AsTime().Before(oldest)
	if timed {
		loss.From, loss.To = r.GetTime().AsTime(), r.GetTime().AsTime()
	}
	if lost.GetFirst().CheckValid() == nil {
		loss.From = lost.GetFirst().AsTime()
	}
	if lost.GetLast().CheckValid() == nil {
		loss.To = lost.GetLast().AsTime()
	}
	// The newest time of a batch determines how long the store keeps it, so that a time in the future would concern other members.
	loss.To = audit.Earlier(audit.Later(loss.To, oldest), now)
	loss.From = audit.Earlier(audit.Later(loss.From, oldest), loss.To)
	if !timed {
		t.cfg.Sink.AddLoss(loss)
		return
	}
	// A report of lost events is in the source's ring like a flow, and is delivered again like a flow.
	at, id := r.GetTime().AsTime(), identifyLost(r)
	if at.Before(t.since) {
		t.counters.repeated.Inc()
		return
	}
	t.checkGap(id, at, now)
	if !t.seen.observe(id, at, now) {
		t.counters.repeated.Inc()
		return
	}
	t.emit(audit.Event{SeenEvent: audit.SeenEvent{Time: audit.Earlier(at, now), ID: id}, Loss: &loss})
}

// identifyLost returns a hash of a report of lost events, which has no UUID. It is the same each time the report is delivered.
func identifyLost(r *observerpb.GetFlowsResponse) uint64 {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		return 0 // cannot happen: a decoded message can be encoded
	}
	return xxhash.Sum64(append(b, "lost"...))
}

// clampCount bounds a count from the source, so that sums cannot overflow.
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

// maxStatusNodes is the number of nodes of one report that get a loss each. The others get one together. Kubernetes supports 5000.
const maxStatusNodes = 5000

// maxLogged is the number of nodes, and the number of bytes of the message, of a report that are logged.
const (
	maxLoggedNodes   = 10
	maxLoggedMessage = 512
)

// ingestNodeStatus records a loss of unknown size for each node that a relay cannot reach.
func (t *ingester) ingestNodeStatus(r *observerpb.GetFlowsResponse) {
	status := r.GetNodeStatus()
	switch state := status.GetStateChange().String(); state {
	case "NODE_UNAVAILABLE", "NODE_GONE", "NODE_ERROR":
		now := t.cfg.Now()
		names := status.GetNodeNames()
		var logged []string
		for i, name := range names {
			node := nodeName([]byte(name))
			if i == maxStatusNodes {
				node = ""
			}
			if i < maxLoggedNodes {
				logged = append(logged, node)
			}
			t.cfg.Sink.AddLoss(audit.Loss{Cluster: t.cfg.Member, Node: node, Reason: audit.LossGap, From: now, To: now})
			if i == maxStatusNodes {
				break
			}
		}
		message := status.GetMessage()
		t.cfg.Log.Warn("the relay does not receive flows of some nodes", "number", len(names), "nodes", logged, "state", state,
			"message", strings.ToValidUTF8(message[:min(len(message), maxLoggedMessage)], ""))
	}
}
