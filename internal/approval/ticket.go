package approval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Ticket is a request with its decisions and its effects. Only the transitions of this package change it.
type Ticket struct {
	Number         int64
	Kind           Kind
	Version        int64 // increases with every stored change
	Requester      string
	Reason         string
	IdempotencyKey string
	BreakGlass     bool // takes effect at once and is reviewed afterwards
	// TraceParent is the position of the submission in the ticket's trace, from which everything that happens to the ticket is
	// traced; empty if the submission was not traced.
	TraceParent string
	Items       []Item
	Events      []Event

	CreatedAt, UpdatedAt time.Time

	dirty bool
	jobs  []NewJob
}

// NewJob is a job that has to be stored together with the change that needs it.
type NewJob struct {
	Kind JobKind
	Item int
}

// sumOrder orders the states: the state of a ticket is the first of these that any of its items has.
var sumOrder = []State{StatePending, StateFailed, StateApproved, StateApplying, StateRevoking, StateEffective, StateRevoked,
	StateExpired, StateRejected, StateTimedOut, StateWithdrawn}

// State returns the state of the ticket, which is computed from its items.
func (t *Ticket) State() State {
	first := len(sumOrder)
	for i := range t.Items {
		if at := slices.Index(sumOrder[:first], t.Items[i].State); at >= 0 {
			first = at
		}
	}
	if first == len(sumOrder) {
		return StateWithdrawn
	}
	return sumOrder[first]
}

// ID returns the ticket's name for people, for example T-42.
func (t *Ticket) ID() string { return FormatID(t.Number) }

// FormatID returns the ID of a ticket number.
func FormatID(n int64) string { return "T-" + strconv.FormatInt(n, 10) }

// ParseID returns the number of a ticket ID.
func ParseID(id string) (int64, bool) {
	digits, ok := strings.CutPrefix(id, "T-")
	if !ok || len(digits) > 12 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n > 0 && FormatID(n) == id
}

// SID returns the sid of a ticket's item. It depends only on the arguments, which makes writing the statement idempotent.
func SID(ticket int64, item int) string { return fmt.Sprintf("t-%d-%d", ticket, item+1) }

// TicketOfSID returns the ticket number of a sid that SID returned.
func TicketOfSID(sid string) (int64, bool) {
	parts := strings.Split(sid, "-")
	if len(parts) != 3 || parts[0] != "t" {
		return 0, false
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	item, err2 := strconv.Atoi(parts[2])
	return n, err == nil && err2 == nil && n > 0 && item > 0 && SID(n, item-1) == sid
}

// Numbered sets the number of a new ticket and the sids of its items. Stores call it once, in Create.
func (t *Ticket) Numbered(n int64) {
	t.Number = n
	for i := range t.Items {
		t.Items[i].SID = SID(n, i)
	}
}

// Dirty reports whether there are changes to store.
func (t *Ticket) Dirty() bool { return t.dirty }

// Jobs returns the jobs that have to be stored together with the change.
func (t *Ticket) Jobs() []NewJob { return t.jobs }

// JobKey returns the key of an item's jobs. Jobs of one key are done one after the other.
func (t *Ticket) JobKey(i int) string {
	it := t.Items[i]
	switch {
	case it.Change != nil:
		return it.Change.Kind + "/" + it.Change.Name
	case t.Kind == KindRevoke && it.Target != nil:
		return "ticket/" + FormatID(it.Target.Ticket)
	}
	return it.ResourceName
}

// Stored marks the changes as stored. Stores call it when they are durable.
func (t *Ticket) Stored() {
	t.dirty, t.jobs = false, nil
	for i := range t.Events {
		t.Events[i].Saved = true
	}
}

// touch records the time of a change.
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

// setMessage sets the message of an item.
func (t *Ticket) setMessage(i int, now time.Time, m message.Message) {
	if t.Items[i].Message != m {
		t.Items[i].Message = m
		t.touch(now)
	}
}

func (t *Ticket) enqueue(kind JobKind, i int) { t.jobs = append(t.jobs, NewJob{kind, i}) }

// has reports whether the timeline has an event about an item with this kind, cluster and revision.
func (t *Ticket) has(i int, kind EventKind, cluster, revision string) bool {
	return slices.ContainsFunc(t.Events, func(e Event) bool {
		return e.Item == i && e.Kind == kind && e.Cluster == cluster && e.Revision == revision
	})
}

// Clone returns a copy of the ticket, on which a transition can be tried.
func (t *Ticket) Clone() *Ticket {
	c := *t
	c.Events, c.jobs, c.Items = slices.Clone(t.Events), slices.Clone(t.jobs), slices.Clone(t.Items)
	for i := range c.Items {
		it := &c.Items[i]
		it.Steps, it.Leaving = cloneSteps(it.Steps), slices.Clone(it.Leaving)
		if it.Review != nil {
			it.Review = &cloneSteps([]Step{*it.Review})[0]
		}
	}
	return &c
}

func cloneSteps(in []Step) []Step {
	out := slices.Clone(in)
	for i := range out {
		out[i].Votes, out[i].Approvers = slices.Clone(out[i].Votes), slices.Clone(out[i].Approvers)
	}
	return out
}
