// Package approval owns tickets: their states, who must decide, what a decision does, and how an approved ticket
// becomes a statement or an object in the host cluster and is followed until it is in force. Transitions are pure;
// Service, Worker and Follower drive them through the Store and the ports in ports.go. It may import the policy
// package's names and the catalog; never HTTP, SQL or a Kubernetes client.
package approval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind of a ticket, and so of all its items.
type Kind string

const (
	KindGrant          Kind = "grant"
	KindExtend         Kind = "extend" // a grant again, with a later end
	KindRevoke         Kind = "revoke" // of another ticket's grant, by who may not revoke it himself
	KindMode           Kind = "mode"   // of a ProtectedResource
	KindOnboard        Kind = "onboard"
	KindOffboard       Kind = "offboard"
	KindClass          Kind = "class"
	KindApprovalPolicy Kind = "approval-policy"
)

// Valid tells whether there is such a kind.
func (k Kind) Valid() bool { return k.Access() || k.Object() || k == KindRevoke }

// Access tells that an item becomes a statement of a policy.
func (k Kind) Access() bool { return k == KindGrant || k == KindExtend }

// Object tells that an item changes an object of the host cluster as a whole.
func (k Kind) Object() bool {
	switch k {
	case KindMode, KindOnboard, KindOffboard, KindClass, KindApprovalPolicy:
		return true
	}
	return false
}

// Ticket is a request and its whole life. Only the transitions of this package change it.
type Ticket struct {
	Number         int64
	Kind           Kind
	Version        int64 // rises with every stored change
	Requester      string
	Reason         string
	IdempotencyKey string
	BreakGlass     bool // in force first, reviewed after
	Items          []Item
	Events         []Event

	CreatedAt, UpdatedAt time.Time

	dirty bool
	jobs  []NewJob
}

// NewJob is work that has to be stored together with the change that asks for it.
type NewJob struct {
	Kind JobKind
	Item int
}

// sumOrder is what a ticket's state says of its items: the first of these that any of them is in.
var sumOrder = []State{StatePending, StateFailed, StateApproved, StateApplying, StateRevoking, StateEffective, StateRevoked,
	StateExpired, StateRejected, StateTimedOut, StateWithdrawn}

// State is the sum of the items' states.
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
func (t *Ticket) Jobs() []NewJob { return t.jobs }

// JobKey is what an item's jobs are ordered by: those of one key are done one after the other.
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

// Stored is what a store calls when the change is durable.
func (t *Ticket) Stored() {
	t.dirty, t.jobs = false, nil
	for i := range t.Events {
		t.Events[i].Saved = true
	}
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

func (t *Ticket) say(i int, now time.Time, message string) {
	if t.Items[i].Message != message {
		t.Items[i].Message = message
		t.touch(now)
	}
}

func (t *Ticket) enqueue(kind JobKind, i int) { t.jobs = append(t.jobs, NewJob{kind, i}) }

// has tells whether the timeline has a line about an item of this kind, cluster and revision.
func (t *Ticket) has(i int, kind EventKind, cluster, revision string) bool {
	return slices.ContainsFunc(t.Events, func(e Event) bool {
		return e.Item == i && e.Kind == kind && e.Cluster == cluster && e.Revision == revision
	})
}

// Clone copies a ticket, so that a transition can be tried on the copy.
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
