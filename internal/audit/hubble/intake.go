package hubble

import (
	"net/netip"
	"sync/atomic"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/acp-io/acp/internal/audit"
)

// intake turns the events of one member into counts. It outlives the connections, and is used by one goroutine.
type intake struct {
	cfg         *Config
	seen        *seen
	connections *connections
	endpoints   *endpoints
	books       books
	counters    *counters
	event       event
	taken       audit.Taken
	// since, when set, is what a source is read from that cannot be asked for less; what it has of before is no news.
	since time.Time
	// overlapDue: the source was asked again for events that are known, and nothing came yet.
	overlapDue bool
	// position and forget, in nanoseconds, are for other goroutines.
	position, forget atomic.Int64
}

// least keeps a member's part of the memory useful, however many there are.
const least = 1 << 12

func newIntake(cfg *Config, r audit.Resume) *intake {
	share := func(n int) int { return max(n/cfg.Members, least) }
	t := &intake{cfg: cfg, seen: newSeen(r, share(maxSeen)), connections: newConnections(r.Position, share(maxConnections)),
		counters: cfg.Metrics.of(cfg.Member)}
	t.books = books{member: cfg.Member, metrics: cfg.Metrics, limit: share(maxRulings)}
	t.endpoints = newEndpoints(share(maxEndpoints), func() { t.books.open, t.books.lagging = [2]*book{}, nil })
	t.publish()
	return t
}

// resumed is called when the source has taken the request.
func (t *intake) resumed() { t.overlapDue = !t.seen.position.IsZero() }

// takeResponse takes a GetFlowsResponse as it came over the wire.
func (t *intake) takeResponse(b []byte) {
	t.event = event{}
	if err := scanResponse(b, &t.event); err == nil {
		t.takeFlow(&t.event)
		return
	}
	var r observerpb.GetFlowsResponse
	if err := proto.Unmarshal(b, &r); err != nil {
		t.cfg.Sink.Lose(*t.unreadable(nil, t.cfg.Now(), err))
		return
	}
	t.takeGenerated(&r)
}

// takeLine takes an event as Hubble's exporter writes it.
func (t *intake) takeLine(s *scannedLine) {
	if len(s.line) == 0 {
		return
	}
	if s.err == nil {
		t.takeFlow(&s.event)
		return
	}
	var x observerpb.ExportEvent
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(s.line, &x); err != nil {
		t.cfg.Sink.Lose(*t.unreadable(nil, t.cfg.Now(), err))
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
		t.counters.skipped[skipEvent].Inc() // what agents say about themselves
		return
	}
	t.takeGenerated(r)
}

// takeGenerated takes what is no flow, or a flow that is not written as everybody writes it.
func (t *intake) takeGenerated(r *observerpb.GetFlowsResponse) {
	if r.GetFlow() == nil {
		t.takeOther(r)
		return
	}
	b, err := proto.Marshal(r)
	if err == nil {
		t.event = event{}
		if err = scanResponse(b, &t.event); err == nil {
			t.takeFlow(&t.event)
			return
		}
	}
	t.cfg.Sink.Lose(*t.unreadable([]byte(r.GetNodeName()), t.cfg.Now(), err))
}

func (t *intake) unreadable(node []byte, at time.Time, err error) *audit.Loss {
	t.cfg.Log.Debug("an event could not be read", "error", err)
	return &audit.Loss{Cluster: t.cfg.Member, Node: text(node), Reason: audit.LossUnreadable, Count: 1, From: at, To: at}
}

func (t *intake) takeFlow(e *event) {
	now := t.cfg.Now()
	at := now
	if e.timed {
		at = e.time()
	}
	if at.Before(t.since) {
		t.counters.repeated.Inc()
		return
	}
	id := e.identity()
	t.first(id, at, now)
	cl, why := e.classify()
	if why == skipNone {
		why = t.count(e, cl, id, at, now)
	}
	if why != skipNone {
		t.seen.advance(earlier(at, now))
		t.counters.skipped[why].Inc()
	}
	t.publish()
}

// first looks at the first event of a source that was asked again. The newest one that is known comes again, if the source
// still holds it: one that is newer says that the source has moved on.
func (t *intake) first(id uint64, at, now time.Time) {
	if !t.overlapDue {
		return
	}
	t.overlapDue = false
	if at.After(t.seen.position) && !t.seen.has(id) {
		t.cfg.Sink.Lose(audit.Loss{Cluster: t.cfg.Member, Reason: audit.LossGap, From: t.seen.position, To: earlier(at, now)})
	}
}

// damaged is called where a source has lines that cannot be read. What was written before it was last read, was read.
func (t *intake) damaged(until time.Time, why error) {
	if until.Before(t.since) {
		return
	}
	t.cfg.Log.Warn("flows are lost, and nobody knows how many: a file is damaged; it is passed by", "error", why)
	t.counters.damaged.Inc()
	until = earlier(until, t.cfg.Now()).UTC()
	from := until
	if !t.seen.position.IsZero() {
		from = earlier(t.seen.position, until)
	}
	t.cfg.Sink.Lose(audit.Loss{Cluster: t.cfg.Member, Reason: audit.LossGap, From: from, To: until})
}

