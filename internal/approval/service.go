package approval

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/catalog"
)

// Config of a Service. All fields are required but OnChange and Wake.
type Config struct {
	Store    Store
	Catalog  func() *catalog.Catalog
	Classes  Classes
	Now      func() time.Time
	OnChange func(*Ticket) // after each stored change
	Wake     func()        // after a stored change that brought a job
}

// Service is what people do with tickets.
type Service struct{ Config }

// NewService checks its configuration.
func NewService(c Config) (*Service, error) {
	if c.Store == nil || c.Catalog == nil || c.Classes == nil || c.Now == nil {
		return nil, fmt.Errorf("approval service: store, catalog, classes and clock are required")
	}
	if c.OnChange == nil {
		c.OnChange = func(*Ticket) {}
	}
	if c.Wake == nil {
		c.Wake = func() {}
	}
	return &Service{c}, nil
}

// Actor with those for whom he may decide now.
func (s *Service) Actor(ctx context.Context, a Actor) (Actor, error) {
	now := s.Now()
	all, err := s.Store.Delegations(ctx, DelegationFilter{To: a.ID, ActiveAt: now})
	if err != nil {
		return a, err
	}
	a.StandsFor = standsFor(all, a.ID, now)
	return a, nil
}

// Get a ticket that the actor may see.
func (s *Service) Get(ctx context.Context, a Actor, number int64) (*Ticket, error) {
	a, err := s.Actor(ctx, a)
	if err != nil {
		return nil, err
	}
	t, err := s.Store.Get(ctx, number)
	if err != nil {
		return nil, err
	}
	if !MayDo(s.Catalog(), a, t).See {
		return nil, NotFound()
	}
	return t, nil
}

// EveryItem stands for all items of a ticket that an operation can be about.
const EveryItem = -1

// Decide the step of an item that waits, or of every item that waits for the actor, as it was in the version that he
// saw.
func (s *Service) Decide(ctx context.Context, a Actor, number int64, item int, version int64, approve bool, comment string) (*Ticket, error) {
	return s.change(ctx, a, number, func(a Actor, t *Ticket) error {
		if t.Version != version {
			return failf(CodeStale, "The ticket changed since you looked (it is %s now): look again, then decide.", t.State())
		}
		items, err := s.waitingFor(a, t, item)
		if err != nil {
			return err
		}
		for _, i := range items {
			if err := s.vote(a, t, i, approve, strings.TrimSpace(comment)); err != nil {
				return err
			}
		}
		return nil
	})
}

// waitingFor are the items that the actor means; with EveryItem those that wait for him, and then at least one.
func (s *Service) waitingFor(a Actor, t *Ticket, item int) ([]int, error) {
	if item != EveryItem {
		_, err := hat(a, t, item)
		return []int{item}, err
	}
	var out []int
	var why error
	for i := range t.Items {
		if t.Items[i].State != StatePending {
			continue
		}
		_, err := hat(a, t, i)
		if err == nil {
			out = append(out, i)
		}
		why = err
	}
	switch {
	case len(out) > 0:
		return out, nil
	case why != nil:
		return nil, why
	}
	return nil, failf(CodeConflict, "The ticket is %s: there is nothing to decide.", t.State())
}

func (s *Service) vote(a Actor, t *Ticket, i int, approve bool, comment string) error {
	onBehalfOf, err := hat(a, t, i)
	if err != nil {
		return err
	}
	if approve {
		if err := standing(s.Catalog(), t, i, hats(a.ID, onBehalfOf)[0]); err != nil {
			return err
		}
	}
	return t.Vote(i, Vote{Person: a.ID, OnBehalfOf: onBehalfOf, Approve: approve, At: s.Now(), Comment: comment})
}

// Withdraw the items of a ticket that are pending.
func (s *Service) Withdraw(ctx context.Context, a Actor, number int64, reason string) (*Ticket, error) {
	return s.change(ctx, a, number, func(a Actor, t *Ticket) error {
		return t.Withdraw(a.ID, strings.TrimSpace(reason), s.Now())
	})
}

// Revoke an item's grant, or every one of the ticket.
func (s *Service) Revoke(ctx context.Context, a Actor, number int64, item int, reason string) (*Ticket, error) {
	return s.change(ctx, a, number, func(a Actor, t *Ticket) error {
		done := false
		for i := range t.Items {
			if item != i && (item != EveryItem || !t.Items[i].State.Grants()) {
				continue
			}
			if t.Items[i].State.Grants() && !MayDoItem(s.Catalog(), a, t, i).Revoke {
				return failf(CodeForbidden, "Only an owner of the resource or of the application, or the security team, can revoke.")
			}
			if err := t.Revoke(i, a.ID, strings.TrimSpace(reason), s.Now()); err != nil {
				return err
			}
			done = true
		}
		if !done {
			return failf(CodeConflict, "The ticket is %s: there is no grant to revoke.", t.State())
		}
		return nil
	})
}

// Comment on a ticket that the actor may see.
func (s *Service) Comment(ctx context.Context, a Actor, number int64, text string) (*Ticket, error) {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > MaxText {
		return nil, invalid("comment", "must have at most %d characters", MaxText)
	}
	return s.change(ctx, a, number, func(a Actor, t *Ticket) error { return t.Say(a.ID, text, s.Now()) })
}

// Tick does what time alone does: steps that waited too long, expiries, and warnings of them.
func (s *Service) Tick(ctx context.Context) error {
	now := s.Now()
	due, err := s.Store.List(ctx, Filter{DueBy: now})
	if err != nil {
		return err
	}
	for _, t := range due {
		if _, err := s.Apply(ctx, t.Number, func(t *Ticket) error { t.Tick(now); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// change checks that the actor may see the ticket, and may change anything at all, before the transition.
func (s *Service) change(ctx context.Context, a Actor, number int64, f func(Actor, *Ticket) error) (*Ticket, error) {
	a, err := s.Actor(ctx, a)
	if err != nil {
		return nil, err
	}
	return s.Apply(ctx, number, func(t *Ticket) error {
		if !MayDo(s.Catalog(), a, t).See {
			return NotFound()
		}
		if a.Auditor {
			return AuditorsOnlyRead()
		}
		return f(a, t)
	})
}

// Apply a transition on nobody's behalf, and tell about it.
func (s *Service) Apply(ctx context.Context, number int64, f func(*Ticket) error) (*Ticket, error) {
	changed, jobs := false, false
	t, err := s.Store.Update(ctx, number, func(t *Ticket) error {
		if err := f(t); err != nil {
			return err
		}
		changed, jobs = t.Dirty(), len(t.Jobs()) > 0
		return nil
	})
	if err != nil {
		return nil, err
	}
	if jobs {
		s.Wake()
	}
	if changed {
		s.OnChange(t)
	}
	return t, nil
}
