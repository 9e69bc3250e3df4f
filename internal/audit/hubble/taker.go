package hubble

import (
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/acp-io/acp/internal/audit"
)

// request asks for verdicts at destinations and for traces. It uses only the filters that every observer has: a smaller
// one refuses what it does not know. Servers that ignore filters send more; the taker looks again at everything.
func request(since time.Time) *observerpb.GetFlowsRequest {
	return &observerpb.GetFlowsRequest{
		Follow: true,
		Since:  timestamppb.New(since),
		Whitelist: []*flowpb.FlowFilter{
			{EventType: []*flowpb.EventTypeFilter{{Type: eventVerdict}}, TrafficDirection: []flowpb.TrafficDirection{flowpb.TrafficDirection_INGRESS}},
			{EventType: []*flowpb.EventTypeFilter{{Type: eventTrace}}},
		},
	}
}

// taker turns the responses of one member into counts. It outlives the connections, and is used by one goroutine.
type taker struct {
	cfg         *Config
	seen        *seen
	connections *connections
	// overlapDue: the source was asked again for events that are known, and none of them came yet.
	overlapDue bool
}

func newTaker(cfg *Config, r audit.Resume) *taker {
	return &taker{cfg: cfg, seen: newSeen(r), connections: newConnections(r.Position)}
}

// since is the time to ask from.
func (t *taker) since(started time.Time) time.Time {
	if t.seen.position.IsZero() {
		return started
	}
	return t.seen.forget()
}

// resumed is called when the source has taken the request.
func (t *taker) resumed() { t.overlapDue = len(t.seen.events) > 0 && !t.seen.position.IsZero() }

func (t *taker) take(r *observerpb.GetFlowsResponse) {
	switch {
	case r.GetFlow() != nil:
		t.takeFlow(r.GetFlow())
	case r.GetLostEvents() != nil:
		t.takeLost(r)
	case r.GetNodeStatus() != nil:
		t.takeNodeStatus(r)
	}
}

func (t *taker) takeFlow(f *flowpb.Flow) {
	now := t.cfg.Now()
	o, err := observe(t.cfg.Member, f)
	// A time that is still to come is a clock that is wrong: grants would be decided as ended, counts would lie in minutes
	// that nobody looks at, and the event would have to be remembered until then.
	if o.Time.After(now) {
		o.Time = now
	}
	at := o.Time
	if at.IsZero() {
		at = now
	}
	id := identify(f)
	position := t.seen.position
	isNew := t.seen.take(id, at, now)
	if t.overlapDue {
		t.overlapDue = false
		if isNew && at.After(position) {
			t.cfg.Sink.Lose(audit.Loss{Cluster: t.cfg.Member, Reason: audit.LossGap, From: position, To: at})
		}
	}
	taken := audit.Taken{Seen: audit.Seen{Source: t.cfg.Member, Time: at, ID: id}, Count: o.Count}
	cl, why := classify(f)
	switch {
	case why != "":
	case err != nil:
		if isNew {
			t.cfg.Log.Debug("a flow could not be read", "error", err)
			t.cfg.Sink.Lose(audit.Loss{Cluster: t.cfg.Member, Node: f.GetNodeName(), Reason: audit.LossUnreadable, Count: 1, From: at, To: at})
		}
	case !t.connections.counts(cl, &o): // asked of repeated events too: what is remembered does not survive a restart
		why = skipKnown
	case isNew:
		taken.Edges = t.decide(o)
	}
	if !isNew {
		t.cfg.Metrics.duplicates.WithLabelValues(t.cfg.Member).Inc()
		return
	}
	if why != "" {
		t.cfg.Metrics.skipped.WithLabelValues(t.cfg.Member, string(why)).Inc()
	}
	taken.Position, taken.Forget = t.seen.position, t.seen.forget()
	t.cfg.Metrics.lastFlow.WithLabelValues(t.cfg.Member).Set(float64(taken.Position.UnixMilli()) / 1000)
	t.cfg.Sink.Take(taken)
}

func (t *taker) decide(o audit.Observation) []audit.Edge {
	e := t.cfg.Evaluators.Evaluator()
	r := audit.Attribute(e, o)
	labels := []string{t.cfg.Member, string(r.Word), string(r.Verdict)}
	t.cfg.Metrics.flows.WithLabelValues(labels...).Add(float64(o.Count))
	if r.Disagrees() {
		t.cfg.Metrics.disagreements.WithLabelValues(labels...).Add(float64(o.Count))
	}
	return r.Edges(e)
}

func (t *taker) takeLost(r *observerpb.GetFlowsResponse) {
	now := t.cfg.Now()
	lost := r.GetLostEvents()
	loss := audit.Loss{Cluster: t.cfg.Member, Node: r.GetNodeName(), Reason: lossReason(lost.GetSource()), Count: clampCount(lost.GetNumEventsLost()), From: now, To: now}
	if r.GetTime().CheckValid() == nil {
		// It lies in the ring like a flow, and is delivered again like one.
		at := r.GetTime().AsTime()
		id := identifyLost(r)
		if !t.seen.take(id, at, now) {
			t.cfg.Metrics.duplicates.WithLabelValues(t.cfg.Member).Inc()
			return
		}
		loss.From, loss.To = at, at
		t.cfg.Sink.Take(audit.Taken{Seen: audit.Seen{Source: t.cfg.Member, Time: at, ID: id}, Position: t.seen.position, Forget: t.seen.forget()})
	}
	if lost.GetFirst().CheckValid() == nil {
		loss.From = lost.GetFirst().AsTime()
	}
	if lost.GetLast().CheckValid() == nil {
		loss.To = lost.GetLast().AsTime()
	}
	t.cfg.Sink.Lose(loss)
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
func (t *taker) takeNodeStatus(r *observerpb.GetFlowsResponse) {
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
