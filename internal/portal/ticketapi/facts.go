package ticketapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/change"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	listFacts = "ticket-facts"
	// defaultFactItems and maxFactItems are the number of items of a page, each of which needs several queries.
	defaultFactItems, maxFactItems = 10, 20
	// factNames is the maximum number of names in a list of facts; the total is reported beside it.
	factNames = 10
	// earlierShown is the number of earlier tickets that are returned, and earlierRead the number that is read to count them.
	earlierShown, earlierRead = 5, 50
)

// ListTicketFacts implements openapi.StrictServerInterface.
func (a *API) ListTicketFacts(ctx context.Context, r openapi.ListTicketFactsRequestObject) (openapi.ListTicketFactsResponseObject, error) {
	limit := defaultFactItems
	if l := r.Params.Limit; l != nil {
		if *l < 1 || *l > maxFactItems {
			return nil, core.InvalidParameter("limit", message.FieldRange(1, maxFactItems))
		}
		limit = *l
	}
	t, err := a.Ticket(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	if !seesFacts(c, who, t) {
		return nil, &approval.Error{Code: approval.CodeForbidden, Message: message.AccessTicketFacts()}
	}
	start, err := core.DecodeNumberCursor(listFacts, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	if start > int64(len(t.Items)) {
		return nil, core.InvalidCursor()
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	now := a.Now().UTC()
	out := openapi.TicketFacts{Items: []openapi.ItemFacts{}, Since: now.Add(-a.EvidenceWindow), Until: now}
	end := min(int(start)+limit, len(t.Items))
	if end < len(t.Items) {
		out.NextCursor = core.EncodeNumberCursor(listFacts, int64(end))
	}
	page := make([]*factItem, 0, limit)
	for i := int(start); i < end; i++ {
		f := &factItem{Item: &t.Items[i], kind: t.Kind, rights: factRightsOf(c, who, t, i), out: openapi.ItemFacts{Position: i}}
		if err := a.storedFacts(ctx, c, who, snap, t, f, now); err != nil {
			return nil, err
		}
		page = append(page, f)
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	err = a.observedFacts(limited, c, who, snap, page, out.Since, now)
	out.FlowsAvailable = err == nil
	switch {
	case err == nil:
	case errors.Is(err, audit.ErrUnavailable):
		out.Message = new(message.FlowsUnavailable())
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		out.Message = new(message.ImpactReplayTooSlow())
	default:
		return nil, err
	}
	for _, f := range page {
		if err != nil { // facts of a part of the flows would look like all of them
			f.out.Observed, f.out.Use = nil, nil
			if f.out.Affected != nil {
				f.out.Affected.Clients, f.out.Affected.Examined = nil, 0
			}
			if s := f.out.Statement; s != nil {
				s.Observed, s.Effect = nil, nil
			}
			if w := f.out.Workload; w != nil {
				w.Observed = nil
			}
		}
		out.Items = append(out.Items, f.out)
	}
	return openapi.ListTicketFacts200JSONResponse(out), nil
}

// factItem is an item whose facts are collected.
type factItem struct {
	*approval.Item
	kind   approval.Kind
	rights factRights
	// since is when the access was granted whose use is shown; zero if the item continues or ends none.
	since time.Time
	// affected are the resources that a change of a class concerns, at most maxReplayed of them.
	affected []string
	// scope is set for a statement, and workload for a registration of clients.
	scope    *statementScope
	workload *workloadScope
	out      openapi.ItemFacts
}

// hide says that a part of the facts is not shown to the caller.
func (f *factItem) hide(part openapi.ItemFactsHidden) {
	if !slices.Contains(core.Value(f.out.Hidden), part) {
		f.out.Hidden = new(append(core.Value(f.out.Hidden), part))
	}
}

// factRights are the parts of the facts about an item that a caller may see.
type factRights struct {
	// clients are the subjects that use the resource, and reached the resources that the application uses. Of a statement they are about all
	// resources, and all applications, that it covers.
	clients, reached bool
	// part is what concerns those of the resources of a statement that the caller owns.
	part bool
	// pair are the earlier tickets of the application and the resource, and the use of the access.
	pair bool
	// change is what a change of a class, a version of a package or a registration of clients concerns.
	change bool
}

func (r factRights) any() bool { return r.clients || r.reached || r.part || r.pair || r.change }

// seesFacts reports whether a caller may see a part of the facts about one of the items of a ticket. Unlike factRightsOf, it reads nothing that
// a statement covers, because it is asked about items that are not on the page, too.
func seesFacts(c *catalog.Catalog, who approval.Actor, t *approval.Ticket) bool {
	if who.Security || who.Auditor {
		return true
	}
	for i := range t.Items {
		it := &t.Items[i]
		switch {
		case approval.DecidesItem(who, t, i):
			return true
		case it.Scope != nil:
			if it.Scope.OwnedInPart(c, who.ID) {
				return true
			}
		case ownsPair(c, who, it):
			return true
		}
	}
	return false
}

// ownsPair reports whether a caller may see the connections of the resource of an item, or owns its application.
func ownsPair(c *catalog.Catalog, who approval.Actor, it *approval.Item) bool {
	return it.ResourceName != "" && views.MayInspectName(c, who, it.ResourceName) ||
		it.ApplicationName != "" && views.OwnsApplication(c, who, it.ApplicationName)
}

// factRightsOf returns what a caller may see of an item. Those who decide it see everything until it is decided, because they need not own
// anything of it; others see what the pages of the resource and of the application show them.
func factRightsOf(c *catalog.Catalog, who approval.Actor, t *approval.Ticket, i int) factRights {
	it := &t.Items[i]
	if who.Security || who.Auditor || approval.DecidesItem(who, t, i) {
		return factRights{clients: true, reached: true, part: true, pair: true, change: true}
	}
	if it.Scope != nil {
		return statementRights(c, who, it.Scope)
	}
	r := factRights{
		clients: it.ResourceName != "" && views.MayInspectName(c, who, it.ResourceName),
		reached: it.ApplicationName != "" && views.OwnsApplication(c, who, it.ApplicationName),
	}
	r.pair = r.clients || r.reached
	return r
}

// storedFacts adds the facts that need no flows.
func (a *API) storedFacts(
	ctx context.Context,
	c *catalog.Catalog,
	who approval.Actor,
	snap *policy.Snapshot,
	t *approval.Ticket,
	f *factItem,
	now time.Time,
) error {
	if f.ResourceName != "" {
		f.out.Resource = new(refOf(c, f.Resource, f.ResourceName))
		f.out.Sensitivity = sensitivityOf(c, f.ResourceName)
		if e, ok := c.ByName(f.ResourceName); ok {
			f.out.Owners = new(views.Owners(c, e))
		}
		if p := a.Host.Protection(f.ResourceName); p != nil {
			f.out.Mode = modeOf(p.Spec.Mode)
		}
		if f.rights.clients {
			f.out.Clients = clientsOf(c, snap, f.ResourceName, now)
		} else {
			f.hide(openapi.ItemFactsHiddenClients)
		}
	}
	if f.ApplicationName != "" {
		f.out.Application = new(refOf(c, f.Application, f.ApplicationName))
		if f.rights.reached {
			f.out.Reached = reachedBy(c, snap, f.ApplicationName, now)
		} else {
			f.hide(openapi.ItemFactsHiddenReached)
		}
	}
	if kinds := alike(t.Kind, f.Item); kinds != nil {
		if !f.rights.pair {
			f.hide(openapi.ItemFactsHiddenEarlier)
		} else if err := a.earlierTickets(ctx, c, who, t.Number, kinds, f); err != nil {
			return err
		}
	}
	if changesClass(*f.Item) {
		if !f.rights.change {
			f.hide(openapi.ItemFactsHiddenAffected)
		} else if err := a.affectedBy(c, snap, f); err != nil {
			return err
		}
	}
	switch {
	case f.Scope != nil:
		if err := a.statementFacts(ctx, c, who, snap, t.Number, f); err != nil {
			return err
		}
	case f.Change != nil && f.Change.Kind == approval.ObjectAccessPackage:
		if err := a.packageFacts(ctx, c, f); err != nil {
			return err
		}
	case f.Change != nil && f.Change.Kind == approval.ObjectExternalWorkload:
		if err := a.workloadFacts(c, snap, f, now); err != nil {
			return err
		}
	}
	since, err := a.grantedSince(ctx, t, f.Item)
	if err != nil || since.IsZero() {
		return err
	}
	if !f.rights.pair {
		f.hide(openapi.ItemFactsHiddenUse)
		return nil
	}
	f.since = since
	if earliest := now.Add(-views.LastUseWindow); since.Before(earliest) {
		f.since = earliest
	}
	return nil
}

// sensitivityOf returns the sensitivity of a resource, or nil if the catalog does not have it.
func sensitivityOf(c *catalog.Catalog, name string) *openapi.Sensitivity {
	e, ok := c.ByName(name)
	if !ok || e.Sensitivity == "" {
		return nil
	}
	return new(openapi.Sensitivity(e.Sensitivity))
}

// inForce reports whether a grant allows something now. Grants of a resource in Observe count, because they count as soon as it is enforced.
func inForce(g policy.Grant, now time.Time) bool {
	return g.Effect == policy.Allow && !g.NotBefore.After(now)
}

// clientsOf returns the subjects of the allows about a resource.
func clientsOf(c *catalog.Catalog, snap *policy.Snapshot, resource string, now time.Time) *openapi.ClientFacts {
	refs := map[string]openapi.CatalogRef{}
	for _, g := range snap.WhoCanReach(resource, now) {
		if _, known := refs[g.Subject]; !known && inForce(g, now) {
			refs[g.Subject] = views.Ref(c, g.Subject)
		}
	}
	items := make([]openapi.CatalogRef, 0, len(refs))
	for _, r := range refs {
		items = append(items, r)
	}
	slices.SortFunc(items, byTitle)
	return &openapi.ClientFacts{Total: len(items), Items: slices.Clone(items[:min(len(items), factNames)])}
}

func byTitle(a, b openapi.CatalogRef) int {
	return cmp.Or(cmp.Compare(a.Title, b.Title), cmp.Compare(a.Name, b.Name))
}

// sensitivityRank orders resources: the most sensitive ones are first, and those whose sensitivity is not known last.
var sensitivityRank = map[openapi.Sensitivity]int{openapi.SensitivityHigh: 3, openapi.SensitivityMedium: 2, openapi.SensitivityLow: 1}

// reachedBy returns the resources of the allows about an application.
func reachedBy(c *catalog.Catalog, snap *policy.Snapshot, application string, now time.Time) *openapi.ReachedFacts {
	return reachedOf(c, snap.WhatCanReach(application, now), now)
}

// reachedOf returns the resources of those of some grants that are in force. A wildcard counts as one resource, because what it covers changes.
func reachedOf(c *catalog.Catalog, grants []policy.Grant, now time.Time) *openapi.ReachedFacts {
	found := map[string]*openapi.ReachedResource{}
	for _, g := range grants {
		if !inForce(g, now) {
			continue
		}
		byAnyone := g.Subject == anyone
		if x := found[g.Resource]; x != nil {
			x.Anyone = x.Anyone && byAnyone
			continue
		}
		found[g.Resource] = &openapi.ReachedResource{Resource: views.Ref(c, g.Resource), Sensitivity: sensitivityOf(c, g.Resource), Anyone: byAnyone}
	}
	items := make([]openapi.ReachedResource, 0, len(found))
	for _, x := range found {
		items = append(items, *x)
	}
	slices.SortFunc(items, func(x, y openapi.ReachedResource) int {
		return cmp.Or(sensitivityRank[core.Value(y.Sensitivity)]-sensitivityRank[core.Value(x.Sensitivity)], byTitle(x.Resource, y.Resource))
	})
	return &openapi.ReachedFacts{Total: len(items), Items: slices.Clone(items[:min(len(items), factNames)])}
}

// alike returns the kinds of the tickets that an item is compared with; nil if none are.
func alike(kind approval.Kind, it *approval.Item) []approval.Kind {
	switch {
	case it.Resource == "":
		return nil
	case it.Application != "":
		return []approval.Kind{approval.KindGrant, approval.KindExtend, approval.KindRevoke}
	case kind == approval.KindMode, kind == approval.KindOnboard, kind == approval.KindOffboard:
		return []approval.Kind{approval.KindMode, approval.KindOnboard, approval.KindOffboard}
	}
	return nil
}

// earlierTickets adds the tickets before a ticket about the same application and resource. Of those that the caller may not open, it returns
// only their states and dates.
func (a *API) earlierTickets(ctx context.Context, c *catalog.Catalog, who approval.Actor, number int64, kinds []approval.Kind, f *factItem) error {
	list, err := a.Tickets.Store.List(core.RequestContext(ctx), approval.Filter{Kinds: kinds, Application: f.Application, Resource: f.Resource,
		After: approval.Cursor{Number: number}, Limit: earlierRead + 1, OmitEvents: true})
	if err != nil {
		return err
	}
	out := &openapi.EarlierFacts{Items: []openapi.EarlierTicket{}, More: len(list) > earlierRead}
	for _, t := range list[:min(len(list), earlierRead)] {
		i := slices.IndexFunc(t.Items, func(it approval.Item) bool {
			return it.ApplicationName == f.ApplicationName && it.ResourceName == f.ResourceName
		})
		if i < 0 { // the catalog has assigned an id to another entity since
			continue
		}
		out.Total++
		if len(out.Items) < earlierShown {
			out.Items = append(out.Items, earlierTicket(c, who, t, i))
		}
	}
	f.out.Earlier = out
	return nil
}

// earlierTicket returns the view of an item of an earlier ticket.
func earlierTicket(c *catalog.Catalog, who approval.Actor, t *approval.Ticket, i int) openapi.EarlierTicket {
	it := &t.Items[i]
	out := openapi.EarlierTicket{Kind: openapi.TicketKind(t.Kind), State: openapi.TicketState(it.State), CreatedAt: t.CreatedAt.UTC()}
	var decided time.Time
	var deciders []string
	steps := it.Steps
	if it.Review != nil {
		steps = append(slices.Clone(steps), *it.Review)
	}
	for _, s := range steps {
		for _, v := range s.Votes {
			if v.At.After(decided) {
				decided = v.At
			}
			if !slices.Contains(deciders, v.Person) {
				deciders = append(deciders, v.Person)
			}
		}
	}
	out.DecidedAt = views.Time(decided)
	if approval.MayDoItem(c, who, t, i).See {
		out.Ticket = new(t.ID())
		out.Deciders = new(people(c, who.ID, deciders[max(0, len(deciders)-earlierShown):]))
	}
	return out
}

// grantedSince returns when the access was granted that an item continues, ends, or has given; zero if there is none. Of the other ticket
// only this instant is used.
func (a *API) grantedSince(ctx context.Context, t *approval.Ticket, it *approval.Item) (time.Time, error) {
	if it.ApplicationName == "" || it.ResourceName == "" || it.Change != nil {
		return time.Time{}, nil
	}
	since := it.Earlier.Since
	if since.IsZero() && t.Kind.Access() {
		since = it.GrantedAt
	}
	if !since.IsZero() || it.Target == nil {
		return since, nil
	}
	granted, err := a.Tickets.Store.Get(core.RequestContext(ctx), it.Target.Ticket)
	switch {
	case approval.CodeOf(err) == approval.CodeNotFound:
		return since, nil
	case err != nil || it.Target.Item < 0 || it.Target.Item >= len(granted.Items):
		return since, err
	}
	of := granted.Items[it.Target.Item]
	if since = of.Earlier.Since; since.IsZero() {
		since = of.GrantedAt
	}
	if since.IsZero() {
		since = views.GrantedAt(granted, it.Target.Item)
	}
	return since, nil
}

// affectedBy adds the resources that a change of a class concerns.
func (a *API) affectedBy(c *catalog.Catalog, snap *policy.Snapshot, f *factItem) error {
	in, err := a.Input()
	if err != nil {
		return err
	}
	_, _, resources := change.Snapshots(snap, in, f.kind, []approval.Item{*f.Item})
	f.affected = resources[:min(len(resources), maxReplayed)]
	first := make([]openapi.CatalogRef, 0, factNames)
	for _, name := range resources[:min(len(resources), factNames)] {
		first = append(first, views.Ref(c, name))
	}
	f.out.Affected = &openapi.AffectedFacts{Resources: len(resources), Examined: len(f.affected), FirstResources: &first}
	return nil
}

// hasName reports whether a space-separated list of names contains a name.
func hasName(names, name string) bool {
	return slices.Contains(strings.Fields(names), name)
}
