package ticketapi

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
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
	fr, err := a.newFactsReader(ctx, t)
	if err != nil {
		return nil, err
	}
	start, err := core.DecodeNumberCursor(listFacts, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	if start > int64(len(t.Items)) {
		return nil, core.InvalidCursor()
	}
	end := min(int(start)+limit, len(t.Items))
	out, err := fr.facts(ctx, int(start), end)
	if err != nil {
		return nil, err
	}
	if end < len(t.Items) {
		out.NextCursor = core.EncodeNumberCursor(listFacts, int64(end))
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

// dropObserved removes the facts that come from flows: facts of a part of the flows would look like all of them.
func (f *factItem) dropObserved() {
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
func (fr *factsReader) storedFacts(ctx context.Context, f *factItem) error {
	if f.ResourceName != "" {
		f.out.Resource = new(refOf(fr.catalog, f.Resource, f.ResourceName))
		f.out.Sensitivity = sensitivityOf(fr.catalog, f.ResourceName)
		if e, ok := fr.catalog.ByName(f.ResourceName); ok {
			f.out.Owners = new(views.Owners(fr.catalog, e))
		}
		if p := fr.api.Host.Protection(f.ResourceName); p != nil {
			f.out.Mode = modeOf(p.Spec.Mode)
		}
		if f.rights.clients {
			f.out.Clients = clientsOf(fr.catalog, fr.snap, f.ResourceName, fr.until)
		} else {
			f.hide(openapi.ItemFactsHiddenClients)
		}
	}
	if f.ApplicationName != "" {
		f.out.Application = new(refOf(fr.catalog, f.Application, f.ApplicationName))
		if f.rights.reached {
			f.out.Reached = reachedBy(fr.catalog, fr.snap, f.ApplicationName, fr.until)
		} else {
			f.hide(openapi.ItemFactsHiddenReached)
		}
	}
	if kinds := alike(fr.ticket.Kind, f.Item); kinds != nil {
		if !f.rights.pair {
			f.hide(openapi.ItemFactsHiddenEarlier)
		} else if err := fr.earlierTickets(ctx, kinds, f); err != nil {
			return err
		}
	}
	if views.ChangesClass(f.Item) {
		if !f.rights.change {
			f.hide(openapi.ItemFactsHiddenAffected)
		} else if err := fr.affectedBy(f); err != nil {
			return err
		}
	}
	switch {
	case f.Scope != nil:
		if err := fr.statementFacts(ctx, f); err != nil {
			return err
		}
	case f.Change != nil && f.Change.Kind == approval.ObjectAccessPackage:
		if err := fr.packageFacts(ctx, f); err != nil {
			return err
		}
	case f.Change != nil && f.Change.Kind == approval.ObjectExternalWorkload:
		if err := fr.workloadFacts(f); err != nil {
			return err
		}
	}
	since, err := fr.grantedSince(ctx, f.Item)
	if err != nil || since.IsZero() {
		return err
	}
	if !f.rights.pair {
		f.hide(openapi.ItemFactsHiddenUse)
		return nil
	}
	f.since = since
	if earliest := fr.until.Add(-views.LastUseWindow); since.Before(earliest) {
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
func (fr *factsReader) earlierTickets(ctx context.Context, kinds []approval.Kind, f *factItem) error {
	list, err := fr.api.Tickets.Store.List(core.RequestContext(ctx), approval.Filter{Kinds: kinds, Application: f.Application, Resource: f.Resource,
		After: approval.Cursor{Number: fr.ticket.Number}, Limit: earlierRead + 1, OmitEvents: true})
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
			out.Items = append(out.Items, earlierTicket(fr.catalog, fr.caller, t, i))
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
func (fr *factsReader) grantedSince(ctx context.Context, it *approval.Item) (time.Time, error) {
	if it.ApplicationName == "" || it.ResourceName == "" || it.Change != nil {
		return time.Time{}, nil
	}
	since := it.Earlier.Since
	if since.IsZero() && fr.ticket.Kind.Access() {
		since = it.GrantedAt
	}
	if !since.IsZero() || it.Target == nil {
		return since, nil
	}
	granted, err := fr.api.Tickets.Store.Get(core.RequestContext(ctx), it.Target.Ticket)
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
func (fr *factsReader) affectedBy(f *factItem) error {
	in, err := fr.api.Input()
	if err != nil {
		return err
	}
	_, _, resources := change.Snapshots(fr.snap, in, f.kind, []approval.Item{*f.Item})
	f.affected = resources[:min(len(resources), maxReplayed)]
	first := make([]openapi.CatalogRef, 0, factNames)
	for _, name := range resources[:min(len(resources), factNames)] {
		first = append(first, views.Ref(fr.catalog, name))
	}
	f.out.Affected = &openapi.AffectedFacts{Resources: len(resources), Examined: len(f.affected), FirstResources: &first}
	return nil
}

// hasName reports whether a space-separated list of names contains a name.
func hasName(names, name string) bool {
	return slices.Contains(strings.Fields(names), name)
}
