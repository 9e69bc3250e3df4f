package approval

import (
	"context"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Bounds of delegations. Those to a person are read for nearly every request of that person, so nobody may make their number grow without limit.
const (
	// MaxDelegation is the longest duration of a delegation.
	MaxDelegation = 90 * 24 * time.Hour
	// MaxDelegationsMade is the number of delegations of one person that have not ended, including those that have not begun.
	MaxDelegationsMade = 20
	// MaxDelegationsReceived is the number of delegations to one person that have not ended, including those that have not begun.
	MaxDelegationsReceived = 200
)

// Delegate lets another person decide in the actor's place between two instants. No one can delegate for another person, because
// that would give them the other person's decisions. It needs a recent login, see CheckLogin: the delegate decides with their own login, so
// that a session of an approver that was left open or stolen would otherwise suffice for a decision in the approver's place.
func (s *Service) Delegate(ctx context.Context, a Actor, to string, start, end time.Time, reason string) (Delegation, error) {
	reason, err := text("reason", reason)
	if err != nil {
		return Delegation{}, err
	}
	now := s.Now()
	if start.IsZero() || start.Before(now) {
		start = now
	}
	_, known := s.Catalog().Person(to)
	switch {
	case a.Auditor:
		return Delegation{}, AuditorsOnlyRead()
	case !known:
		return Delegation{}, invalid("to", message.RequestUnknownPerson(to))
	case to == a.ID:
		return Delegation{}, invalid("to", message.DelegationToOneself())
	case reason == "":
		return Delegation{}, invalid("reason", message.DelegationReasonNeeded())
	case !end.After(start):
		return Delegation{}, invalid("end", message.DelegationEndBeforeBegin())
	case end.Sub(start) > MaxDelegation:
		return Delegation{}, invalid("end", message.DelegationTooLong())
	}
	if err := s.CheckLogin(a); err != nil {
		return Delegation{}, err
	}
	return s.Config.Delegations.Delegate(ctx, Delegation{From: a.ID, To: to, Start: start, End: end, Reason: reason, CreatedBy: a.ID, CreatedAt: now})
}

// CheckDelegation returns an *Error with CodeConflict if a new delegation exceeds a bound, or overlaps with one between the same people. open
// are the delegations from the one person or to the other that have not ended when the new one is created.
func CheckDelegation(d Delegation, open []Delegation) error {
	made, received := 0, 0
	for _, o := range open {
		if o.From == d.From {
			made++
		}
		if o.To == d.To {
			received++
		}
		if o.From == d.From && o.To == d.To && o.Start.Before(d.End) && d.Start.Before(o.End) {
			return fail(CodeConflict, message.DelegationOverlaps(o.Start, o.End))
		}
	}
	switch {
	case made >= MaxDelegationsMade:
		return fail(CodeConflict, message.DelegationTooManyMade(MaxDelegationsMade))
	case received >= MaxDelegationsReceived:
		return fail(CodeConflict, message.DelegationTooManyReceived(MaxDelegationsReceived))
	}
	return nil
}

// EndDelegation ends a delegation early. Both sides may do that, and the security team.
func (s *Service) EndDelegation(ctx context.Context, a Actor, id int64) (Delegation, error) {
	return s.Config.Delegations.EndDelegation(ctx, id, func(d *Delegation) error {
		now := s.Now()
		switch {
		case a.ID != d.From && a.ID != d.To && !a.Security && !a.Auditor:
			return fail(CodeNotFound, message.DelegationNotFound())
		case a.Auditor:
			return AuditorsOnlyRead()
		case !d.EndedAt.IsZero() || !now.Before(d.End):
			return fail(CodeConflict, message.DelegationEnded())
		}
		d.EndedAt, d.EndedBy = now, a.ID
		return nil
	})
}

// Delegations returns those that the actor made or received. With all, the security team and auditors get everybody's.
func (s *Service) Delegations(ctx context.Context, a Actor, all bool, f DelegationFilter) ([]Delegation, error) {
	if all && (a.Security || a.Auditor) {
		return s.Config.Delegations.Delegations(ctx, f)
	}
	made, received := f, f
	made.From, received.To = a.ID, a.ID
	out, err := s.Config.Delegations.Delegations(ctx, made)
	if err != nil {
		return nil, err
	}
	more, err := s.Config.Delegations.Delegations(ctx, received)
	return append(out, more...), err
}
