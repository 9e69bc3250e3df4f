package approval

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/tracing"
)

// Config is the configuration of a Service. All fields except Evidence, Workloads, Packages, OnChange, Requeue, OnCall, Builtin,
// LoginMaxAge and Tracer are required.
type Config struct {
	Store       TicketStore
	Delegations DelegationStore
	Catalog     func() *catalog.Catalog
	Host        Host
	// Evidence evaluates the observed flows. If it is nil, Enforce needs no evidence.
	Evidence Evidence
	// Workloads checks registrations of clients outside of the fleet. If it is nil, nobody can request one.
	Workloads Registrations
	// Packages stores access packages. If it is nil, nobody can publish or request one.
	Packages Packages
	Now      func() time.Time
	OnChange func(*Ticket) // called after each stored change
	Requeue  func()        // called after a stored change with a new job
	// OnCall looks up who is on call. If it is nil, this is never known.
	OnCall OnCall
	// Builtin defines the reminders and the timeout of the built-in chain.
	Builtin BuiltinTimeout
	// LoginMaxAge is how old the login of a session may be in which a person decides a ticket that is decided only in the portal; 0
	// means that it may have any age.
	LoginMaxAge time.Duration
	// Tracer records what happens to tickets. If it is nil, nothing is recorded.
	Tracer *tracing.Tracer
}

// Service implements what people can do with tickets.
type Service struct {
	Config
	compiler        compiler
	schedulesReadAt atomic.Int64 // when checkSchedules ran last, in microseconds since 1970; 0 before the first time
}

// NewService returns a Service after checking its configuration.
func NewService(c Config) (*Service, error) {
	if c.Store == nil || c.Delegations == nil || c.Catalog == nil || c.Host == nil || c.Now == nil {
		return nil, fmt.Errorf("approval service: stores, catalog, host and clock are required")
	}
	if err := c.Builtin.Validate(); err != nil {
		return nil, fmt.Errorf("approval service: built-in chain: %w", err)
	}
	if c.OnChange == nil {
		c.OnChange = func(*Ticket) {}
	}
	if c.Requeue == nil {
		c.Requeue = func() {}
	}
	return &Service{Config: c}, nil
}

// Actor returns the actor with the people for whom they may decide now, and with the source of who is on call.
func (s *Service) Actor(ctx context.Context, a Actor) (Actor, error) {
	now := s.Now()
	all, err := s.Config.Delegations.Delegations(ctx, DelegationFilter{To: a.ID, ActiveAt: now})
	if err != nil {
		return a, err
	}
	a.StandsFor, a.OnCall = standsFor(all, a.ID, now), s.OnCall
	return a, nil
}

// Get returns a ticket that the actor may see.
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

// Withdraw ends the pending items of a ticket.
func (s *Service) Withdraw(ctx context.Context, a Actor, number int64, reason string) (*Ticket, error) {
	reason, err := text("reason", reason)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, a, number, func(a Actor, t *Ticket) error { return t.Withdraw(a.ID, reason, s.Now()) })
}

// Comment adds a comment to a ticket that the actor may see.
func (s *Service) Comment(ctx context.Context, a Actor, number int64, comment string) (*Ticket, error) {
	comment, err := text("comment", comment)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, a, number, func(a Actor, t *Ticket) error { return t.Comment(a.ID, comment, s.Now()) })
}

// change applies a transition after checking that the actor may see the ticket and may change tickets.
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

// Apply applies a transition that no person makes, and calls OnChange.
func (s *Service) Apply(ctx context.Context, number int64, f func(*Ticket) error) (*Ticket, error) {
	changed, jobs := false, false
	traced := s.traceTransition(ctx)
	t, err := s.Store.Update(ctx, number, func(t *Ticket) error {
		if err := f(t); err != nil {
			return err
		}
		traced.addEvents(t)
		changed, jobs = t.Dirty(), len(t.Jobs()) > 0
		return nil
	})
	if err != nil {
		return nil, err
	}
	traced.end()
	if jobs {
		s.Requeue()
	}
	if changed {
		s.OnChange(t)
	}
	return t, nil
}
