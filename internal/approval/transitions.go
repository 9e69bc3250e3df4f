package approval

import (
	"slices"
	"strings"
	"time"
)

// NewTicket makes a pending ticket whose first step waits.
func NewTicket(requester, reason, key string, duration time.Duration, items []Item, steps []Step, now time.Time) *Ticket {
	t := &Ticket{State: StatePending, Requester: requester, Reason: reason, IdempotencyKey: key, Duration: duration,
		Items: items, Steps: slices.Clone(steps), CreatedAt: now}
	for i := range t.Steps {
		t.Steps[i].State = StepWaiting
	}
	t.Steps[0].State = StepCurrent
	t.event(now, Event{Kind: EventSubmitted, Actor: requester, Comment: reason})
	return t
}

// CanDecide tells whether a person may decide the step that waits; the error says why not.
func (t *Ticket) CanDecide(person string) error {
	i := t.Current()
	if t.State != StatePending || i < 0 {
		return failf(CodeConflict, "The ticket is %s: there is nothing to decide.", t.State)
	}
	if person == t.Requester {
		return failf(CodeForbidden, "Nobody decides his own request.")
	}
	if !slices.Contains(t.Steps[i].Approvers, person) {
		return failf(CodeForbidden, "The step %q waits for somebody else.", t.Steps[i].Name)
	}
	for _, s := range t.Steps {
		if s.DecidedBy == person {
			return failf(CodeForbidden, "You have decided the step %q: one person fills one step.", s.Name)
		}
	}
	return nil
}

// Approve the step that waits. The last approval makes the ticket approved and asks for its statement.
func (t *Ticket) Approve(person, comment string, now time.Time) error {
	if err := t.CanDecide(person); err != nil {
		return err
	}
	i := t.Current()
	if step, ok := t.strands(i, person); ok {
		return failf(CodeConflict, "Leave this step to another approver: you are needed for the step %q, and one person fills one step.", step)
	}
	t.decide(i, StepApproved, person, comment, now)
	t.event(now, Event{Kind: EventStepApproved, Actor: person, Step: t.Steps[i].Name, Comment: comment})
	if i+1 < len(t.Steps) {
		t.Steps[i+1].State = StepCurrent
		return nil
	}
	t.State = StateApproved
	if t.Duration > 0 {
		// Whole seconds, because that is what the statement's notAfter can say.
		t.ExpiresAt = now.Add(t.Duration).Truncate(time.Second)
	}
	t.event(now, Event{Kind: EventApproved})
	t.say(now, "Approved; the statement is about to be written.")
	t.enqueue(JobApply)
	return nil
}

// Reject ends the ticket.
func (t *Ticket) Reject(person, comment string, now time.Time) error {
	if err := t.CanDecide(person); err != nil {
		return err
	}
	if strings.TrimSpace(comment) == "" {
		return invalid("comment", "Say why: a rejection needs a comment.")
	}
	i := t.Current()
	t.decide(i, StepRejected, person, comment, now)
	t.end(StateRejected)
	t.event(now, Event{Kind: EventStepRejected, Actor: person, Step: t.Steps[i].Name, Comment: comment})
	return nil
}

// Withdraw ends a pending ticket for its requester.
func (t *Ticket) Withdraw(person, reason string, now time.Time) error {
	if person != t.Requester {
		return failf(CodeForbidden, "Only the requester can withdraw a request.")
	}
	if t.State != StatePending {
		return failf(CodeConflict, "The ticket is %s: only a pending request can be withdrawn.", t.State)
	}
	t.end(StateWithdrawn)
	t.event(now, Event{Kind: EventWithdrawn, Actor: person, Comment: reason})
	return nil
}

// Revoke starts to take the grant back. Who may is the Service's question.
func (t *Ticket) Revoke(person, reason string, now time.Time) error {
	if strings.TrimSpace(reason) == "" {
		return invalid("reason", "Say why the access ends.")
	}
	if !t.State.Grants() {
		return failf(CodeConflict, "The ticket is %s: there is no grant to revoke.", t.State)
	}
	t.State = StateRevoking
	t.event(now, Event{Kind: EventRevokeRequested, Actor: person, Comment: reason})
	t.say(now, "The statement is about to be removed.")
	t.enqueue(JobRemove)
	return nil
}

