package approval

import (
	"context"
	"time"
)

// Tick applies the changes that are due to time to all tickets: timeouts of steps, expiries and warnings of them. It also
// completes revocations whose targets are gone, and from time to time ends items that nobody can decide any more.
func (s *Service) Tick(ctx context.Context) error {
	now := s.Now()
	due, err := s.Store.List(ctx, Filter{DueBy: now, OmitEvents: true})
	if err != nil {
		return err
	}
	for _, t := range due {
		if _, err := s.Apply(ctx, t.Number, func(t *Ticket) error { t.Tick(now); return nil }); err != nil {
			return err
		}
	}
	if err := s.checkSchedules(ctx, now); err != nil {
		return err
	}
	return s.followRevocations(ctx, now)
}

// followRevocations sets revocations effective whose targets are gone from every member.
func (s *Service) followRevocations(ctx context.Context, now time.Time) error {
	list, err := s.Store.List(ctx, Filter{Kinds: []Kind{KindRevoke}, ItemStates: []State{StateApplying}, OmitEvents: true})
	if err != nil {
		return err
	}
	for _, t := range list {
		for i, it := range t.Items {
			if it.State != StateApplying || it.Target == nil || it.WrittenGeneration == 0 {
				continue
			}
			target, err := s.Store.Get(ctx, it.Target.Ticket)
			if err != nil {
				return err
			}
			switch target.Items[it.Target.Item].State {
			case StateRevoked, StateExpired:
			default:
				continue
			}
			if _, err := s.Apply(ctx, t.Number, func(t *Ticket) error { t.TargetGone(i, now); return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}

// TargetGone records that the grant that an item revokes is gone from every member.
func (t *Ticket) TargetGone(i int, now time.Time) {
	if t.Kind == KindRevoke && t.Items[i].State == StateApplying {
		t.effective(i, now)
	}
}
