package hubble

import (
	"net/netip"
	"reflect"
	"strings"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
)

// propagationDelay is how long the dataplanes may take to apply a change. A new pod label takes effect after about 35 s.
const propagationDelay = 35 * time.Second

// maxDecisions bounds the decisions in one cache.
const maxDecisions = 50_000

// pair holds everything that a decision and its edges depend on, except the policies and the time.
type pair struct {
	from, to *audit.Endpoint
	// address is set for a source outside the fleet; other sources are identified by their labels.
	address   netip.Addr
	port      uint16
	transport transport
	verdict   flowpb.Verdict
	// request is set for an HTTP request. Requests that match the same actions share one value per cache.
	request *request
}

// decision is the cached result for the connections of a pair.
type decision struct {
	group   audit.EdgeGroup
	reason  string
	refused bool
	flows   prometheus.Counter
	// disagreements is nil if the dataplane's verdict agrees with the policies.
	disagreements prometheus.Counter
	// previous, when set, is the decision by the policies before a change, which the dataplane still applies. It is used until
	// previousUntil.
	previous      *decision
	previousUntil time.Time
	// outdated counts the connections decided by this decision if it uses earlier policies or those that the member has; nil for
	// others.
	outdated prometheus.Counter
	// unknown counts the connections decided by this decision if it is not known which policies the member has; nil for others.
	unknown prometheus.Counter
	// lastHour is the newest hour in which a connection of the pair was counted or reported as still open.
	lastHour int64
}

// decisionCache holds the decisions of one policy epoch, for a time span in which no statement of the epoch begins or ends.
type decisionCache struct {
	audit.Epoch
	// index is the position of the epoch in the list of epochs, newest first.
	index int
	// start is inclusive and until is exclusive; a zero time means unbounded.
	start, until time.Time
	// known is false if the policies of the time are no longer kept, so that the oldest kept ones decide.
	known     bool
	decisions map[pair]*decision
	// requests holds one representative of the requests that match the same actions; resources holds the resource names of
	// destinations.
	requests  map[requestKey]*request
	resources map[*audit.Endpoint]resources
}

// requestKey identifies the requests that match the same actions of the same resources on a port. The port is a part of it, because another
// action of the port, which the representative would match, may distinguish requests that match the same actions on other ports.
type requestKey struct {
	transport transport
	port      uint16
	// actions contains one line for each resource, with its name and the names of the matching actions.
	actions string
}

// resources contains the resource names of a destination. istio reports whether Istio alone enforces all of them.
type resources struct {
	names []string
	istio bool
}

func (c *decisionCache) covers(at time.Time) bool {
	return !at.Before(c.start) && (c.until.IsZero() || at.Before(c.until))
}

// decider decides connections and caches the decisions. It keeps two caches, because flows from before and after a change arrive
// interleaved, and drops both when the policies change.
type decider struct {
	member string
	// enforcer is the dataplane whose verdicts are decided; empty means Cilium.
	enforcer v1alpha1.EnforcerName
	metrics  *Metrics
	limit    int
	epochs   []audit.Epoch
	caches   [2]*decisionCache // the most recently used first
	// lags is the member's newest list of lags; lagging caches the decisions that depend on it.
	lags    audit.Lags
	lagging map[laggingKey]*decision
}

// laggingKey identifies a decision by the policies that the member had from an instant on.
type laggingKey struct {
	pair
	from  time.Time
	cache *decisionCache
}

// cacheAt returns the cache for the instant. The argument epochs is the current list, newest first.
func (d *decider) cacheAt(epochs []audit.Epoch, at time.Time) *decisionCache {
	if len(d.epochs) == 0 || &epochs[0] != &d.epochs[0] {
		d.epochs, d.caches, d.lagging = epochs, [2]*decisionCache{}, nil
	}
	if first := d.caches[0]; first != nil && first.covers(at) {
		return first
	}
	if second := d.caches[1]; second != nil && second.covers(at) {
		d.caches[0], d.caches[1] = second, d.caches[0]
		return second
	}
	next := d.newCache(at)
	d.caches[0], d.caches[1] = next, d.caches[0]
	return next
}

func (d *decider) newCache(at time.Time) *decisionCache {
	next := &decisionCache{decisions: map[pair]*decision{}}
	for i, e := range d.epochs {
		next.Epoch, next.index, next.known = e, i, !at.Before(e.Since)
		if next.known {
			next.start = unchangedSince(e, at)
			if i > 0 {
				next.until = d.epochs[i-1].Since
			}
			break
		}
		next.until = e.Since // the bound if the instant lies before the oldest epoch
	}
	if !next.known {
		next.start, _ = next.LastChange(at)
	}
	if change, ok := next.NextChange(at); ok && (next.until.IsZero() || change.Before(next.until)) {
		next.until = change
	}
	return next
}

// unchangedSince returns the time since which the epoch gives the same answers as at the instant; zero if it always did.
func unchangedSince(e audit.Epoch, at time.Time) time.Time {
	if change, ok := e.LastChange(at); ok && change.After(e.Since) {
		return change
	}
	return e.Since
}