// ends are both ends of a connection.
type ends struct {
	source, destination netip.Addr
	from, to            *audit.Endpoint
}

func (t *intake) ends(e *event) (x ends, err error) {
	if x.source, x.destination, err = e.addresses(); err == nil {
		if x.from, err = t.endpoints.of(e.from); err == nil {
			x.to, err = t.endpoints.of(e.to)
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

// book is the one by which flows of an instant are decided.
func (t *intake) book(at time.Time) *book {
	if t.cfg.Lags != nil {
		t.books.follow(t.cfg.Lags(t.cfg.Member))
	}
	return t.books.at(t.cfg.Evaluators.Epochs(), at)
}

// count counts an event that can stand for a connection.
func (t *intake) count(e *event, cl class, id uint64, at, now time.Time) skip {
	ends, err := t.ends(e)
	if err != nil {
		if t.seen.take(id, at, now) {
			at = earlier(at, now)
			t.hand(audit.Taken{Seen: audit.Seen{ID: id, Time: at}, Loss: t.unreadable(e.node, at, err)})
		}
		return skipNone
	}
	if cl == classRequest {
		return t.takeRequest(e, &ends, id, at, now)
	}
	if cl == classTraffic {
		e.verdict = flowpb.Verdict_VERDICT_UNKNOWN // it passes; nobody said so when it was opened
	}
	// Repeated events too: what is remembered about connections does not survive a restart.
	why, open, verdict := t.connections.take(cl, e.connection(), e.verdict, at)
	if why != skipNone && !open {
		return why
	}
	if !t.seen.take(id, at, now) {
		t.counters.repeated.Inc()
		return skipNone
	}
	// A time that is still to come is a clock that is wrong: grants would be decided as ended, counts would lie in minutes
	// that nobody looks at, and the event would have to be remembered until then.
	at = earlier(at, now)
	k := t.book(at)
	p := ends.pair(e, verdict)
	taken := audit.Taken{Seen: audit.Seen{ID: id, Time: at}}
	if open {
		taken.Tally = t.open(k, p, at)
		t.hand(taken)
		return why
	}
	t.settle(&taken, e, k, t.books.rule(k, p, at), &ends)
	t.hand(taken)
	return skipNone
}

// settle counts what was taken for a ruling.
func (t *intake) settle(taken *audit.Taken, e *event, k *book, r *ruling, ends *ends) {
	if !k.known {
		t.counters.late.Inc()
	}
	n := e.count()
	r.flows.Add(float64(n))
	if r.disagreements != nil {
		r.disagreements.Add(float64(n))
	}
	if r.followed != nil {
		r.followed.Add(float64(n))
	}
	if r.unknown != nil {
		r.unknown.Add(float64(n))
	}
	r.shown = max(r.shown, hourOf(taken.Time))
	taken.Tally, taken.Count = &r.tally, n
	if keep, tap := t.cfg.Keep.keeps(r), t.cfg.Tap != nil; keep || tap {
		f := t.flow(e, r, taken.Time, ends.source, ends.destination, n)
		if keep {
			taken.Flow = f
		}
		if tap {
			t.cfg.Tap.Flow(f)
		}
	}
}

// open is what shows, once an hour, that connections of a pair which were counted before are still in use: a client with a
// pool that is never closed would look as if it had gone. Nil: it was shown in this hour.
func (t *intake) open(k *book, p pair, at time.Time) *audit.Tally {
	r := t.books.rule(k, p, at)
	if r.disagreements != nil && p.verdict != flowpb.Verdict_VERDICT_UNKNOWN {
		// The verdict was that of its opening. Where the policies say otherwise by now, nobody knows the one of today.
		p.verdict = flowpb.Verdict_VERDICT_UNKNOWN
		r = t.books.rule(k, p, at)
	}
	if hour := hourOf(at); hour > r.shown {
		r.shown = hour
		return &r.tally
	}
	return nil
}

func (t *intake) flow(e *event, r *ruling, at time.Time, source, destination netip.Addr, n int64) *audit.Flow {
	return &audit.Flow{Time: at, Node: text(e.node), Edge: r.tally.Edges[0], SourceAddress: source, DestinationAddress: destination,
		SourcePort: port(e.sourcePort), Count: n, Reason: r.reason}
}

func (t *intake) hand(taken audit.Taken) {
	t.taken = taken
	t.taken.Source, t.taken.Position, t.taken.Forget = t.cfg.Member, t.seen.position, t.seen.forget()
	t.cfg.Sink.Take(&t.taken)
}

func (t *intake) publish() {
	if !t.seen.position.IsZero() {
		t.position.Store(t.seen.position.UnixNano())
		t.forget.Store(t.seen.forget().UnixNano())
	}
}

// progress is the newest time of an event, and that before which none is asked for again, for any goroutine; zero: none yet.
func (t *intake) progress() (position, forget time.Time) {
	if n := t.position.Load(); n != 0 {
		position = time.Unix(0, n).UTC()
	}
	if n := t.forget.Load(); n != 0 {
		forget = time.Unix(0, n).UTC()
	}
	return position, forget
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
