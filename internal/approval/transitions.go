package approval

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Draft is the input of NewTicket. The chains of the items are resolved.
type Draft struct {
	Kind                              Kind
	Requester, Reason, IdempotencyKey string
	BreakGlass                        bool
	Items                             []Item
}

// NewTicket returns a ticket whose items wait for their first step, or, with break-glass, are approved and wait for their
// review.
func NewTicket(d Draft, now time.Time) *Ticket {
	t := &Ticket{Kind: d.Kind, Requester: d.Requester, Reason: d.Reason, IdempotencyKey: d.IdempotencyKey, BreakGlass: d.BreakGlass,
		Items: slices.Clone(d.Items), CreatedAt: now}
	t.event(now, Event{Kind: EventSubmitted, Item: WholeTicket, Actor: d.Requester, Comment: d.Reason})
	for i := range t.Items {
		it := &t.Items[i]
		it.State, it.Steps = StatePending, cloneSteps(it.Steps)
		if t.BreakGlass {
			t.event(now, Event{Kind: EventBreakGlass, Item: i, Actor: d.Requester, Comment: d.Reason})
			review := cloneSteps([]Step{*it.Review})[0]
			it.Review = &review
			it.Review.start(now)
			t.approve(i, now)
			continue
		}
		for k := range it.Steps {
			it.Steps[k].State = StepWaiting
		}
		t.advance(i, now)
	}
	return t
}

func (s *Step) start(now time.Time) {
	s.State = StepCurrent
	if s.Timeout > 0 {
		s.Deadline = now.Add(s.Timeout)
	}
	if s.Remind > 0 {
		s.RemindAt = now.Add(s.Remind)
	}
}

// stop ends the timeout and the reminders of a step.
func (s *Step) stop() { s.Deadline, s.RemindAt, s.Reminders = time.Time{}, time.Time{}, 0 }

// advance makes the next step current. After the last step it approves the item.
func (t *Ticket) advance(i int, now time.Time) {
	it := &t.Items[i]
	for k := range it.Steps {
		s := &it.Steps[k]
		switch {
		case s.State == StepCurrent:
			return
		case s.State == StepWaiting && s.Auto:
			s.State = StepApproved
			t.event(now, Event{Kind: EventStepApproved, Item: i, Step: s.Name, Message: s.Note})
		case s.State == StepWaiting:
			s.start(now)
			return
		}
	}
	if len(it.Steps) > 0 { // without steps no one has approved
		t.approve(i, now)
	}
}

func (t *Ticket) approve(i int, now time.Time) {
	it := &t.Items[i]
	it.State = StateApproved
	if t.Kind.Access() {
		it.GrantedAt = now
	}
	if t.Kind.Access() && it.Duration > 0 {
		end := now.Add(it.Duration)
		if !it.Latest.IsZero() && end.After(it.Latest) {
			end = it.Latest
		}
		// Whole seconds, because the statement's notAfter has no fractions.
		it.ExpiresAt = end.Truncate(time.Second)
		it.WarnAt = nextWarning(it, now)
	}
	t.event(now, Event{Kind: EventApproved, Item: i})
	switch {
	case t.Kind.Access():
		t.setMessage(i, now, message.TicketApprovedGrant())
	case t.Kind == KindRevoke:
		t.setMessage(i, now, message.TicketApprovedRevocation())
	default:
		t.setMessage(i, now, message.TicketApprovedChange())
	}
	t.enqueue(JobApply, i)
}

// CanVote checks whether a person may decide the waiting step of an item, or review it.
func (t *Ticket) CanVote(i int, person, onBehalfOf string) error {
	if i < 0 || i >= len(t.Items) {
		return fail(CodeNotFound, message.TicketNoSuchItem())
	}
	it := &t.Items[i]
	s := it.waiting()
	if s == nil {
		return fail(CodeConflict, message.DecideNotPending(string(it.State)))
	}
	if person == t.Requester || onBehalfOf == t.Requester || it.Author != "" && (person == it.Author || onBehalfOf == it.Author) {
		return fail(CodeForbidden, message.DecideOwnRequest())
	}
	if it.mayVote(s, person, onBehalfOf) {
		return nil
	}
	for _, p := range []string{person, onBehalfOf} {
		if name, filled := it.filled(s, p); filled && p != "" {
			return fail(CodeForbidden, message.DecideStepDone(StepName(name)))
		}
	}
	return fail(CodeForbidden, message.DecideStepOfAnother(StepName(s.Name)))
}

// Vote records a decision in the waiting step of an item. One rejection ends the item. The last approval that a step needs
// makes the next step current, and after the last step creates the job that writes the item.
func (t *Ticket) Vote(i int, v Vote) error {
	if err := t.CanVote(i, v.Person, v.OnBehalfOf); err != nil {
		return err
	}
	it := &t.Items[i]
	if it.State != StatePending {
		return fail(CodeConflict, message.DecideNotPending(string(it.State)))
	}
	s := it.waiting()
	e := Event{Kind: EventStepApproved, Item: i, Actor: v.Person, OnBehalfOf: v.OnBehalfOf, Step: s.Name, Comment: v.Comment, Through: v.Through}
	if !v.Approve {
		if strings.TrimSpace(v.Comment) == "" {
			return invalid("comment", message.DecideCommentNeeded())
		}
		e.Kind = EventStepRejected
		s.Votes, s.State = append(s.Votes, v), StepRejected
		t.event(v.At, e)
		t.end(i, StateRejected)
		return nil
	}
	if name, ok := it.blockedStep(slices.DeleteFunc([]string{v.Person, v.OnBehalfOf}, func(p string) bool { return p == "" })...); ok {
		return fail(CodeConflict, message.DecideNeededElsewhere(StepName(name)))
	}
	s.Votes = append(s.Votes, v)
	t.event(v.At, e)
	if s.Left() == 0 {
		s.State = StepApproved
		s.stop()
		t.advance(i, v.At)
	}
	return nil
}

