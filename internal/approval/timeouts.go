package approval

import (
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

func (t *Ticket) timeout(i int, now time.Time) {
	it := &t.Items[i]
	s := it.waiting()
	switch {
	case s == nil:
		return
	case s.Deadline.IsZero() || now.Before(s.Deadline):
		if !s.RemindAt.IsZero() && !now.Before(s.RemindAt) {
			s.RemindAt = now.Add(s.Remind)
			t.event(now, Event{Kind: EventReminded, Item: i, Step: s.Name})
		}
		return
	case s.Remind > 0: // what happens now is told to the approvers, which replaces the next reminder
		s.RemindAt = now.Add(s.Remind)
	}
	switch s.OnTimeout {
	case v1alpha1.TimeoutDeny:
		s.State = StepTimedOut
		t.end(i, StateTimedOut)
		t.event(now, Event{Kind: EventTimedOut, Item: i, Step: s.Name})
	case v1alpha1.TimeoutEscalate:
		s.Deadline, s.Escalated = time.Time{}, true
		for _, p := range s.EscalateTo {
			if !slices.Contains(s.Approvers, p) {
				s.Approvers, s.Added = append(s.Approvers, p), append(s.Added, p)
			}
		}
		t.event(now, Event{Kind: EventEscalated, Item: i, Step: s.Name})
	default:
		s.Deadline = now.Add(s.Timeout)
		t.event(now, Event{Kind: EventReminded, Item: i, Step: s.Name})
	}
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
	t.say(i, now, message.TicketTimeOver())
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
