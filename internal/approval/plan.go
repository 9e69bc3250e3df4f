package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// Plan checks a request and resolves the chain of each item without writing anything. A missing reason is no error here.
// Errors of single items are in the items; the returned error is about the request as a whole.
func (s *Service) Plan(ctx context.Context, a Actor, r Request) (Plan, error) {
	if a.Auditor {
		return Plan{}, AuditorsOnlyRead()
	}
	a, err := s.Actor(ctx, a)
	if err != nil {
		return Plan{}, err
	}
	return s.plan(ctx, a, r)
}

// WhatIf is like Plan for another requester. It shows the security team and auditors who would have to approve.
func (s *Service) WhatIf(ctx context.Context, a Actor, r Request, as string) (Plan, error) {
	if !a.Security && !a.Auditor {
		return Plan{}, fail(CodeForbidden, message.RequestAsAnother())
	}
	c := s.Catalog()
	if _, ok := c.Person(as); !ok {
		return Plan{}, invalid("as", message.RequestUnknownPerson(as))
	}
	other := Actor{ID: as, Security: c.InGroup(as, catalog.GroupSecurity), Auditor: c.InGroup(as, catalog.GroupAuditors)}
	if other.Auditor {
		return Plan{}, AuditorsOnlyRead()
	}
	return s.plan(ctx, other, r)
}

// planner makes the plan of one request.
type planner struct {
	*Service
	ctx     context.Context
	c       *catalog.Catalog
	actor   Actor
	request Request
}

func (s *Service) plan(ctx context.Context, a Actor, r Request) (Plan, error) {
	if r.Kind == "" {
		r.Kind = KindGrant
	}
	if err := r.check(a); err != nil {
		return Plan{}, err
	}
	x := planner{Service: s, ctx: ctx, c: s.Catalog(), actor: a, request: r}
	if err := x.setStatementKind(); err != nil {
		return Plan{}, err
	}
	r = x.request
	if r.Package != nil {
		var err error
		if r.Items, err = x.packageItems(); err != nil {
			return Plan{}, err
		}
	}
	p := Plan{Kind: r.Kind}
	claimed := map[Claim]int{}
	for i, it := range r.Items {
		if err := ctx.Err(); err != nil { // each item is compiled, which reads nothing that ends with the context
			return Plan{}, fmt.Errorf("plan item %d: %w", i+1, err)
		}
		item, err := x.item(it, fmt.Sprintf("items[%d].", i), claimed, i)
		if r.Package != nil && held(err) {
			continue
		}
		if err != nil {
			if !aboutItem(err) {
				return Plan{}, err
			}
			item = PlanItem{Item: item.Item, Err: err}
		}
		p.Items = append(p.Items, item)
	}
	if len(p.Items) == 0 {
		return Plan{}, fail(CodeConflict, message.AccessPackageHeld(r.Items[0].Application))
	}
	if r.Kind == KindGrant && !slices.ContainsFunc(p.Items, func(it PlanItem) bool { return it.Covered == nil }) {
		p.Kind = KindExtend
	}
	return p, nil
}

// check returns an error if the request is invalid, whatever its items are about.
func (r *Request) check(a Actor) error {
	switch {
	case !r.Kind.Valid():
		return invalid("kind", message.RequestUnknownKind(string(r.Kind)))
	case len(r.Items) == 0 || len(r.Items) > MaxItems:
		return invalid("items", message.RequestItemCount(MaxItems))
	case r.BreakGlass && r.Kind != KindGrant:
		return invalid("breakGlass", message.RequestBreakGlassAccessOnly())
	case r.Adopt && r.Kind != KindGrant:
		return invalid("adopt", message.AdoptSeenOnly())
	case IsProgram(a.ID) && (r.Kind != KindGrant || r.Adopt || r.BreakGlass || r.Override != ""):
		return fail(CodeForbidden, message.RequestProgramGrantOnly())
	case r.Adopt && r.BreakGlass:
		return invalid("adopt", message.AdoptNotByBreakGlass())
	}
	return boundRegistrations(*r)
}

// aboutItem reports whether an error is about an item, and not about the host, the store or the program.
func aboutItem(err error) bool {
	switch CodeOf(err) {
	case CodeForbidden, CodeNotFound, CodeInvalid, CodeConflict, CodeNoApprover, CodeEvidence, CodeGuard:
		return true
	}
	return false
}

// item plans one item.
func (x *planner) item(r RequestItem, path string, claimed map[Claim]int, at int) (PlanItem, error) {
	var p PlanItem
	var err error
	kind := x.request.Kind
	switch kind {
	case KindExtend:
		p.Item, err = x.extension(r, path)
	case KindGrant:
		p, err = x.grant(r, path)
	case KindRevoke:
		p.Item, err = x.revocation(r, path)
	case KindStatement:
		p.Item, err = x.statement(r, path)
	case KindPackage:
		p.Item, err = x.publication(r, path)
	default:
		p.Item, err = x.change(r, path)
	}
	if err != nil {
		return p, err
	}
	if p.Covered != nil {
		kind = KindExtend
	}
	draft := &Ticket{Kind: kind, Items: []Item{p.Item}}
	draft.Items[0].State = StatePending
	for _, c := range draft.Claims() {
		if other, twice := claimed[c]; twice {
			return PlanItem{}, invalid(strings.TrimSuffix(path, "."), message.RequestItemTwice(other+1))
		}
		claimed[c] = at
	}
	if p.Duplicate, err = x.Store.ClaimedBy(x.ctx, draft.Claims()); err != nil {
		return PlanItem{}, err
	}
	if p.Shown, err = x.shown(kind, p.Item); err != nil {
		return PlanItem{}, err
	}
	if p.Item, err = x.addChain(kind, p.Item); err != nil {
		return p, err // includes the approval policy that refuses it
	}
	return x.startChain(kind, p), nil
}

// addChain adds the chain to an item.
func (x *planner) addChain(kind Kind, it Item) (Item, error) {
	return x.chain(x.c, kind, x.actor.ID, x.request.BreakGlass, it, x.Now())
}

// startChain sets the chain to its state right after the submission.
func (x *planner) startChain(kind Kind, p PlanItem) PlanItem {
	p.Item = NewTicket(Draft{Kind: kind, Requester: x.actor.ID, BreakGlass: x.request.BreakGlass, Items: []Item{p.Item}}, x.Now()).Items[0]
	return p
}

// Submit stores the ticket of a request. The same idempotency key returns the same ticket again.
func (s *Service) Submit(ctx context.Context, a Actor, r Request) (*Ticket, error) {
	reason := strings.TrimSpace(r.Reason)
	if reason == "" || utf8.RuneCountInString(reason) > MaxText {
		return nil, invalid("reason", message.RequestReasonLength(MaxText))
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
	return s.submit(ctx, d)
}

// submit stores the ticket of a checked request.
func (s *Service) submit(ctx context.Context, d Draft) (*Ticket, error) {
	t := NewTicket(d, s.Now())
	jobs := len(t.Jobs()) > 0
	stored, err := s.create(ctx, t)
	if err != nil {
		return nil, err
	}
	if !stored.same(d) {
		return nil, fail(CodeConflict, message.RequestKeyOfAnother(stored.ID()))
	}
	if jobs {
		s.Requeue()
	}
	s.OnChange(stored)
	return stored, nil
}
