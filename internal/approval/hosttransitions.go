package approval

import (
	"strings"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Void makes the approvals of an item void because it grants more than was shown, and restarts its chain. It does nothing
// for break-glass items, which have no earlier approval, and for items that are written already.
func (t *Ticket) Void(i int, now Shown, at time.Time) bool {
	it := &t.Items[i]
	grown := it.Shown.Grown(now)
	if len(grown) == 0 || t.BreakGlass || it.WrittenGeneration > 0 || it.State != StatePending && !it.State.MayBeOnHost() {
		return false
	}
	it.Shown = now
	t.event(at, Event{Kind: EventVoided, Item: i, Revision: now.Digest, Comment: strings.Join(grown, "\n")})
	it.State, it.ExpiresAt, it.WarnAt, it.ShortenTo = StatePending, time.Time{}, time.Time{}, time.Time{}
	for k := range it.Steps {
		it.Steps[k].restart()
	}
	t.setMessage(i, at, message.TicketVoidedBringsMore())
	t.advance(i, at)
	return true
}

// Reduced records once that an item grants less than was shown. The approvals stay valid.
func (t *Ticket) Reduced(i int, now Shown, at time.Time) {
	missing := now.Grown(t.Items[i].Shown)
	if len(missing) == 0 || t.has(i, EventReduced, "", now.Digest) {
		return
	}
	t.event(at, Event{Kind: EventReduced, Item: i, Revision: now.Digest, Comment: strings.Join(missing, "\n")})
}

// Written records that the host cluster has the item's statement or object.
func (t *Ticket) Written(i int, name string, w Written, now time.Time) {
	it := &t.Items[i]
	if it.State != StateApproved && it.State != StateApplying && it.State != StateFailed {
		return
	}
	if it.State == StateApplying && it.WrittenGeneration == w.Generation && it.PolicyUID == w.UID {
		return
	}
	it.State, it.Policy, it.PolicyUID, it.WrittenGeneration = StateApplying, name, w.UID, w.Generation
	t.event(now, Event{Kind: EventWritten, Item: i})
	switch {
	case t.Kind == KindPackage: // no member has it
		t.effective(i, now)
	case t.Kind.Access():
		t.setMessage(i, now, message.TicketStatementWritten())
	case t.Kind == KindRevoke:
		t.setMessage(i, now, message.TicketRevocationStarted())
	default:
		t.setMessage(i, now, message.TicketChangeWritten())
	}
}

// Removed records that the host cluster does not have the statement any more.
func (t *Ticket) Removed(i int, policy string, w Written, now time.Time) {
	it := &t.Items[i]
	if it.State != StateRevoking {
		return
	}
	if it.RevokeGeneration == w.Generation && it.PolicyUID == w.UID {
		return
	}
	it.Policy, it.PolicyUID, it.RevokeGeneration = policy, w.UID, w.Generation
	t.event(now, Event{Kind: EventRevokeWritten, Item: i})
	t.setMessage(i, now, message.TicketStatementRemoved())
}

// Remove requests the removal again if a statement is back in its policy after its end. The item is neither revoked nor
// expired until every member was seen without it.
func (t *Ticket) Remove(i int, now time.Time) {
	it := &t.Items[i]
	if it.State != StateRevoking && it.State != StateRevoked && it.State != StateExpired {
		return
	}
	it.State = StateRevoking
	it.RevokeGeneration = 0
	t.event(now, Event{Kind: EventRevokeRequested, Item: i, Message: message.TicketStatementReturned()})
	t.setMessage(i, now, message.TicketStatementReturned())
	t.enqueue(JobRemove, i)
}

// Fail records that the item is not in force, and why. It may be written again later.
func (t *Ticket) Fail(i int, why message.Message, now time.Time) {
	it := &t.Items[i]
	if !it.State.MayBeOnHost() || it.State == StateFailed && it.Message.Same(why) {
		return
	}
	it.State = StateFailed
	t.event(now, Event{Kind: EventFailed, Item: i, Message: why})
	t.setMessage(i, now, why)
}

// SetWaiting records what an approved item or a revocation waits for.
func (t *Ticket) SetWaiting(i int, what message.Message, now time.Time) {
	it := &t.Items[i]
	switch it.State {
	case StateApproved:
		it.State = StateApplying
		t.touch(now)
	case StateApplying, StateRevoking:
	default:
		return
	}
	t.setMessage(i, now, what)
}
