package hubble

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/acp-io/acp/internal/audit"
)

// ingester turns the events of one member into counts. It outlives connections to the source. Only one goroutine may use it at a
// time.
type ingester struct {
	cfg         *Config
	seen        *seenEvents
	connections *connections
	endpoints   *endpoints
	decider     decider
	counters    *counters
	event       event
	current     audit.Event
	// since, when set, is the time before which events are ignored. It is set for sources that always deliver everything from the
	// beginning.
	since time.Time
	// overlapExpected is true after a resumption, until the first event. The source is then expected to deliver known events
	// again.
	overlapExpected bool
	// position and forget are Unix times in nanoseconds, for other goroutines.
	position, forget atomic.Int64
}

// minLimit is the least limit of each cache of a member, so that the caches stay useful however many members share the memory.
const minLimit = 1 << 12

func newIngester(cfg *Config, r audit.Resume) *ingester {
	share := func(n int) int { return max(n/cfg.Members, minLimit) }
	t := &ingester{cfg: cfg, seen: newSeenEvents(r, share(maxSeen)), connections: newConnections(r.Position, share(maxConnections)),
		counters: cfg.Metrics.forMember(cfg.Member)}
	t.decider = decider{member: cfg.Member, enforcer: cfg.enforcer(), metrics: cfg.Metrics, limit: share(maxDecisions)}
	t.endpoints = newEndpoints(share(maxEndpoints), func() { t.decider.caches, t.decider.lagging = [2]*decisionCache{}, nil })
	t.publish()
	return t
}

// expectOverlap is called when the source has accepted the request.
func (t *ingester) expectOverlap() { t.overlapExpected = !t.seen.position.IsZero() }

// ingestResponse ingests an encoded GetFlowsResponse.
func (t *ingester) ingestResponse(b []byte) {
	t.event = event{}
	if err := scanResponse(b, &t.event); err == nil {
		t.ingestFlow(&t.event)
		return
	}
	var r observerpb.GetFlowsResponse
	if err := proto.Unmarshal(b, &r); err != nil {
		t.cfg.Sink.AddLoss(*t.unreadable(nil, t.cfg.Now(), err))
		return
	}
	t.ingestMessage(&r)
}

// ingestLine ingests a line of Hubble's exporter.
func (t *ingester) ingestLine(s *scannedLine) {
	if len(s.line) == 0 {
		return
	}
	if s.err == nil {
		t.ingestFlow(&s.event)
		return
	}
	var x observerpb.ExportEvent
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(s.line, &x); err != nil {
		t.cfg.Sink.AddLoss(*t.unreadable(nil, t.cfg.Now(), err))
		return
	}
	r := &observerpb.GetFlowsResponse{NodeName: x.GetNodeName(), Time: x.GetTime()}
	switch {
	case x.GetFlow() != nil:
		r.ResponseTypes = &observerpb.GetFlowsResponse_Flow{Flow: x.GetFlow()}
	case x.GetLostEvents() != nil:
		r.ResponseTypes = &observerpb.GetFlowsResponse_LostEvents{LostEvents: x.GetLostEvents()}
	case x.GetNodeStatus() != nil:
		r.ResponseTypes = &observerpb.GetFlowsResponse_NodeStatus{NodeStatus: x.GetNodeStatus()}
	default:
		t.counters.skipped[skipEvent].Inc() // what agents report about themselves
		return
	}
	t.ingestMessage(r)
}

// ingestMessage ingests a message that is not a flow, or a flow in an encoding that the scanner does not support.
func (t *ingester) ingestMessage(r *observerpb.GetFlowsResponse) {
	if r.GetFlow() == nil {
		t.ingestOther(r)
		return
	}
	b, err := proto.Marshal(r)
	if err == nil {
		t.event = event{}
		if err = scanResponse(b, &t.event); err == nil {
			t.ingestFlow(&t.event)
			return
		}
	}
	t.cfg.Sink.AddLoss(*t.unreadable([]byte(r.GetNodeName()), t.cfg.Now(), err))
}

func (t *ingester) unreadable(node []byte, at time.Time, err error) *audit.Loss {
	t.cfg.Log.Debug("an event could not be read", "error", err)
	return &audit.Loss{Cluster: t.cfg.Member, Node: nodeName(node), Reason: audit.LossUnreadable, Count: 1, From: at, To: at}
}

func (t *ingester) ingestFlow(e *event) {
	now := t.cfg.Now()
	at := now
	if e.timed {
		at = e.time()
	}
	if at.Before(t.since) {
		t.counters.repeated.Inc()
		return
	}
	if at.Before(t.oldest(now)) {
		t.ingestTooOld(e, now)
		return
	}
	id := e.identity()
	t.checkGap(id, at, now)
	cl, why := e.classify()
	if why == skipNone {
		why = t.count(e, cl, id, at, now)
	}
	if why != skipNone {
		t.seen.advance(audit.Earlier(at, now))
		t.counters.skipped[why].Inc()
	}
	t.publish()
}

