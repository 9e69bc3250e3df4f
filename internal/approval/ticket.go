// Package approval owns tickets: their states, who must decide, what a decision does, and how an approved ticket
// becomes a statement in the host cluster and is followed until it is in force. Transitions are pure; Service, Worker
// and Follower drive them through the Store and PolicyWriter interfaces. It may import the policy package's names and
// the catalog; never HTTP, SQL or a Kubernetes client.
package approval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State of a ticket.
type State string

const (
	StatePending   State = "pending"   // a step waits for somebody
	StateApproved  State = "approved"  // every step is approved; the statement is not written yet
	StateApplying  State = "applying"  // the statement is written; not every member has it
	StateEffective State = "effective" // read back from every targeted member
	StateRejected  State = "rejected"
	StateWithdrawn State = "withdrawn"
	StateFailed    State = "failed"   // the statement was refused, or vanished; Message says which
	StateRevoking  State = "revoking" // being taken out of the members
	StateRevoked   State = "revoked"
	StateExpired   State = "expired"
)

// Open tells whether something may still happen to a ticket without a person.
func (s State) Open() bool {
	switch s {
	case StateApproved, StateApplying, StateEffective, StateFailed, StateRevoking:
		return true
	}
	return false
}

// Grants tells whether a statement for the ticket may be in the host cluster because of its state.
func (s State) Grants() bool {
	switch s {
	case StateApproved, StateApplying, StateEffective, StateFailed:
		return true
	}
	return false
}

// StepState of one step of the chain.
type StepState string

const (
	StepWaiting  StepState = "waiting"
	StepCurrent  StepState = "current"
	StepApproved StepState = "approved"
	StepRejected StepState = "rejected"
	StepSkipped  StepState = "skipped" // the ticket ended before it came to this step
)

// EventKind is one line of a ticket's timeline.
type EventKind string

const (
	EventSubmitted       EventKind = "submitted"
	EventStepApproved    EventKind = "step-approved"
	EventStepRejected    EventKind = "step-rejected"
	EventApproved        EventKind = "approved"
	EventWithdrawn       EventKind = "withdrawn"
	EventWritten         EventKind = "written"
	EventCompiled        EventKind = "compiled"
	EventPropagated      EventKind = "propagated"
	EventRealized        EventKind = "realized"
	EventEffective       EventKind = "effective"
	EventFailed          EventKind = "failed"
	EventRevokeRequested EventKind = "revoke-requested"
	EventRevokeWritten   EventKind = "revoke-written"
	EventRevoked         EventKind = "revoked"
	EventExpired         EventKind = "expired"
)

// Item is one application's access to one resource. Names are those at submission: they are what was approved.
type Item struct {
	Application, ApplicationName string
	Resource, ResourceName       string
	Actions                      []string
	SID                          string
}

// Step is one decision of the chain. Approvers are person ids, resolved at submission.
type Step struct {
	Name      string
	State     StepState
	Approvers []string
	Note      string
	DecidedBy string
	DecidedAt time.Time
	Comment   string
}

// Event is one line of the timeline. Saved is set by the store once the line is stored.
type Event struct {
	At       time.Time
	Kind     EventKind
	Actor    string // person id; empty: the portal
	Step     string
	Cluster  string
	Revision string
	Comment  string
	Saved    bool
}

// Ticket is a request and its whole life. Only the transitions of this package change it.
type Ticket struct {
	Number         int64
	State          State
	Version        int64 // rises with every stored change
	Requester      string
	Reason         string
	IdempotencyKey string
	Duration       time.Duration // 0: until revoked
	ExpiresAt      time.Time     // zero until approved, and without Duration
	Items          []Item
	Steps          []Step
	Events         []Event
	Message        string

	// Where the statement is: the policy, its UID, and the generations that hold the grant and the revocation.
	Policy            string
	PolicyUID         string
	WrittenGeneration int64
	RevokeGeneration  int64

	CreatedAt, UpdatedAt time.Time

	dirty bool
	jobs  []JobKind
}

// ID is the ticket's name for people: T-42.
func (t *Ticket) ID() string { return FormatID(t.Number) }

// FormatID of a ticket number.
func FormatID(n int64) string { return "T-" + strconv.FormatInt(n, 10) }

// ParseID reads a ticket id.
func ParseID(id string) (int64, bool) {
	digits, ok := strings.CutPrefix(id, "T-")
	if !ok || len(digits) > 12 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n > 0 && FormatID(n) == id
}

// SID of a ticket's item; it is the same each time it is derived, which makes writing it idempotent.
func SID(ticket int64, item int) string { return fmt.Sprintf("t-%d-%d", ticket, item+1) }

// TicketOfSID reads back what SID made.
func TicketOfSID(sid string) (int64, bool) {
	parts := strings.Split(sid, "-")
	if len(parts) != 3 || parts[0] != "t" {
		return 0, false
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	item, err2 := strconv.Atoi(parts[2])
	return n, err == nil && err2 == nil && n > 0 && item > 0 && SID(n, item-1) == sid
}

// Numbered gives a new ticket its number, and its items their statements' ids. Stores call it once, in Create.
func (t *Ticket) Numbered(n int64) {
	t.Number = n
	for i := range t.Items {
		t.Items[i].SID = SID(n, i)
	}
}

// Dirty tells a store that there is something to store.
func (t *Ticket) Dirty() bool { return t.dirty }

// Jobs that have to be stored together with the change.
func (t *Ticket) Jobs() []JobKind { return t.jobs }

// Stored is what a store calls when the change is durable.
func (t *Ticket) Stored() {
	t.dirty, t.jobs = false, nil
	for i := range t.Events {
		t.Events[i].Saved = true
	}
}

// Claim is one (application, resource, action) that only one ticket under way may be about.
type Claim struct{ Application, Resource, Action string }

// Claims that the ticket holds in its present state.
func (t *Ticket) Claims() []Claim {
	switch t.State {
	case StatePending, StateApproved, StateApplying:
	default:
		return nil
	}
	var out []Claim
	for _, it := range t.Items {
		for _, a := range it.Actions {
			out = append(out, Claim{it.Application, it.Resource, a})
		}
	}
	return out
}

// Current is the step that waits; -1: none.
func (t *Ticket) Current() int {
	return slices.IndexFunc(t.Steps, func(s Step) bool { return s.State == StepCurrent })
}

// touch marks a change.
func (t *Ticket) touch(now time.Time) {
	if !t.dirty {
		t.Version++
		t.dirty = true
	}
	t.UpdatedAt = now
}

func (t *Ticket) event(now time.Time, e Event) {
	e.At = now
	t.Events = append(t.Events, e)
	t.touch(now)
}

func (t *Ticket) say(now time.Time, message string) {
	if t.Message != message {
		t.Message = message
		t.touch(now)
	}
}

func (t *Ticket) enqueue(kind JobKind) { t.jobs = append(t.jobs, kind) }

// has tells whether the timeline has a line of this kind, cluster and revision.
func (t *Ticket) has(kind EventKind, cluster, revision string) bool {
	return slices.ContainsFunc(t.Events, func(e Event) bool {
		return e.Kind == kind && e.Cluster == cluster && e.Revision == revision
	})
}
