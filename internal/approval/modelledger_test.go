package approval_test

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/approval"
)

// timeline: it only grows, and contains every change of state.
func (m *model) timeline(was, t *approval.Ticket) {
	if was == nil {
		return
	}
	if len(t.Events) < len(was.Events) {
		m.fail("%s lost a line of its timeline", t.ID())
		return
	}
	for i, e := range was.Events {
		if e.Kind != t.Events[i].Kind || e.Actor != t.Events[i].Actor || e.Comment != t.Events[i].Comment || e.Message != t.Events[i].Message ||
			!e.At.Equal(t.Events[i].At) {
			m.fail("%s has another line %d of its timeline", t.ID(), i)
		}
	}
	for i := range t.Items {
		from, to := was.Items[i].State, t.Items[i].State
		quiet := from == to || to == approval.StateApplying // that it waits is told in its message
		if !quiet && len(t.Events) == len(was.Events) {
			m.fail("%s became %s, and the timeline does not contain it", t.Items[i].SID, to)
		}
	}
}

// ledgerAgrees: every line of every timeline that is a decision or a change is in the ledger, in order, and nothing else.
func (m *model) ledgerAgrees(now map[int64]*approval.Ticket) {
	have := map[string][]string{}
	for _, e := range m.ledger() {
		if strings.HasPrefix(e.Action, "ticket.") {
			have[e.Object] = append(have[e.Object], e.Action+" "+e.Actor+" "+e.Details["onBehalfOf"])
		}
	}
	for _, t := range now {
		var want []string
		for _, e := range t.Events {
			switch e.Kind {
			case approval.EventCompiled, approval.EventPropagated, approval.EventRealized:
			default:
				want = append(want, "ticket."+string(e.Kind)+" "+e.Actor+" "+e.OnBehalfOf)
			}
		}
		if !slices.Equal(want, have[t.ID()]) {
			m.fail("the ledger contains %s %q, and its timeline %q", t.ID(), have[t.ID()], want)
		}
	}
}

// follows reports whether a state can come out of another, by one or several transitions of one operation.
func follows(from, to approval.State) bool {
	ends := []approval.State{approval.StateRejected, approval.StateTimedOut, approval.StateWithdrawn}
	switch {
	case slices.Contains(ends, from):
		return false
	case from == approval.StatePending:
		return slices.Contains(ends, to) || to == approval.StateApproved
	case to == approval.StatePending: // void
		// The write of a failed item is retried, and may need more approvals by then.
		return from == approval.StateApproved || from == approval.StateApplying || from == approval.StateFailed
	case from == approval.StateRevoking:
		return to == approval.StateRevoked || to == approval.StateExpired
	case from == approval.StateRevoked || from == approval.StateExpired:
		return to == approval.StateRevoking // its statement was put back by hand
	}
	return !slices.Contains(ends, to)
}