// oldest returns the time before which no event is counted, see Config.MaxAge.
func (t *ingester) oldest(now time.Time) time.Time { return now.Add(-t.cfg.MaxAge) }

// ingestTooOld records an event as lost whose time is before Config.MaxAge. It does not move the position, and says nothing about
// the overlap: the node's clock is wrong.
func (t *ingester) ingestTooOld(e *event, now time.Time) {
	if _, why := e.classify(); why != skipNone {
		t.counters.skipped[why].Inc()
		return
	}
	t.cfg.Sink.AddLoss(*t.unreadable(e.node, now, fmt.Errorf("%w: its time is %s", errUnreadable, e.time())))
}

// checkGap examines the first event after a resumption. If the source still has all events since the position, it delivers the
// newest known event again; a newer unknown one shows that the source has dropped events in between, and the gap is recorded as a
// loss.
func (t *ingester) checkGap(id uint64, at, now time.Time) {
	if !t.overlapExpected {
		return
	}
	t.overlapExpected = false
	if at.After(t.seen.position) && !t.seen.has(id) {
		t.cfg.Sink.AddLoss(audit.Loss{Cluster: t.cfg.Member, Reason: audit.LossGap, From: t.seen.position, To: audit.Earlier(at, now)})
	}
}

// damaged records a loss where a source has lines that cannot be read. Lines that were written before the position have been read
// already.
func (t *ingester) damaged(until time.Time, why error) {
	if until.Before(t.since) {
		return
	}
	t.cfg.Log.Warn("an unknown number of flows is lost: a file of the exporter is damaged; reading continues with the next file", "error", why)
	t.counters.damaged.Inc()
	until = audit.Earlier(until, t.cfg.Now()).UTC()
	from := until
	if !t.seen.position.IsZero() {
		from = audit.Earlier(t.seen.position, until)
	}
	t.cfg.Sink.AddLoss(audit.Loss{Cluster: t.cfg.Member, Reason: audit.LossGap, From: from, To: until})
}

// skipOversized is called when the source's next message is longer than maxMessage. Each session that begins at the position would
// end at the same message, so the events since then are recorded as lost, and the next session begins at the present.
func (t *ingester) skipOversized(since time.Time) {
	now := t.cfg.Now()
	t.cfg.Sink.AddLoss(audit.Loss{Cluster: t.cfg.Member, Reason: audit.LossGap, From: audit.Earlier(audit.Later(t.seen.position, since), now), To: now})
	t.seen.advance(now)
	t.publish()
}

// ends holds the addresses and endpoints of both ends of a connection.
type ends struct {
	source, destination netip.Addr
	from, to            *audit.Endpoint
}

func (t *ingester) ends(e *event) (x ends, err error) {
	if x.source, x.destination, err = e.addresses(); err == nil {
		if x.from, err = t.endpoints.get(e.from); err == nil {
			x.to, err = t.endpoints.get(e.to)
		}
	}
	return x, err
}

func (x *ends) pair(e *event, verdict flowpb.Verdict) pair {
	p := pair{from: x.from, to: x.to, port: port(e.destinationPort), transport: e.transport, verdict: verdict}
	if x.from.Kind == audit.KindOutside {
		p.address = x.source
	}
	return p
}

// cacheFor returns the cache of decisions for the instant, after reading the current policies and lags.
func (t *ingester) cacheFor(at time.Time) *decisionCache {
	if t.cfg.Lags != nil {
		t.decider.setLags(t.cfg.Lags(t.cfg.Member))
	}
	return t.decider.cacheAt(t.cfg.Policies.Epochs(), at)
}

