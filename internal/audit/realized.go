package audit

import (
	"time"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// LagKind describes what a member has of a resource while it does not have what the host's policies require.
type LagKind uint8

const (
	// LagUnknown means that the member has a revision whose policies are not known.
	LagUnknown LagKind = iota
	// LagOlder means that the member has what earlier policies required.
	LagOlder
	// LagNothing means that the member has nothing of the resource.
	LagNothing
	// LagOpen means that enforcement was suspended in the member, so that it admits all traffic.
	LagOpen
)

// Lag is a time span in which a member did not have what the host's policies required for a resource.
type Lag struct {
	Kind LagKind
	// From is inclusive and Until exclusive. A zero Until means that the lag lasts.
	From, Until time.Time
	// Has are the policies that the member has, in their state at the instant At. They are set for LagOlder only.
	Has Evaluator
	At  time.Time
}

func (l *Lag) covers(at time.Time) bool {
	return !at.Before(l.From) && (l.Until.IsZero() || at.Before(l.Until))
}

// Lags holds the lags of one member by resource, oldest first. It must not be changed.
type Lags map[string][]Lag

// Of returns the lag of the resource at an instant; nil if the member has what the host's policies require, as far as is known.
func (l Lags) Of(resource string, at time.Time) *Lag {
	list := l[resource]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].covers(at) {
			return &list[i]
		}
	}
	return nil
}

// reasonIn returns the reason of a decision, in the form of Record.Reason, where it depends on what a member has.
type reasonIn func(d *policy.Effective) string

func within(state func(message.Message) message.Message) reasonIn {
	return func(d *policy.Effective) string { return state(d.Explain()).Encode() }
}

// AttributeRealized does the same as Attribute with the policies that the member has of each resource. It returns known false if
// they are unknown for one of the resources; the host's policies then decide about it.
func AttributeRealized(e Evaluator, lags Lags, o Observation) (r Record, known bool) {
	r, known = Attribute(e, o), true
	if o.Source.Kind == KindLocalHost {
		return r, true // no policy refuses it, whichever policies the member has
	}
	q := policy.Query{Cluster: o.Cluster, Protocol: o.Protocol, Port: o.Destination.Port, Subjects: r.Subjects,
		Method: o.Method, Path: o.Path, At: o.Time, Identified: o.Source.Kind == KindWorkload}
	if o.Source.Kind == KindOutside {
		q.Source, q.Subjects = o.Source.Address, nil
	}
	lagging, first := false, true
	cilium := policy.Unmanaged
	for _, name := range r.Resources {
		lag := lags.Of(name, o.Time)
		q.Resources = []string{name}
		var d policy.Effective
		why := explained
		switch {
		case lag == nil:
			d = e.DecideEffective(&q)
		case lag.Kind == LagOlder:
			then := q
			then.At = lag.At
			d, why = lag.Has.DecideEffective(&then), within(message.DecisionOlder)
		case lag.Kind == LagNothing:
			d.Decision, d.Cilium = policy.Decision{Verdict: policy.Unmanaged, Reason: policy.ReasonNothingThere}, policy.Unmanaged
		case lag.Kind == LagOpen:
			d, why = e.DecideEffective(&q), within(message.DecisionOpened)
			reason := why(&d) // of the decision itself
			why = func(*policy.Effective) string { return reason }
			d.Verdict, d.Cilium = opened(d.Verdict), opened(d.Cilium)
		default:
			d, why = e.DecideEffective(&q), within(message.DecisionRevisionUnknown)
			known = false
		}
		lagging = lagging || lag != nil
		if first || rank[d.Verdict] > rank[r.Decision] {
			r.Decision, r.Reason, r.Statements, first = d.Verdict, why(&d), d.Statements, false
		}
		if rank[d.Cilium] > rank[cilium] {
			cilium = d.Cilium
		}
	}
	if !lagging {
		return Attribute(e, o), true
	}
	r.Verdict = o.Verdict
	r.setVerdict(cilium)
	return r, known
}

// opened returns a verdict as it is in a member that was downgraded manually.
func opened(v policy.Verdict) policy.Verdict {
	if v.LetsThrough() {
		return v
	}
	return policy.Audited
}

// rank orders the decisions of single units about a pod that several units select: a deny wins, then an allow, then the default
// deny of an enforced unit.
var rank = map[policy.Verdict]int{policy.Unmanaged: 0, policy.Audited: 1, policy.DefaultDenied: 2, policy.Allowed: 3, policy.Denied: 4}