// Expire ends a grant whose time has come. The statement's notAfter already ended the access; the job tidies up.
func (t *Ticket) Expire(now time.Time) bool {
	if !t.State.Grants() || t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt) {
		return false
	}
	t.State = StateExpired
	t.event(now, Event{Kind: EventExpired})
	t.say(now, "")
	t.enqueue(JobRemove)
	return true
}

// Written records that the host cluster has the statement.
func (t *Ticket) Written(policy string, w Written, now time.Time) {
	if t.State != StateApproved && t.State != StateApplying && t.State != StateFailed {
		return
	}
	if t.State == StateApplying && t.WrittenGeneration == w.Generation && t.PolicyUID == w.UID {
		return
	}
	t.State, t.Policy, t.PolicyUID, t.WrittenGeneration = StateApplying, policy, w.UID, w.Generation
	t.event(now, Event{Kind: EventWritten})
	t.say(now, "The statement is written; waiting for the adapter to compile it.")
}

// Removed records that the host cluster does not have the statement any more.
func (t *Ticket) Removed(policy string, w Written, now time.Time) {
	if t.State != StateRevoking && t.State != StateExpired {
		return
	}
	if t.RevokeGeneration == w.Generation && t.PolicyUID == w.UID {
		return
	}
	t.Policy, t.PolicyUID, t.RevokeGeneration = policy, w.UID, w.Generation
	if t.State == StateExpired { // nothing waits for it
		t.touch(now)
		return
	}
	t.event(now, Event{Kind: EventRevokeWritten})
	t.say(now, "The statement is removed; waiting until no member has it.")
}

// Fail records that the grant is not in force and why; it may be written again later.
func (t *Ticket) Fail(message string, now time.Time) {
	if !t.State.Grants() || t.State == StateFailed && t.Message == message {
		return
	}
	t.State = StateFailed
	t.event(now, Event{Kind: EventFailed, Comment: message})
	t.say(now, message)
}

// Hold says what an approved ticket, or a revocation, waits for.
func (t *Ticket) Hold(message string, now time.Time) {
	switch t.State {
	case StateApproved:
		t.State = StateApplying
		t.touch(now)
	case StateApplying, StateRevoking:
	default:
		return
	}
	t.say(now, message)
}

func (t *Ticket) decide(i int, s StepState, person, comment string, now time.Time) {
	t.Steps[i].State, t.Steps[i].DecidedBy, t.Steps[i].DecidedAt, t.Steps[i].Comment = s, person, now, comment
	t.touch(now)
}

// end closes a pending ticket; steps that it never came to are skipped.
func (t *Ticket) end(s State) {
	t.State = s
	for i := range t.Steps {
		if st := t.Steps[i].State; st == StepWaiting || st == StepCurrent {
			t.Steps[i].State = StepSkipped
		}
	}
}

// strands names a later step that nobody could fill any more if the person decided step i.
func (t *Ticket) strands(i int, person string) (string, bool) {
	used := map[string]bool{person: true}
	for _, s := range t.Steps {
		if s.DecidedBy != "" {
			used[s.DecidedBy] = true
		}
	}
	rest := t.Steps[i+1:]
	sets := make([][]string, len(rest))
	for k, s := range rest {
		sets[k] = s.Approvers
	}
	if distinct(sets, used) {
		return "", false
	}
	for _, s := range rest {
		if slices.Contains(s.Approvers, person) {
			return s.Name, true
		}
	}
	return rest[0].Name, true
}

// distinct tells whether every set can be given a person of its own who is not used yet.
func distinct(sets [][]string, used map[string]bool) bool {
	if len(sets) == 0 {
		return true
	}
	for _, p := range sets[0] {
		if used[p] {
			continue
		}
		used[p] = true
		ok := distinct(sets[1:], used)
		delete(used, p)
		if ok {
			return true
		}
	}
	return false
}
