package approval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

const (
	// MissingScheduleGrace is how long a step waits for an on-call schedule that does not exist any more, before its item is denied.
	MissingScheduleGrace = 7 * 24 * time.Hour
	// scheduleCheckEvery is the interval of the comparison of waiting steps with the schedules that exist. It is long, so that replicas
	// which read a changed configuration at different times do not change tickets in turns.
	scheduleCheckEvery = 10 * time.Minute
	// schedulePage is the number of tickets that the comparison reads at once.
	schedulePage = 200
)

// DeniedAt returns when the item of a step is denied because its on-call schedule does not exist any more, or before that by its timeout;
// zero if the schedule exists, or if others can decide the step.
func (s *Step) DeniedAt() time.Time {
	if s.MissingSince.IsZero() {
		return time.Time{}
	}
	at := s.MissingSince.Add(MissingScheduleGrace)
	if s.OnTimeout == v1alpha1.TimeoutDeny && !s.Deadline.IsZero() && s.Deadline.Before(at) {
		return s.Deadline
	}
	return at
}

// undecidable returns why nobody can decide a limited step, now or later, because its schedule does not exist; zero if somebody can, or
// will be able to after an escalation.
func (it *Item) undecidable(s *Step, on OnCall) message.Message {
	if s.OnCall.IsZero() || s.OnCall.Approvers || !s.Deadline.IsZero() && s.OnTimeout == v1alpha1.TimeoutEscalate && len(s.EscalateTo) > 0 {
		return message.Message{}
	}
	if l := it.Eligible(s, on); l.Duty.Missing && len(l.People) == 0 {
		return l.Reason
	}
	return message.Message{}
}

// CheckSchedule compares the waiting step of an item with the on-call schedules that exist. While nobody can decide the step because its
// schedule does not exist, the timeline says so once, and after MissingScheduleGrace the item is denied. The limit of a step is never
// lifted for this reason.
func (t *Ticket) CheckSchedule(i int, on OnCall, now time.Time) {
	it := &t.Items[i]
	if it.State != StatePending {
		return
	}
	s := it.waiting()
	if s == nil {
		return
	}
	why := it.undecidable(s, on)
	switch {
	case why.IsZero() && !s.MissingSince.IsZero():
		s.MissingSince = time.Time{}
		t.touch(now)
	case why.IsZero():
	case s.MissingSince.IsZero():
		s.MissingSince = now
		if s.MissingSaid {
			t.touch(now)
			return
		}
		s.MissingSaid = true
		t.event(now, Event{Kind: EventScheduleMissing, Item: i, Step: s.Name, Message: message.TicketScheduleMissing(why, s.DeniedAt())})
	case !now.Before(s.MissingSince.Add(MissingScheduleGrace)):
		t.timeOut(i, s, message.TicketScheduleDenied(why), now)
	}
}

// checkSchedules calls CheckSchedule for all waiting items, at most once in scheduleCheckEvery.
func (s *Service) checkSchedules(ctx context.Context, now time.Time) error {
	if last := time.UnixMicro(s.schedulesReadAt.Load()); now.Sub(last) < scheduleCheckEvery && !now.Before(last) {
		return nil
	}
	for f := (Filter{ItemStates: []State{StatePending}, Oldest: true, OmitEvents: true, Limit: schedulePage}); ; {
		page, err := s.Store.List(ctx, f)
		if err != nil {
			return fmt.Errorf("list the waiting tickets: %w", err)
		}
		for _, t := range page {
			if err := s.checkSchedule(ctx, t, now); err != nil {
				return err
			}
		}
		if len(page) < schedulePage {
			s.schedulesReadAt.Store(now.UnixMicro())
			return nil
		}
		f.After = Cursor{Number: page[len(page)-1].Number}
	}
}

func (s *Service) checkSchedule(ctx context.Context, t *Ticket, now time.Time) error {
	if !slices.ContainsFunc(t.Items, func(it Item) bool { w := it.waiting(); return w != nil && !w.OnCall.IsZero() }) {
		return nil
	}
	check := func(t *Ticket) {
		for i := range t.Items {
			t.CheckSchedule(i, s.OnCall, now)
		}
	}
	trial := t.Clone()
	if check(trial); !trial.Dirty() {
		return nil
	}
	if _, err := s.Apply(ctx, t.Number, func(t *Ticket) error { check(t); return nil }); err != nil {
		return fmt.Errorf("compare %s with its on-call schedules: %w", t.ID(), err)
	}
	return nil
}
