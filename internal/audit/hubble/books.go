package hubble

import (
	"net/netip"
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
}

// ruling is what connections of a pair come to.
type ruling struct {
	tally   audit.Tally
	reason  string
	refused bool
	flows   prometheus.Counter
	// disagreements is nil when the dataplane does what the policies say. Before settled it may only be behind a change.
	disagreements prometheus.Counter
	settled       time.Time
	// shown is the newest hour in which something was counted for it.
	shown int64
}

// book holds the rulings of one epoch, for a span in which no statement of it begins or ends.
type book struct {
	audit.Epoch
	// from is inclusive, until exclusive; zero: no bound.
	from, until time.Time
	// known is false when the policies of the time are no longer kept, so that later ones decide.
	known   bool
	rulings map[pair]*ruling
}

func (b *book) covers(at time.Time) bool {
	return !at.Before(b.from) && (b.until.IsZero() || at.Before(b.until))
}

// books remembers decisions. Two are kept, for the flows before and after a change come mixed; all are dropped when the
// policies change.
type books struct {
	member  string
	metrics *Metrics
	limit   int
	epochs  []audit.Epoch
	open    [2]*book // the one used last is first
}

// at returns the book for the instant. The epochs are those that there are now, newest first.
func (b *books) at(epochs []audit.Epoch, at time.Time) *book {
	if len(b.epochs) == 0 || &epochs[0] != &b.epochs[0] {
		b.epochs, b.open = epochs, [2]*book{}
	}
	if first := b.open[0]; first != nil && first.covers(at) {
		return first
	}
	if second := b.open[1]; second != nil && second.covers(at) {
		b.open[0], b.open[1] = second, b.open[0]
		return second
	}
	next := b.begin(at)
	for _, old := range b.open {
		// Nothing changes between two instants that have the same next change.
		if old != nil && old.known == next.known && old.Since.Equal(next.Since) && old.until.Equal(next.until) {
			old.from = next.from
			return b.at(epochs, at)
		}
	}
	b.open[0], b.open[1] = next, b.open[0]
	return next
}

func (b *books) begin(at time.Time) *book {
	next := &book{from: at, rulings: map[pair]*ruling{}}
	for i, e := range b.epochs {
		next.Epoch, next.known = e, !at.Before(e.Since)
		if next.known {
			if i > 0 {
				next.until = b.epochs[i-1].Since
			}
			break
		}
		next.until = e.Since // in case that it is the oldest one
	}
	if change, ok := next.NextChange(at); ok && (next.until.IsZero() || change.Before(next.until)) {
		next.until = change
	}
	return next
}

// rule decides the connections of a pair, as at the instant.
func (b *books) rule(k *book, p pair, at time.Time) *ruling {
	if r := k.rulings[p]; r != nil {
		return r
	}
	o := audit.Observation{Time: at, Cluster: b.member, Source: *p.from, Destination: *p.to, Protocol: p.transport.protocol(), Verdict: verdictOf(p.verdict)}
	o.Source.Address, o.Destination.Port, o.Destination.Cluster = p.address, p.port, b.member
	record := audit.Attribute(k.Evaluator, o)
	labels := []string{b.member, string(record.Word), string(record.Verdict)}
	r := &ruling{
		tally: audit.Tally{Edges: record.Edges(k.Evaluator)}, reason: record.Reason,
		refused: !record.Word.LetsThrough() || record.Verdict == audit.VerdictDropped, flows: b.metrics.flows.WithLabelValues(labels...),
	}
	if record.Disagrees() {
		r.disagreements = b.metrics.disagreements.WithLabelValues(labels...)
		r.settled = b.settled(k, o)
	}
	if len(k.rulings) >= b.limit {
		clear(k.rulings)
	}
	k.rulings[p] = r
	return r
}

// settled is until when the disagreement may be that of a dataplane which does not know a change yet: it still does what an
// epoch said that ended a short time ago.
func (b *books) settled(k *book, o audit.Observation) time.Time {
	ended := time.Time{}
	older := false
	for _, e := range b.epochs {
		if older && o.Time.Sub(ended) < transition && !audit.Attribute(e.Evaluator, o).Disagrees() {
			return ended.Add(transition)
		}
		older = older || e.Since.Equal(k.Since)
		ended = e.Since
	}
	// A statement that began or ended in this epoch is a change too.
	before := o
	before.Time = o.Time.Add(-transition)
	if change, ok := k.NextChange(before.Time); ok && !change.After(o.Time) && !audit.Attribute(k.Evaluator, before).Disagrees() {
		return change.Add(transition)
	}
	return time.Time{}
}