// decide returns the decision for the connections of a pair at an instant. It uses the policies of that time, or, where the
// dataplane does not apply a change yet, the policies that it still applies.
func (d *decider) decide(k *decisionCache, p pair, at time.Time) *decision {
	r := k.decisions[p]
	if r == nil {
		o := d.observation(p, at)
		record := audit.Attribute(k.Evaluator, o)
		r = d.newDecision(k.Evaluator, record)
		if record.Disagrees() {
			r.disagreements = d.metrics.disagreements.WithLabelValues(d.labels(record)...)
			r.previous, r.previousUntil = d.decideByPrevious(k, o)
		}
		if len(k.decisions) >= d.limit {
			clear(k.decisions)
		}
		k.decisions[p] = r
	}
	if d.lags != nil {
		if lag := d.lagOf(r, at); lag != nil {
			return d.decideRealized(k, p, at, lag, r)
		}
	}
	return r.at(at)
}

// at returns the previous decision if the instant lies before previousUntil, else the decision itself.
func (r *decision) at(at time.Time) *decision {
	if r.previous != nil && at.Before(r.previousUntil) {
		return r.previous
	}
	return r
}

// setLags replaces the member's lags, and drops the decisions that depend on the previous ones.
func (d *decider) setLags(lags audit.Lags) {
	if reflect.ValueOf(lags).Pointer() != reflect.ValueOf(d.lags).Pointer() {
		d.lags, d.lagging = lags, nil
	}
}

// lagOf returns the latest lag of the decision's resources at an instant; nil if the member has the current policies.
func (d *decider) lagOf(r *decision, at time.Time) (last *audit.Lag) {
	e := &r.group.Edges[0]
	if e.Resource == "" {
		return nil
	}
	last = d.lags.Of(e.Resource, at)
	for name := range strings.FieldsSeq(e.OtherResources) {
		if l := d.lags.Of(name, at); l != nil && (last == nil || l.From.After(last.From)) {
			last = l
		}
	}
	return last
}

// decideRealized decides by the policies that the member had. The adapter reads resources back only after the dataplane has
// applied them; where the dataplane already follows the current policies, or followed them lately, these decide.
func (d *decider) decideRealized(k *decisionCache, p pair, at time.Time, lag *audit.Lag, wanted *decision) *decision {
	key := laggingKey{pair: p, from: lag.From, cache: k}
	r := d.lagging[key]
	if r == nil {
		record, known := audit.AttributeRealized(k.Evaluator, d.lags, d.observation(p, at))
		r = d.newDecision(k.Evaluator, record)
		if record.Disagrees() {
			r.previous, r.previousUntil = wanted.previous, wanted.previousUntil
		}
		switch {
		case record.Disagrees() && wanted.disagreements == nil:
			r = wanted
		case !known:
			r.unknown = d.metrics.unknown.WithLabelValues(d.member)
		case record.Disagrees():
			r.disagreements = d.metrics.disagreements.WithLabelValues(d.labels(record)...)
		default:
			r.outdated = d.metrics.byMember.WithLabelValues(d.member)
		}
		if d.lagging == nil || len(d.lagging) >= d.limit {
			d.lagging = map[laggingKey]*decision{}
		}
		d.lagging[key] = r
	}
	return r.at(at)
}

func (d *decider) observation(p pair, at time.Time) audit.Observation {
	o := audit.Observation{Time: at, Cluster: d.member, Source: *p.from, Destination: *p.to, Protocol: p.transport.protocol(), Verdict: verdictOf(p.verdict),
		Enforcer: d.enforcer}
	o.Source.Address, o.Destination.Port, o.Destination.Cluster = p.address, p.port, d.member
	if p.request != nil {
		o.Method, o.Path = p.request.method, p.request.path
	}
	return o
}

func (d *decider) newDecision(e audit.Evaluator, record audit.Record) *decision {
	return &decision{
		group: audit.EdgeGroup{Edges: record.Edges(e)}, reason: record.Reason,
		refused: !record.Decision.LetsThrough() || record.Verdict == audit.VerdictDropped, flows: d.metrics.flows.WithLabelValues(d.labels(record)...),
	}
}

func (d *decider) labels(r audit.Record) []string {
	return []string{d.member, string(r.Decision), string(r.Verdict)}
}

// decideByPrevious returns the decision by the policies before a recent change, and until when it applies, if the dataplane's
// verdict agrees with those. It returns nil if the verdict agrees with none of the policies of the last propagationDelay.
func (d *decider) decideByPrevious(k *decisionCache, o audit.Observation) (*decision, time.Time) {
	change := k.start
	for i := k.index; k.known && !change.IsZero() && k.start.Sub(change) < propagationDelay; {
		o.Time = change.Add(-1)
		for i < len(d.epochs) && d.epochs[i].Since.After(o.Time) {
			i++
		}
		if i == len(d.epochs) {
			break
		}
		e := d.epochs[i]
		if record := audit.Attribute(e.Evaluator, o); !record.Disagrees() {
			r := d.newDecision(e.Evaluator, record)
			r.outdated = d.metrics.byPrevious.WithLabelValues(d.member)
			return r, change.Add(propagationDelay)
		}
		change = unchangedSince(e, o.Time)
	}
	return nil, time.Time{}
}
