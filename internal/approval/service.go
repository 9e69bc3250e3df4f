package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/catalog"
)

// Limits of a request, as api/openapi.yaml states them.
const (
	minDuration = 5 * time.Minute
	maxDuration = 366 * 24 * time.Hour
	maxText     = 2000
)

// Classes answers what can be asked for; false: no class covers the name.
type Classes interface {
	// ResourceActions are the actions of the resource's class. The error says that the host cluster is not known yet.
	ResourceActions(resource string) ([]string, bool, error)
	// SubjectCovered tells whether a subject class covers the application.
	SubjectCovered(application string) (bool, error)
}

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

// Request is what somebody asks for, by catalog ids.
type Request struct {
	Application, Resource string
	Actions               []string
	Reason                string
	Duration              time.Duration // 0: until revoked
	IdempotencyKey        string
}

// Plan is a checked request: what a ticket for it would be.
type Plan struct {
	Item      Item
	Steps     []Step
	Duplicate int64 // a ticket under way about the same; 0: none
}

// Plan checks a request and resolves its chain, and writes nothing. A missing reason is no error here.
func (s *Service) Plan(ctx context.Context, a Actor, r Request) (Plan, error) {
	c := s.Catalog()
	if a.Auditor {
		return Plan{}, failf(CodeForbidden, "Auditors read everything and change nothing.")
	}
	item, resource, err := s.item(c, a, r)
	if err != nil {
		return Plan{}, err
	}
	if r.Duration != 0 && (r.Duration < minDuration || r.Duration > maxDuration) {
		return Plan{}, invalid("durationSeconds", "Ask for at least 5 minutes and at most 366 days, or leave it out.")
	}
	steps, err := ResolveChain(c, a.ID, resource)
	if err != nil {
		return Plan{}, err
	}
	steps[0].State = StepCurrent
	for i := range steps[1:] {
		steps[i+1].State = StepWaiting
	}
	p := Plan{Item: item, Steps: steps}
	p.Duplicate, err = s.Store.ClaimedBy(ctx, (&Ticket{State: StatePending, Items: []Item{item}}).Claims())
	return p, err
}

// Submit a request. The same idempotency key gives the same ticket again.
func (s *Service) Submit(ctx context.Context, a Actor, r Request) (*Ticket, error) {
	reason := strings.TrimSpace(r.Reason)
	if reason == "" || len([]rune(reason)) > maxText {
		return nil, invalid("reason", "Say why in 1 to %d characters: the approvers decide by it.", maxText)
	}
	p, err := s.Plan(ctx, a, r)
	if err != nil {
		return nil, err
	}
	t := NewTicket(a.ID, reason, r.IdempotencyKey, r.Duration, []Item{p.Item}, p.Steps, s.Now())
	stored, err := s.Store.Create(ctx, t)
	if err != nil {
		return nil, err
	}
	s.OnChange(stored)
	return stored, nil
}

func (s *Service) item(c *catalog.Catalog, a Actor, r Request) (Item, catalog.Entity, error) {
	var none catalog.Entity
	app, ok := c.Application(r.Application)
	if !ok {
		return Item{}, none, invalid("items[0].application", "The catalog has no application %q.", r.Application)
	}
	if !c.Owns(a.ID, app) {
		return Item{}, none, failf(CodeForbidden, "Only an owner of %s can ask for its access: ask %s.", app.Title, ownerNames(c, app))
	}
	res, ok := c.Resource(r.Resource)
	if !ok {
		return Item{}, none, invalid("items[0].resource", "The catalog has no resource %q.", r.Resource)
	}
	covered, err := s.Classes.SubjectCovered(app.Name)
	if err != nil {
		return Item{}, none, err
	}
	if !covered {
		return Item{}, none, invalid("items[0].application", "No SubjectClass covers %s, so no member could recognise it: ask an administrator for a class.", app.Name)
	}
	known, ok, err := s.Classes.ResourceActions(res.Name)
	if err != nil {
		return Item{}, none, err
	}
	if !ok {
		return Item{}, none, invalid("items[0].resource", "No ResourceClass covers %s, so nothing could enforce it: ask an administrator for a class.", res.Name)
	}
	actions := slices.Compact(slices.Sorted(slices.Values(r.Actions)))
	if len(actions) == 0 {
		return Item{}, none, invalid("items[0].actions", "Name at least one action: %s.", strings.Join(known, ", "))
	}
	for _, x := range actions {
		if !slices.Contains(known, x) {
			return Item{}, none, invalid("items[0].actions", "%s has no action %q: it has %s.", res.Title, x, strings.Join(known, ", "))
		}
	}
	return Item{Application: app.ID, ApplicationName: app.Name, Resource: res.ID, ResourceName: res.Name, Actions: actions}, res, nil
}

func ownerNames(c *catalog.Catalog, e catalog.Entity) string {
	names := make([]string, 0, len(e.Owners))
	for _, o := range e.Owners {
		names = append(names, c.OwnerName(o))
	}
	return strings.Join(names, ", ")
}

// Get a ticket that the actor may see.
func (s *Service) Get(ctx context.Context, a Actor, number int64) (*Ticket, error) {
	t, err := s.Store.Get(ctx, number)
	if err != nil {
		return nil, err
	}
	if !MayDo(s.Catalog(), a, t).See {
		return nil, NotFound()
	}
	return t, nil
}

// Decide the step that waits, as it was in the version that the actor saw.
func (s *Service) Decide(ctx context.Context, a Actor, number, version int64, approve bool, comment string) (*Ticket, error) {
	return s.change(ctx, a, number, func(t *Ticket) error {
		if t.Version != version {
			return failf(CodeStale, "The ticket changed since you looked (it is %s now): look again, then decide.", t.State)
		}
		if approve {
			return t.Approve(a.ID, strings.TrimSpace(comment), s.Now())
		}
		return t.Reject(a.ID, strings.TrimSpace(comment), s.Now())
	})
}

// Withdraw a pending ticket.
func (s *Service) Withdraw(ctx context.Context, a Actor, number int64, reason string) (*Ticket, error) {
	return s.change(ctx, a, number, func(t *Ticket) error {
		return t.Withdraw(a.ID, strings.TrimSpace(reason), s.Now())
	})
}

// Revoke a grant.
func (s *Service) Revoke(ctx context.Context, a Actor, number int64, reason string) (*Ticket, error) {
	return s.change(ctx, a, number, func(t *Ticket) error {
		if t.State.Grants() && !MayDo(s.Catalog(), a, t).Revoke {
			return failf(CodeForbidden, "Only an owner of the resource or of the application, or the security team, can revoke.")
		}
		return t.Revoke(a.ID, strings.TrimSpace(reason), s.Now())
	})
}

// Expire ends the grants whose time has come.
func (s *Service) Expire(ctx context.Context) error {
	now := s.Now()
	due, err := s.Store.List(ctx, Filter{ExpiredBy: now, States: []State{StateApproved, StateApplying, StateEffective, StateFailed}})
	if err != nil {
		return err
	}
	for _, t := range due {
		if _, err := s.Apply(ctx, t.Number, func(t *Ticket) error { t.Expire(now); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// change checks that the actor may see the ticket, and may change anything at all, before the transition.
func (s *Service) change(ctx context.Context, a Actor, number int64, f func(*Ticket) error) (*Ticket, error) {
	return s.Apply(ctx, number, func(t *Ticket) error {
		if !MayDo(s.Catalog(), a, t).See {
			return NotFound()
		}
		if a.Auditor {
			return failf(CodeForbidden, "Auditors read everything and change nothing.")
		}
		return f(t)
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
