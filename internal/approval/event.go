package approval

import (
	"time"

	"github.com/acp-io/acp/internal/message"
)

// EventKind is the kind of an entry of a ticket's timeline.
type EventKind string

const (
	// EventSubmitted is recorded when the request is made.
	EventSubmitted EventKind = "submitted"
	// EventStepApproved is recorded for each approval of a step: by a vote or, without an actor, by the condition of
	// the approval policy.
	EventStepApproved EventKind = "step-approved"
	// EventStepRejected is recorded when an approver rejects a step, which rejects the item.
	EventStepRejected EventKind = "step-rejected"
	// EventApproved is recorded when every step is approved.
	EventApproved EventKind = "approved"
	// EventWithdrawn is recorded when the requester, or the portal, ends a request before it was decided.
	EventWithdrawn EventKind = "withdrawn"
	// EventTimedOut is recorded when an item is denied that was not decided in time: by the approval policy, or, with a message, by the
	// portal.
	EventTimedOut EventKind = "timed-out"
	// EventEscalated is recorded when further people may decide a step, because it was not decided in time.
	EventEscalated EventKind = "escalated"
	// EventReminded is recorded when the approvers of a step are reminded, because it was not decided in time.
	EventReminded EventKind = "reminded"
	// EventLastReminder is recorded when the approvers of a step are reminded for the last time.
	EventLastReminder EventKind = "last-reminder"
	// EventScheduleMissing is recorded when nobody can decide a step any more, because its on-call schedule does not exist.
	EventScheduleMissing EventKind = "schedule-missing"
	// EventVoided is recorded when the approvals of an item become void, because it grants more than was shown.
	EventVoided EventKind = "voided"
	// EventReduced is recorded when an item grants less than was approved.
	EventReduced EventKind = "reduced"
	// EventBreakGlass is recorded when access by break-glass begins.
	EventBreakGlass EventKind = "break-glass"
	// EventReviewed is recorded for each vote in the review of access by break-glass.
	EventReviewed EventKind = "reviewed"
	// EventComment is recorded when a person adds a comment.
	EventComment EventKind = "comment"
	// EventExpiresSoon is recorded once, at Item.WarnAt, before the access expires.
	EventExpiresSoon EventKind = "expires-soon"
	// EventWritten is recorded when the change is written to the host cluster.
	EventWritten EventKind = "written"
	// EventCompiled is recorded when the adapter has compiled the written change.
	EventCompiled EventKind = "compiled"
	// EventPropagated is only in tickets of earlier versions, which recorded the read-back as KubeFed's report.
	EventPropagated EventKind = "propagated"
	// EventRealized is recorded for each member from which the change was read back.
	EventRealized EventKind = "realized"
	// EventEffective is recorded when the change was read back from every targeted member.
	EventEffective EventKind = "effective"
	// EventFailed is recorded when an approved change was refused, vanished or was altered.
	EventFailed EventKind = "failed"
	// EventShortened is recorded when the grant gets an earlier end.
	EventShortened EventKind = "shortened"
	// EventRevokeRequested is recorded when the revocation of a grant begins.
	EventRevokeRequested EventKind = "revoke-requested"
	// EventRevokeWritten is recorded when the statement is removed from its policy on the host cluster.
	EventRevokeWritten EventKind = "revoke-written"
	// EventRevoked is recorded when every member was read without the revoked statement.
	EventRevoked EventKind = "revoked"
	// EventExpired is recorded when the time of the grant is over.
	EventExpired EventKind = "expired"
)

// WholeTicket is the item number of events that are about the ticket as a whole.
const WholeTicket = -1

// Event is one entry of the timeline. The store sets Saved when it has stored the entry.
type Event struct {
	At         time.Time
	Kind       EventKind
	Item       int    // position, or WholeTicket
	Actor      string // person id; empty for the portal
	OnBehalfOf string
	Step       string
	Cluster    string
	Revision   string
	Through    string          // of a decision, the channel by which it was made, as in Actor
	Comment    string          // of the actor; for EventVoided and EventReduced the lines that differ
	Message    message.Message // why the portal made the entry, if it has no actor
	Saved      bool
}
