package audit

import (
	"time"

	"github.com/acp-io/acp/internal/policy"
)

// LagKind says what a member has of a resource while it does not have what the host asks for.
type LagKind uint8

const (
	// LagUnknown: a revision that nobody can tell the policies of.
	LagUnknown LagKind = iota
	// LagOlder: what earlier policies ask for.
	LagOlder
	// LagNothing: nothing at all.
	LagNothing
	// LagOpen: the member was opened by hand; everything passes there.
	LagOpen
)

// Lag is a span in which a member did not have what the host asks for of a resource.
type Lag struct {
	Kind LagKind
	// From is inclusive, Until exclusive; a zero Until: it lasts.
	From, Until time.Time
	// Has are the policies that the member has, as they were at the instant At; only of LagOlder.
	Has Evaluator
	At  time.Time
}

func (l *Lag) covers(at time.Time) bool {
	return !at.Before(l.From) && (l.Until.IsZero() || at.Before(l.Until))
}

// Lags are those of one member, by resource, oldest first. They must not be changed.
type Lags map[string][]Lag

// Of is the lag of a resource at an instant; nil: none, the member has what the host asks for, as far as is known.
func (l Lags) Of(resource string, at time.Time) *Lag {
	list := l[resource]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].covers(at) {
			return &list[i]
		}
	}
	return nil
}

// Reasons of decisions that follow from what a member has.
const (
	reasonOlder   = "the member has not realized the last change: "
	reasonNothing = "nothing of the resource is in the member yet"
	reasonOpen    = "the member was opened by hand: "
	reasonUnknown = "it is not known which revision the member has, so this is what the host's policies say: "
)

// AttributeRealized is Attribute with what the member has of each resource; false: that is not known of one of them, and the
// host's policies decide about it.
func AttributeRealized(e Evaluator, lags Lags, o Observation) (r Record, known bool) {
	r, known = Attribute(e, o), true
	if o.Source.Kind == KindLocalHost {
		return r, true // no policy refuses it, whichever is there
	}
	q := policy.Query{Cluster: o.Cluster, Protocol: o.Protocol, Port: o.Destination.Port, Subjects: r.Subjects,
		Method: o.Method, Path: o.Path, At: o.Time}
	if o.Source.Kind == KindOutside {
		q.Source, q.Subjects = o.Source.Address, nil
	}
	lagging, first := false, true
	for _, name := range r.Resources {
		lag := lags.Of(name, o.Time)
		q.Resources = []string{name}
		var d policy.Decision
		switch {
		case lag == nil:
			d = decided(e, &q)
		case lag.Kind == LagOlder:
			then := q
			then.At = lag.At
			d = decided(lag.Has, &then)
			d.Reason = reasonOlder + d.Reason
		case lag.Kind == LagNothing:
			d = policy.Decision{Verdict: policy.Unmanaged, Reason: reasonNothing}
		case lag.Kind == LagOpen:
			if d = decided(e, &q); !d.Verdict.LetsThrough() {
				d.Verdict = policy.Audited
			}
			d.Reason = reasonOpen + d.Reason
		default:
			d = decided(e, &q)
			d.Reason, known = reasonUnknown+d.Reason, false
		}
		lagging = lagging || lag != nil
		if first || rank[d.Verdict] > rank[r.Word] {
			r.Word, r.Reason, r.Statements, first = d.Verdict, d.Reason, d.Statements, false
		}
	}
	if !lagging {
		return Attribute(e, o), true
	}
	return r, known
}

// rank orders what single units say about a pod that several select: a deny of one wins, then an allow of one, and what one
// closes is closed.
var rank = map[policy.Verdict]int{policy.Unmanaged: 0, policy.Audited: 1, policy.DefaultDenied: 2, policy.Allowed: 3, policy.Denied: 4}