// count counts an event that may represent a connection, and returns why it does not count (skipNone if it does).
func (t *ingester) count(e *event, cl class, id uint64, at, now time.Time) skip {
	ends, err := t.ends(e)
	if err != nil {
		if t.seen.observe(id, at, now) {
			at = audit.Earlier(at, now)
			t.emit(audit.Event{SeenEvent: audit.SeenEvent{ID: id, Time: at}, Loss: t.unreadable(e.node, at, err)})
		}
		return skipNone
	}
	switch cl {
	case classRequest:
		return t.ingestRequest(e, &ends, id, at, now)
	case classAccess:
		return t.ingestAccess(e, &ends, id, at, now)
	}
	if cl == classTraffic {
		e.verdict = flowpb.Verdict_VERDICT_UNKNOWN // the verdict of the connection's opening was not observed
	}
	// Repeated events are recorded too, because the state of connections does not survive a restart.
	why, open, verdict := t.connections.observe(cl, e.connection(), e.verdict, at)
	if why != skipNone && !open {
		return why
	}
	if !t.seen.observe(id, at, now) {
		t.counters.repeated.Inc()
		return skipNone
	}
	// A time in the future means that the node's clock is wrong. Such an event is treated as one of the present: otherwise grants
	// would be decided as expired, counts would be stored in minutes that no query reads, and the event would have to be
	// remembered until that time.
	at = audit.Earlier(at, now)
	k := t.cacheFor(at)
	p := ends.pair(e, verdict)
	if !open && t.countedByIstio(k, &p) {
		return skipElsewhere
	}
	taken := audit.Event{SeenEvent: audit.SeenEvent{ID: id, Time: at}}
	if open {
		taken.EdgeGroup = t.stillOpen(k, p, at)
		t.emit(taken)
		return why
	}
	t.record(&taken, e, k, t.decider.decide(k, p, at), &ends)
	t.emit(taken)
	return skipNone
}

// countedByIstio reports whether the access log of the member's Istio counts the connection: Istio alone enforces the destination's
// resources, and Cilium did not refuse the connection before it reached Istio.
func (t *ingester) countedByIstio(k *decisionCache, p *pair) bool {
	if t.cfg.BesideIstio == nil || p.verdict == flowpb.Verdict_DROPPED {
		return false
	}
	_, istio := t.decider.resourcesOf(k, p.to)
	return istio
}

// record counts an event by its decision, and passes the flow on if raw flows are wanted.
func (t *ingester) record(taken *audit.Event, e *event, k *decisionCache, r *decision, ends *ends) {
	if !k.known {
		t.counters.late.Inc()
	}
	n := e.count()
	r.flows.Add(float64(n))
	if r.disagreements != nil {
		r.disagreements.Add(float64(n))
	}
	if r.outdated != nil {
		r.outdated.Add(float64(n))
	}
	if r.unknown != nil {
		r.unknown.Add(float64(n))
	}
	r.lastHour = max(r.lastHour, hourOf(taken.Time))
	taken.EdgeGroup, taken.Count = &r.group, n
	if keep, listening := t.cfg.RawFlows.includes(r), t.cfg.Listener != nil; keep || listening {
		f := t.flow(e, r, taken.Time, ends.source, ends.destination, n)
		if keep {
			taken.Flow = f
		}
		if listening {
			t.cfg.Listener.Flow(f)
		}
	}
}

// stillOpen returns the group that reports, once an hour, that counted connections of a pair are still in use; nil if that was
// reported in this hour. Without it, a client with a connection pool that is never closed would appear to be unused.
func (t *ingester) stillOpen(k *decisionCache, p pair, at time.Time) *audit.EdgeGroup {
	r := t.decider.decide(k, p, at)
	if r.disagreements != nil && p.verdict != flowpb.Verdict_VERDICT_UNKNOWN {
		// The verdict was made when the connection was opened. If the policies differ by now, the dataplane's current verdict is
		// unknown.
		p.verdict = flowpb.Verdict_VERDICT_UNKNOWN
		r = t.decider.decide(k, p, at)
	}
	if hour := hourOf(at); hour > r.lastHour {
		r.lastHour = hour
		return &r.group
	}
	return nil
}

func (t *ingester) flow(e *event, r *decision, at time.Time, source, destination netip.Addr, n int64) *audit.Flow {
	return &audit.Flow{Time: at, Node: nodeName(e.node), Edge: r.group.Edges[0], SourceAddress: source, DestinationAddress: destination,
		SourcePort: port(e.sourcePort), Count: n, Reason: r.reason}
}

func (t *ingester) emit(taken audit.Event) {
	t.current = taken
	t.current.Source, t.current.Position, t.current.ForgetBefore = t.cfg.source(), t.seen.position, t.seen.overlapStart()
	t.cfg.Sink.Add(&t.current)
}

func (t *ingester) publish() {
	if !t.seen.position.IsZero() {
		t.position.Store(t.seen.position.UnixNano())
		t.forget.Store(t.seen.overlapStart().UnixNano())
	}
}

// progress returns the newest time of an event, and the time before which no event is requested again; zero if there is none. Any
// goroutine may call it.
func (t *ingester) progress() (position, forget time.Time) {
	if n := t.position.Load(); n != 0 {
		position = time.Unix(0, n).UTC()
	}
	if n := t.forget.Load(); n != 0 {
		forget = time.Unix(0, n).UTC()
	}
	return position, forget
}
