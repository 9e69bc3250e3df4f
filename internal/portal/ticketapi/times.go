package ticketapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/approval"
)

// TicketTimes measures how long tickets take, from their timelines. Each change is counted once, by the replica that stores it.
type TicketTimes struct{ seconds *prometheus.HistogramVec }

// Stages of a ticket.
const (
	stageApprove   = "approve"   // from the request to the last approval
	stageApply     = "apply"     // from the last approval to the write of the policy
	stageEffective = "effective" // from the approval to the read-back: in a member, and in all of them
	stageRevoke    = "revoke"    // from the request or the expiry until the access was absent from a member, and from all of them
)

// NewTicketTimes registers the histogram.
func NewTicketTimes(reg prometheus.Registerer) *TicketTimes {
	t := &TicketTimes{prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "acp_ticket_seconds",
		Help: "How long the stages of tickets took; those without a cluster are about all of them.",
		// From milliseconds of machines to weeks in which people do not answer.
		Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800, 2 * 3600, 8 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600}},
		[]string{"stage", "cluster"})}
	reg.MustRegister(t.seconds)
	return t
}

// Changed observes the new timeline entries of a ticket. It is called after each stored change.
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

// stageOf returns the stage that a timeline entry ends, and when the stage began.
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
			return stageRevoke, from, !recorded(before, e, from)
		}
		from, ok = last(before, e.Item, approval.EventApproved, approval.EventBreakGlass)
		return stageEffective, from, ok && !recorded(before, e, from)
	case approval.EventRevoked:
		from, ok = last(before, e.Item, approval.EventRevokeRequested, approval.EventExpired)
		return stageRevoke, from, ok
	}
	return "", time.Time{}, false
}

// recorded reports whether an equal entry for another revision was written since an instant.
func recorded(before []approval.Event, e *approval.Event, since time.Time) bool {
	for n := range before {
		if b := &before[n]; b.Kind == e.Kind && b.Item == e.Item && b.Cluster == e.Cluster && !b.At.Before(since) {
			return true
		}
	}
	return false
}

// last returns the time of the last entry of these kinds about an item, or about the whole ticket.
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
