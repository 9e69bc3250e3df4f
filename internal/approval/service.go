package approval

import (
	"context"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/catalog"
)

// Config of a Service. All fields are required but Evidence, OnChange and Wake.
type Config struct {
	Store   Store
	Catalog func() *catalog.Catalog
	Host    Host
	// Evidence is what was seen of resources; nil: nothing is asked of it, and Enforce needs none.
	Evidence Evidence
	Now      func() time.Time
	OnChange func(*Ticket) // after each stored change
	Wake     func()        // after a stored change that brought a job
}

// Service is what people do with tickets.
type Service struct {
	Config
	compiler compiler
}

// NewService checks its configuration.
func NewService(c Config) (*Service, error) {
	if c.Store == nil || c.Catalog == nil || c.Host == nil || c.Now == nil {
		return nil, fmt.Errorf("approval service: store, catalog, host and clock are required")
	}
	if c.OnChange == nil {
		c.OnChange = func(*Ticket) {}
	}
	if c.Wake == nil {
		c.Wake = func() {}
	}
	return &Service{Config: c}, nil
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

// Withdraw the items of a ticket that are pending.
func (s *Service) Withdraw(ctx context.Context, a Actor, number int64, reason string) (*Ticket, error) {
	reason, err := text("reason", reason)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, a, number, func(a Actor, t *Ticket) error { return t.Withdraw(a.ID, reason, s.Now()) })
}

// Comment on a ticket that the actor may see.
func (s *Service) Comment(ctx context.Context, a Actor, number int64, said string) (*Ticket, error) {
	said, err := text("comment", said)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, a, number, func(a Actor, t *Ticket) error { return t.Say(a.ID, said, s.Now()) })
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
