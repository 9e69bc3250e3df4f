package approval

import "time"

// EventKind is one line of a ticket's timeline.
type EventKind string

const (
	EventSubmitted       EventKind = "submitted"
	EventStepApproved    EventKind = "step-approved" // a vote, or the policy by itself when there is no actor
	EventStepRejected    EventKind = "step-rejected"
	EventApproved        EventKind = "approved"
	EventWithdrawn       EventKind = "withdrawn"
	EventTimedOut        EventKind = "timed-out"
	EventEscalated       EventKind = "escalated"
	EventReminded        EventKind = "reminded"
	EventVoided          EventKind = "voided"  // it grew: the approvals are void
	EventReduced         EventKind = "reduced" // it brings less than was approved
	EventBreakGlass      EventKind = "break-glass"
	EventReviewed        EventKind = "reviewed"
	EventComment         EventKind = "comment"
	EventExpiresSoon     EventKind = "expires-soon"
	EventWritten         EventKind = "written"
	EventCompiled        EventKind = "compiled"
	EventPropagated      EventKind = "propagated" // only in tickets of earlier versions, which recorded the read-back as KubeFed's report
	EventRealized        EventKind = "realized"
	EventEffective       EventKind = "effective"
	EventFailed          EventKind = "failed"
	EventRevokeRequested EventKind = "revoke-requested"
	EventRevokeWritten   EventKind = "revoke-written"
	EventRevoked         EventKind = "revoked"
	EventExpired         EventKind = "expired"
)

// WholeTicket is the item of events that are about no item in particular.
const WholeTicket = -1

// Event is one line of the timeline. Saved is set by the store once the line is stored.
type Event struct {
	At         time.Time
	Kind       EventKind
	Item       int    // WholeTicket: of all
	Actor      string // person id; empty: the portal
	OnBehalfOf string
	Step       string
	Cluster    string
	Revision   string
	Comment    string
	Saved      bool
}
