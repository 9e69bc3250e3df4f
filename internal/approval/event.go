package approval

import (
	"time"

	"github.com/acp-io/acp/internal/message"
)

// EventKind is the kind of an entry of a ticket's timeline.
type EventKind string

const (
	EventSubmitted       EventKind = "submitted"
	EventStepApproved    EventKind = "step-approved" // by a vote, or by the policy's condition if there is no actor
	EventStepRejected    EventKind = "step-rejected"
	EventApproved        EventKind = "approved"
	EventWithdrawn       EventKind = "withdrawn"
	EventTimedOut        EventKind = "timed-out"
	EventEscalated       EventKind = "escalated"
	EventReminded        EventKind = "reminded"
	EventVoided          EventKind = "voided"  // the item grants more than was shown: its approvals are void
	EventReduced         EventKind = "reduced" // the item grants less than was approved
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

// WholeTicket is the item number of events that are about the ticket as a whole.
const WholeTicket = -1

// Event is one entry of the timeline. The store sets Saved when it has stored the entry.
type Event struct {
	At         time.Time
	Kind       EventKind
	Item       int    // WholeTicket: about all items
	Actor      string // person id; empty: the portal
	OnBehalfOf string
	Step       string
	Cluster    string
	Revision   string
	Comment    string          // of the actor; for EventVoided and EventReduced the lines that differ
	Message    message.Message // why the portal made the entry, if it has no actor
	Saved      bool
}