// Confirm records the review of a break-glass item: a confirmation keeps it, a rejection revokes it.
func (t *Ticket) Confirm(i int, v Vote) error {
	if err := t.CanVote(i, v.Person, v.OnBehalfOf); err != nil {
		return err
	}
	it := &t.Items[i]
	if !it.Reviewing() {
		return fail(CodeConflict, message.ReviewNothing())
	}
	if strings.TrimSpace(v.Comment) == "" {
		return invalid("comment", message.ReviewTextNeeded())
	}
	s := it.Review
	s.Votes, s.State = append(s.Votes, v), StepApproved
	s.stop()
	if !v.Approve {
		s.State = StepRejected
	}
	t.event(v.At, Event{Kind: EventReviewed, Item: i, Actor: v.Person, OnBehalfOf: v.OnBehalfOf, Step: string(s.State), Comment: v.Comment})
	if !v.Approve && it.State.MayBeOnHost() {
		return t.Revoke(i, v.Person, v.Comment, v.At)
	}
	return nil
}

// Withdraw ends the pending items on behalf of their requester.
func (t *Ticket) Withdraw(person, reason string, now time.Time) error {
	if person != t.Requester {
		return fail(CodeForbidden, message.WithdrawRequesterOnly())
	}
	if t.State() != StatePending {
		return fail(CodeConflict, message.WithdrawNotPending(string(t.State())))
	}
	if strings.TrimSpace(reason) == "" {
		return invalid("reason", message.WithdrawReasonNeeded())
	}
	for i := range t.Items {
		if t.Items[i].State == StatePending {
			t.end(i, StateWithdrawn)
		}
	}
	t.event(now, Event{Kind: EventWithdrawn, Item: WholeTicket, Actor: person, Comment: reason})
	return nil
}

// Revoke starts the removal of a grant. The Service checks who may do that.
func (t *Ticket) Revoke(i int, person, reason string, now time.Time) error {
	if strings.TrimSpace(reason) == "" {
		return invalid("reason", message.RevokeReasonNeeded())
	}
	it := &t.Items[i]
	if !t.Kind.Access() || !it.State.MayBeOnHost() {
		return fail(CodeConflict, message.RevokeNoGrant(string(it.State)))
	}
	t.revoke(i, Event{Actor: person, Comment: reason}, now)
	return nil
}

// revoke starts the removal of a grant that may be in the host cluster. The event says who revokes it and why.
func (t *Ticket) revoke(i int, why Event, now time.Time) {
	t.Items[i].State = StateRevoking
	why.Kind, why.Item = EventRevokeRequested, i
	t.event(now, why)
	t.setMessage(i, now, message.TicketStatementRemoving())
	t.enqueue(JobRemove, i)
}

// NotRestored ends an item of a restored backup if it may have ended after the backup, and reports whether it did: a grant
// is revoked, and a waiting request, or a change of an object that was not written yet, is withdrawn. Items that take
// access away continue.
func (t *Ticket) NotRestored(i int, reason message.Message, now time.Time) bool {
	it := &t.Items[i]
	unwritten := t.Kind.Object() && it.State.MayBeOnHost() && it.WrittenGeneration == 0
	switch {
	case t.Kind == KindRevoke:
		return false
	case t.Kind.Access() && it.State.MayBeOnHost():
		t.revoke(i, Event{Message: reason}, now)
	case it.State == StatePending || unwritten:
		t.end(i, StateWithdrawn)
		t.event(now, Event{Kind: EventWithdrawn, Item: i, Message: reason})
		t.setMessage(i, now, reason)
	default:
		return false
	}
	return true
}

// MaxComments is the maximum number of comments of a ticket. Everybody who may see a ticket can comment on it, and the comments are read with it.
const MaxComments = 200

// Comment adds a comment to the timeline, unless it has MaxComments of them.
func (t *Ticket) Comment(person, text string, now time.Time) error {
	if strings.TrimSpace(text) == "" {
		return invalid("comment", message.CommentEmpty())
	}
	n := 0
	for _, e := range t.Events {
		if e.Kind == EventComment {
			n++
		}
	}
	if n >= MaxComments {
		return fail(CodeConflict, message.CommentTooMany(MaxComments))
	}
	t.event(now, Event{Kind: EventComment, Item: WholeTicket, Actor: person, Comment: text})
	return nil
}

// end closes a pending item and marks its remaining steps as skipped.
func (t *Ticket) end(i int, s State) {
	it := &t.Items[i]
	it.State = s
	for k := range it.Steps {
		if st := it.Steps[k].State; st == StepWaiting || st == StepCurrent {
			it.Steps[k].State = StepSkipped
			it.Steps[k].stop()
		}
	}
}
