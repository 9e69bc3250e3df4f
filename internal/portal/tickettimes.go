package portal

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/approval"
)

// TicketTimes measures how long tickets take, from their timelines. A change is stored by one replica, which counts it.
type TicketTimes struct{ seconds *prometheus.HistogramVec }

// Stages of a ticket.
const (
	stageApprove   = "approve"   // from asking to the last approval
	stageApply     = "apply"     // from there to the write of the policy
	stageEffective = "effective" // from the approval until it was read back: in a member, and in all of them
	stageRevoke    = "revoke"    // from the question or the expiry until a member was seen without it, and all of them
)

// NewTicketTimes registers the histogram.
func NewTicketTimes(reg prometheus.Registerer) *TicketTimes {
	t := &TicketTimes{prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "acp_ticket_seconds",
		Help: "How long the stages of tickets took; those without a cluster are about all of them.",
		// From what the machine does in a blink to what people leave until after the holidays.
		Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800, 2 * 3600, 8 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600}},
		[]string{"stage", "cluster"})}
	reg.MustRegister(t.seconds)
	return t
}

// Changed takes in a ticket after each stored change: the lines that the change brought.
func (t *TicketTimes) Changed(x *approval.Ticket) {
	for n := range x.Events {
		e := &x.Events[n]
		if !e.At.Equal(x.UpdatedAt) {
			continue
		}
		if stage, from, ok := stageOf(x.Events[:n], e); ok {
			t.seconds.WithLabelValues(stage, e.Cluster).Observe(max(0, e.At.Sub(from).Seconds()))
		}
	}
}

// stageOf tells which stage a line ends, and when that began.
func stageOf(before []approval.Event, e *approval.Event) (stage string, from time.Time, ok bool) {
	switch e.Kind {
	case approval.EventApproved:
		from, ok = last(before, e.Item, approval.EventSubmitted)
		return stageApprove, from, ok
	case approval.EventWritten:
		from, ok = last(before, e.Item, approval.EventApproved, approval.EventBreakGlass)
		return stageApply, from, ok
	case approval.EventEffective:
		from, ok = last(before, e.Item, approval.EventApproved, approval.EventBreakGlass)
		return stageEffective, from, ok
	case approval.EventRealized:
		if from, ok = last(before, e.Item, approval.EventRevokeRequested, approval.EventExpired); ok {
			return stageRevoke, from, !told(before, e, from)
		}
		from, ok = last(before, e.Item, approval.EventApproved, approval.EventBreakGlass)
		return stageEffective, from, ok && !told(before, e, from)
	case approval.EventRevoked:
		from, ok = last(before, e.Item, approval.EventRevokeRequested, approval.EventExpired)
		return stageRevoke, from, ok
	}
	return "", time.Time{}, false
}

// told reports whether a line like this one was written since an instant, for another revision.
func told(before []approval.Event, e *approval.Event, since time.Time) bool {
	for n := range before {
		if b := &before[n]; b.Kind == e.Kind && b.Item == e.Item && b.Cluster == e.Cluster && !b.At.Before(since) {
			return true
		}
	}
	return false
}

// last is when the last line of these kinds was written about an item, or about the whole ticket.
func last(events []approval.Event, item int, kinds ...approval.EventKind) (time.Time, bool) {
	for n := len(events) - 1; n >= 0; n-- {
		e := &events[n]
		if e.Item != item && e.Item != approval.WholeTicket && item != approval.WholeTicket {
			continue
		}
		for _, k := range kinds {
			if e.Kind == k {
				return e.At, true
			}
		}
	}
	return time.Time{}, false
}
