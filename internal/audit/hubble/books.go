package hubble

import (
	"net/netip"
	"reflect"
	"strings"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/audit"
)

// transition is how long the dataplanes may take to follow a change: a pod's new label is known after about 35 s.
const transition = 35 * time.Second

// maxRulings bounds the remembered decisions of one book.
const maxRulings = 50_000

// pair is everything that a decision and its edges depend on, but the policies and the time.
type pair struct {
	from, to *audit.Endpoint
	// address of a source outside the fleet; the others are known by their labels.
	address   netip.Addr
	port      uint16
	transport transport
	verdict   flowpb.Verdict
	// asked is set for a request; the book has one for all requests that are of the same actions.
	asked *request
}

// ruling is what connections of a pair come to.
type ruling struct {
	tally   audit.Tally
	reason  string
	refused bool
	flows   prometheus.Counter
	// disagreements is nil when the dataplane does what the policies say.
	disagreements prometheus.Counter
	// behind, when set, is in force until settled: the dataplane does what the policies said before a change.
	behind  *ruling
	settled time.Time
	// followed counts what a ruling that is such a one decides; nil for others.
	followed prometheus.Counter
	// unknown counts what is decided although nobody knows what the member has; nil for others.
	unknown prometheus.Counter
	// shown is the newest hour in which something was counted for it.
	shown int64
}

// book holds the rulings of one epoch, for a span in which no statement of it begins or ends.
type book struct {
	audit.Epoch
	// index of the epoch among those that there are.
	index int
	// start is inclusive, until exclusive; zero: no bound.
	start, until time.Time
	// known is false when the policies of the time are no longer kept, so that later ones decide.
	known   bool
	rulings map[pair]*ruling
	// requests are the first of those that are of the same actions, and resources the names of destinations of requests.
	requests  map[string]*request
	resources map[*audit.Endpoint][]string
}

func (b *book) covers(at time.Time) bool {
	return !at.Before(b.start) && (b.until.IsZero() || at.Before(b.until))
}

// books remembers decisions. Two are kept, for the flows before and after a change come mixed; all are dropped when the
// policies change.
type books struct {
	member  string
	metrics *Metrics
	limit   int
	epochs  []audit.Epoch
	open    [2]*book // the one used last is first
	// lags are those of the member as they were last; lagging remembers the decisions that follow from them.
	lags    audit.Lags
	lagging map[laggingPair]*ruling
}

// laggingPair is a pair that is decided by what the member had, from an instant on.
type laggingPair struct {
	pair
	from time.Time
	by   *book
}

// at returns the book for the instant. The epochs are those that there are now, newest first.
func (b *books) at(epochs []audit.Epoch, at time.Time) *book {
	if len(b.epochs) == 0 || &epochs[0] != &b.epochs[0] {
		b.epochs, b.open, b.lagging = epochs, [2]*book{}, nil
	}
	if first := b.open[0]; first != nil && first.covers(at) {
		return first
	}
	if second := b.open[1]; second != nil && second.covers(at) {
		b.open[0], b.open[1] = second, b.open[0]
		return second
	}
	next := b.begin(at)
	b.open[0], b.open[1] = next, b.open[0]
	return next
}

func (b *books) begin(at time.Time) *book {
	next := &book{rulings: map[pair]*ruling{}}
	for i, e := range b.epochs {
		next.Epoch, next.index, next.known = e, i, !at.Before(e.Since)
		if next.known {
			next.start = begins(e, at)
			if i > 0 {
				next.until = b.epochs[i-1].Since
			}
			break
		}
		next.until = e.Since // in case that it is the oldest one
	}
	if !next.known {
		next.start, _ = next.LastChange(at)
	}
	if change, ok := next.NextChange(at); ok && (next.until.IsZero() || change.Before(next.until)) {
		next.until = change
	}
	return next
}

// begins is since when the epoch has said what it says at the instant; zero: for ever.
func begins(e audit.Epoch, at time.Time) time.Time {
	if change, ok := e.LastChange(at); ok && change.After(e.Since) {
		return change
	}
	return e.Since
}

