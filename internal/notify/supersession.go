package notify

import (
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// supersessionOf returns what a change of a ticket, its events from first (inclusive) to last (exclusive), does to the messages that were
// made for earlier versions of it. The outcome depends only on the state of the ticket, so that few changes replace a message again.
func supersessionOf(t *approval.Ticket, first, last int, now time.Time) *Supersession {
	s := &Supersession{Ticket: t.Number, Version: t.Version, Outcome: outcomeOf(t.State()), At: now}
	last = min(last, len(t.Events))
	for i := max(first, 0); i < last; i++ {
		if e := t.Events[i]; e.Through == approval.ThroughSlack && !slices.Contains(s.Except, e.Actor) {
			s.Except = append(s.Except, e.Actor)
		}
	}
	return s
}

// outcomeOf returns what a message says in the place of its controls.
func outcomeOf(s approval.State) message.Message {
	switch s {
	case approval.StatePending:
		return message.AnswerOutcomeChanged()
	case approval.StateRejected:
		return message.AnswerOutcomeRejected()
	case approval.StateWithdrawn:
		return message.AnswerOutcomeWithdrawn()
	case approval.StateTimedOut:
		return message.AnswerOutcomeTimedOut()
	}
	return message.AnswerOutcomeApproved()
}
