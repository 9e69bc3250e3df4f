package approval

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/catalog"
)

// Plan checks a request and resolves the chain of each item, and writes nothing. A missing reason is no error here. What
// is wrong with one item is in the item; the error is about the request as a whole.
func (s *Service) Plan(ctx context.Context, a Actor, r Request) (Plan, error) {
	if a.Auditor {
		return Plan{}, AuditorsOnlyRead()
	}
	if r.Kind == "" {
		r.Kind = KindGrant
	}
	if len(r.Items) == 0 || len(r.Items) > MaxItems {
		return Plan{}, invalid("items", "A ticket has 1 to %d items.", MaxItems)
	}
	p := Plan{Kind: r.Kind}
	for i, it := range r.Items {
		x, err := s.planItem(ctx, a, it, "items["+strconv.Itoa(i)+"].")
		if err != nil {
			if CodeOf(err) == CodeUnavailable || CodeOf(err) == CodeStoreUnavailable || CodeOf(err) == "" {
				return Plan{}, err
			}
			x = PlanItem{Err: err}
		}
		p.Items = append(p.Items, x)
	}
	return p, nil
}

func (s *Service) planItem(ctx context.Context, a Actor, r RequestItem, path string) (PlanItem, error) {
	c := s.Catalog()
	item, resource, err := s.access(c, a, r, path)
	if err != nil {
		return PlanItem{}, err
	}
	if r.Duration != 0 && (r.Duration < MinDuration || r.Duration > MaxDuration) {
		return PlanItem{}, invalid(path+"durationSeconds", "Ask for at least 5 minutes and at most 366 days, or leave it out.")
	}
	if item.Steps, err = ResolveChain(c, a.ID, resource); err != nil {
		return PlanItem{}, err
	}
	draft := NewTicket(Draft{Kind: KindGrant, Requester: a.ID, Items: []Item{item}}, s.Now())
	p := PlanItem{Item: draft.Items[0]}
	p.Duplicate, err = s.Store.ClaimedBy(ctx, draft.Claims())
	return p, err
}

// Submit a request. The same idempotency key gives the same ticket again.
func (s *Service) Submit(ctx context.Context, a Actor, r Request) (*Ticket, error) {
	reason := strings.TrimSpace(r.Reason)
	if reason == "" || utf8.RuneCountInString(reason) > MaxText {
		return nil, invalid("reason", "Say why in 1 to %d characters: the approvers decide by it.", MaxText)
	}
	p, err := s.Plan(ctx, a, r)
	if err != nil {
		return nil, err
	}
	d := Draft{Kind: p.Kind, Requester: a.ID, Reason: reason, IdempotencyKey: r.IdempotencyKey, BreakGlass: r.BreakGlass}
	for _, it := range p.Items {
		if it.Err != nil {
			return nil, it.Err
		}
		d.Items = append(d.Items, it.Item)
	}
	t := NewTicket(d, s.Now())
	jobs := len(t.Jobs()) > 0
	stored, err := s.Store.Create(ctx, t)
	if err != nil {
		return nil, err
	}
	if !stored.same(d) {
		return nil, failf(CodeConflict, "The Idempotency-Key belongs to another request of yours (%s): use a new key.", stored.ID())
	}
	if jobs {
		s.Wake()
	}
	s.OnChange(stored)
	return stored, nil
}

// access checks what a grant is about.
func (s *Service) access(c *catalog.Catalog, a Actor, r RequestItem, path string) (Item, catalog.Entity, error) {
	var none catalog.Entity
	app, ok := c.Application(r.Application)
	if !ok {
		return Item{}, none, invalid(path+"application", "The catalog has no application %q.", r.Application)
	}
	if !c.Owns(a.ID, app) {
		return Item{}, none, failf(CodeForbidden, "Only an owner of %s can ask for its access: ask %s.", app.Title, ownerNames(c, app))
	}
	res, ok := c.Resource(r.Resource)
	if !ok {
		return Item{}, none, invalid(path+"resource", "The catalog has no resource %q.", r.Resource)
	}
	covered, err := s.Classes.SubjectCovered(app.Name)
	if err != nil {
		return Item{}, none, err
	}
	if !covered {
		return Item{}, none, invalid(path+"application", "No SubjectClass covers %s, so no member could recognise it: ask an administrator for a class.", app.Name)
	}
	known, ok, err := s.Classes.ResourceActions(res.Name)
	if err != nil {
		return Item{}, none, err
	}
	if !ok {
		return Item{}, none, invalid(path+"resource", "No ResourceClass covers %s, so nothing could enforce it: ask an administrator for a class.", res.Name)
	}
	actions := slices.Compact(slices.Sorted(slices.Values(r.Actions)))
	if len(actions) == 0 {
		return Item{}, none, invalid(path+"actions", "Name at least one action: %s.", strings.Join(known, ", "))
	}
	for _, x := range actions {
		if !slices.Contains(known, x) {
			return Item{}, none, invalid(path+"actions", "%s has no action %q: it has %s.", res.Title, x, strings.Join(known, ", "))
		}
	}
	return Item{Application: app.ID, ApplicationName: app.Name, Resource: res.ID, ResourceName: res.Name, Actions: actions, Duration: r.Duration}, res, nil
}

func ownerNames(c *catalog.Catalog, e catalog.Entity) string {
	names := make([]string, 0, len(e.Owners))
	for _, o := range e.Owners {
		names = append(names, c.OwnerName(o))
	}
	return strings.Join(names, ", ")
}
