package approval

import (
	"cmp"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Tick applies the changes that are due to time: timeouts and reminders of steps, expiries, and warnings of them. A timeout never
// approves or skips a step.
func (t *Ticket) Tick(now time.Time) {
	for i := range t.Items {
		t.timeout(i, now)
		t.Expire(i, now)
		t.warn(i, now)
	}
}

const (
	// longestRemind is the interval of reminders up to which it doubles after each reminder.
	longestRemind = 7 * 24 * time.Hour
	// remindFor is how long the approvers of a step are reminded. The first reminder after this time is the last one.
	remindFor = 30 * 24 * time.Hour
)

func (t *Ticket) timeout(i int, now time.Time) {
	it := &t.Items[i]
	s := it.waiting()
	switch {
	case s == nil:
		return
	case s.Deadline.IsZero() || now.Before(s.Deadline):
		if !s.RemindAt.IsZero() && !now.Before(s.RemindAt) {
			t.remind(i, s, now)
		}
		return
	}
	switch s.OnTimeout {
	case v1alpha1.TimeoutDeny:
		t.timeOut(i, s, message.Message{}, now)
	case v1alpha1.TimeoutEscalate:
		s.Deadline, s.Escalated = time.Time{}, true
		for _, p := range s.EscalateTo {
			if !slices.Contains(s.Approvers, p) {
				s.Approvers, s.Added = append(s.Approvers, p), append(s.Added, p)
			}
		}
		if s.Remind > 0 { // the escalation replaces the next reminder, and the people whom it adds get as many as the others
			s.RemindAt, s.Reminders = now.Add(s.Remind), 0
		}
		t.event(now, Event{Kind: EventEscalated, Item: i, Step: s.Name})
	default:
		s.Deadline = time.Time{}
		t.remind(i, s, now)
	}
}

// timeOut denies an item because its waiting step was not decided in time. The message is zero if the approval policy denies it.
func (t *Ticket) timeOut(i int, s *Step, why message.Message, now time.Time) {
	s.State = StepTimedOut
	t.end(i, StateTimedOut)
	t.event(now, Event{Kind: EventTimedOut, Item: i, Step: s.Name, Message: why})
	if !why.IsZero() {
		t.setMessage(i, now, why)
	}
}

// remind records a reminder of the approvers of a step, and sets the time of the next one. While a timeout is ahead, no reminder is the
// last one, because the timeout ends the wait, or begins another one.
func (t *Ticket) remind(i int, s *Step, now time.Time) {
	s.Reminders++
	next, total := reminders(cmp.Or(s.Remind, s.Timeout), s.Reminders)
	if s.Deadline.IsZero() && total >= remindFor {
		s.RemindAt = time.Time{}
		t.event(now, Event{Kind: EventLastReminder, Item: i, Step: s.Name})
		return
	}
	s.RemindAt = now.Add(next)
	t.event(now, Event{Kind: EventReminded, Item: i, Step: s.Name})
}

// reminders returns the interval between the nth reminder and the next one, and the sum of the intervals up to the nth. The first interval
// is given. Each further one is twice as long, up to longestRemind, or as long as the first one if that is longer.
func reminders(first time.Duration, n int) (next, total time.Duration) {
	longest := max(first, longestRemind)
	next = first
	for range n {
		total += next
		if next > longest/2 {
			next = longest
		} else {
			next *= 2
		}
	}
	return next, total
}

// Expire ends a grant that has expired. The statement's notAfter ends it in what is compiled, but a member that cannot be
// reached still has it. Therefore the item is removed like a revoked one, and is expired only when every member was seen
// without it.
func (t *Ticket) Expire(i int, now time.Time) {
	it := &t.Items[i]
	if !it.State.MayBeOnHost() || it.End().IsZero() || now.Before(it.End()) {
		return
	}
	it.State = StateRevoking
	t.event(now, Event{Kind: EventExpired, Item: i})
	t.setMessage(i, now, message.TicketTimeOver())
	t.enqueue(JobRemove, i)
}

func (t *Ticket) warn(i int, now time.Time) {
	it := &t.Items[i]
	if !it.State.MayBeOnHost() || it.WarnAt.IsZero() || now.Before(it.WarnAt) {
		return
	}
	it.WarnAt = nextWarning(it, now)
	t.event(now, Event{Kind: EventExpiresSoon, Item: i})
}

// nextWarning returns the next instant to warn of an expiry: seven days and one day before it, and for a short grant when
// a quarter and a tenth of it are left.
func nextWarning(it *Item, now time.Time) time.Time {
	length := it.Duration
	if left := it.End().Sub(it.ShortenedAt); !it.ShortenedAt.IsZero() && (length == 0 || left < length) {
		length = left
	}
	for _, before := range []time.Duration{min(7*24*time.Hour, length/4), min(24*time.Hour, length/10)} {
		if at := it.End().Add(-before); at.After(now) {
			return at
		}
	}
	return time.Time{}
}