// rule decides the connections of a pair, as at the instant: with the policies of the time, but where the dataplane does not
// know a change yet, with those that it has.
func (b *books) rule(k *book, p pair, at time.Time) *ruling {
	r := k.rulings[p]
	if r == nil {
		o := b.observation(p, at)
		record := audit.Attribute(k.Evaluator, o)
		r = b.ruling(k.Evaluator, record)
		if record.Disagrees() {
			r.disagreements = b.metrics.disagreements.WithLabelValues(b.labels(record)...)
			r.behind, r.settled = b.behind(k, o)
		}
		if len(k.rulings) >= b.limit {
			clear(k.rulings)
		}
		k.rulings[p] = r
	}
	if b.lags != nil {
		if lag := b.lagOf(r, at); lag != nil {
			return b.realized(k, p, at, lag, r)
		}
	}
	return r.settledAt(at)
}

// settledAt is the ruling at an instant: until the dataplane has followed a change, what it does counts.
func (r *ruling) settledAt(at time.Time) *ruling {
	if r.behind != nil && at.Before(r.settled) {
		return r.behind
	}
	return r
}

// follow takes in what the member has now.
func (b *books) follow(lags audit.Lags) {
	if reflect.ValueOf(lags).Pointer() != reflect.ValueOf(b.lags).Pointer() {
		b.lags, b.lagging = lags, nil
	}
}

// lagOf is the latest lag of the resources of a ruling at an instant; nil: the member has what the policies ask for.
func (b *books) lagOf(r *ruling, at time.Time) (last *audit.Lag) {
	e := &r.tally.Edges[0]
	if e.Resource == "" {
		return nil
	}
	last = b.lags.Of(e.Resource, at)
	for name := range strings.FieldsSeq(e.OtherResources) {
		if l := b.lags.Of(name, at); l != nil && (last == nil || l.From.After(last.From)) {
			last = l
		}
	}
	return last
}

// realized decides by what the member has. The adapter reads back after the dataplane has followed, so where the dataplane does
// what the policies ask for by now, or did lately, that counts.
func (b *books) realized(k *book, p pair, at time.Time, lag *audit.Lag, wanted *ruling) *ruling {
	key := laggingPair{pair: p, from: lag.From, by: k}
	r := b.lagging[key]
	if r == nil {
		record, known := audit.AttributeRealized(k.Evaluator, b.lags, b.observation(p, at))
		r = b.ruling(k.Evaluator, record)
		switch now := wanted.settledAt(at); {
		case !known:
			r.unknown = b.metrics.unknown.WithLabelValues(b.member)
		case record.Disagrees() && now.disagreements == nil:
			r = now
		case record.Disagrees():
			r.disagreements = b.metrics.disagreements.WithLabelValues(b.labels(record)...)
		default:
			r.followed = b.metrics.lagging.WithLabelValues(b.member)
		}
		if b.lagging == nil || len(b.lagging) >= b.limit {
			b.lagging = map[laggingPair]*ruling{}
		}
		b.lagging[key] = r
	}
	return r
}

func (b *books) observation(p pair, at time.Time) audit.Observation {
	o := audit.Observation{Time: at, Cluster: b.member, Source: *p.from, Destination: *p.to, Protocol: p.transport.protocol(), Verdict: verdictOf(p.verdict)}
	o.Source.Address, o.Destination.Port, o.Destination.Cluster = p.address, p.port, b.member
	if p.asked != nil {
		o.Method, o.Path = p.asked.method, p.asked.path
	}
	return o
}

func (b *books) ruling(e audit.Evaluator, record audit.Record) *ruling {
	return &ruling{
		tally: audit.Tally{Edges: record.Edges(e)}, reason: record.Reason,
		refused: !record.Word.LetsThrough() || record.Verdict == audit.VerdictDropped, flows: b.metrics.flows.WithLabelValues(b.labels(record)...),
	}
}

func (b *books) labels(r audit.Record) []string {
	return []string{b.member, string(r.Word), string(r.Verdict)}
}

// behind looks for a dataplane that does not know a change yet: it still does what the policies said before one. Nil: it does
// what they have not said in the transition before the book. The ruling counts until the instant.
func (b *books) behind(k *book, o audit.Observation) (*ruling, time.Time) {
	change := k.start
	for i := k.index; k.known && !change.IsZero() && k.start.Sub(change) < transition; {
		o.Time = change.Add(-1)
		for i < len(b.epochs) && b.epochs[i].Since.After(o.Time) {
			i++
		}
		if i == len(b.epochs) {
			break
		}
		e := b.epochs[i]
		if record := audit.Attribute(e.Evaluator, o); !record.Disagrees() {
			r := b.ruling(e.Evaluator, record)
			r.followed = b.metrics.behind.WithLabelValues(b.member)
			return r, change.Add(transition)
		}
		change = begins(e, o.Time)
	}
	return nil, time.Time{}
}
