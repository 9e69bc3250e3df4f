// Package packageapi implements the operations of the API about access packages: the list, a package with its versions and holders, and
// its archiving. Versions are published, and packages are requested, by tickets (package ticketapi).
package packageapi

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/tokenize"
)

// maxVersions is the number of versions that the view of a package has.
const maxVersions = 20

// API implements the operations about access packages.
type API struct {
	*views.Data
	Packages accesspackage.Store
}

// ListPackages implements openapi.StrictServerInterface.
func (a *API) ListPackages(ctx context.Context, r openapi.ListPackagesRequestObject) (openapi.ListPackagesResponseObject, error) {
	all, err := a.Packages.List(core.RequestContext(ctx))
	if err != nil {
		return nil, err
	}
	c, archived := a.Catalog(), core.Value(r.Params.Archived)
	typed := strings.TrimSpace(core.Value(r.Params.Q))
	prefixes := tokenize.Prefixes(typed)
	keep := func(s accesspackage.Summary) bool {
		return s.Archived == archived && (typed == "" || len(prefixes) > 0 &&
			tokenize.Match(tokenize.Tokens(s.Name, s.Title, s.Description, team(c, s.Team).DisplayName), prefixes))
	}
	page, next, err := core.Page("packages", all, func(s accesspackage.Summary) string { return s.Name },
		func(s accesspackage.Summary, _ string) bool { return keep(s) }, nil, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	out := openapi.ListPackages200JSONResponse{Items: make([]openapi.PackageSummary, 0, len(page)), NextCursor: next}
	for _, s := range page {
		out.Items = append(out.Items, openapi.PackageSummary{Name: s.Name, Title: s.Title, Description: core.Optional(s.Description), Team: team(c, s.Team),
			Chain: openapi.PackageChain(s.Chain), Version: s.Version, Resources: s.Resources, PublishedAt: s.PublishedAt.UTC(), Archived: s.Archived})
	}
	return out, nil
}

// find returns a package with the content of its current version.
func (a *API) find(ctx context.Context, name string) (accesspackage.Package, accesspackage.Spec, error) {
	if accesspackage.CheckName(name) != nil {
		return accesspackage.Package{}, accesspackage.Spec{}, accesspackage.ErrUnknown
	}
	p, err := a.Packages.Package(core.RequestContext(ctx), name)
	if err != nil {
		return p, accesspackage.Spec{}, err
	}
	spec, err := p.Current.Spec()
	return p, spec, err
}

// GetPackage implements openapi.StrictServerInterface.
func (a *API) GetPackage(ctx context.Context, r openapi.GetPackageRequestObject) (openapi.GetPackageResponseObject, error) {
	p, spec, err := a.find(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	versions, err := a.Packages.Versions(core.RequestContext(ctx), p.Name, maxVersions)
	if err != nil {
		return nil, err
	}
	c, who := a.Catalog(), core.Caller(ctx)
	out := openapi.AccessPackage{Name: p.Name, Title: spec.Title, Description: core.Optional(spec.Description), Team: team(c, spec.Team),
		Hours: views.Hours(spec.Hours), Chain: openapi.PackageChain(spec.Chain), Version: p.Current.Number, Resources: []openapi.PackageResource{},
		Versions: make([]openapi.PackageVersion, 0, len(versions)), ArchivedAt: views.Time(p.ArchivedAt), Can: openapi.PackageMay{
			Publish: !p.Archived() && approval.MayPublish(c, who.ID, spec.Team) && !who.Auditor,
			Request: !p.Archived() && !who.Auditor,
		}}
	if spec.DurationSeconds > 0 {
		out.DurationSeconds = &spec.DurationSeconds
	}
	for _, name := range spec.ResourceNames() {
		x := openapi.PackageResource{Resource: views.Ref(c, name), Actions: spec.Resources[name].Actions, Owners: []openapi.OwnerRef{}}
		if e, ok := c.ByName(name); ok {
			x.Owners = views.Owners(c, e)
		}
		out.Resources = append(out.Resources, x)
	}
	updates, err := a.updates(ctx, c, p.Name, spec.Team)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		x := a.version(ctx, c, v)
		x.Holders = updates[v.Number]
		out.Versions = append(out.Versions, x)
	}
	claim := approval.Claim{Resource: approval.ObjectAccessPackage + "/" + p.Name, Action: "change"}
	pending, err := a.Tickets.Store.ClaimedBy(core.RequestContext(ctx), []approval.Claim{claim})
	if err != nil {
		return nil, err
	}
	if pending != 0 && a.TicketVisible(ctx, pending) {
		out.Pending = new(approval.FormatID(pending))
	}
	return openapi.GetPackage200JSONResponse(out), nil
}

func (a *API) version(ctx context.Context, c *catalog.Catalog, v accesspackage.Version) openapi.PackageVersion {
	out := openapi.PackageVersion{Number: v.Number, Digest: v.Digest, PublishedBy: views.Person(c, v.PublishedBy), PublishedAt: v.PublishedAt.UTC()}
	if a.TicketVisible(ctx, v.Ticket) {
		out.Ticket = new(approval.FormatID(v.Ticket))
	}
	return out
}

// ArchivePackage implements openapi.StrictServerInterface.
func (a *API) ArchivePackage(ctx context.Context, r openapi.ArchivePackageRequestObject) (openapi.ArchivePackageResponseObject, error) {
	p, spec, err := a.find(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	c, who := a.Catalog(), core.Caller(ctx)
	if who.Auditor || !approval.MayPublish(c, who.ID, spec.Team) {
		return nil, core.Forbidden(message.AccessPackageNotInTeam(team(c, spec.Team).DisplayName))
	}
	if err := a.Packages.Archive(core.RequestContext(ctx), p.Name, who.ID, a.Now()); err != nil {
		return nil, err
	}
	return openapi.ArchivePackage204Response{}, nil
}

// team returns the view of a team, which is a group of the catalog.
func team(c *catalog.Catalog, id string) openapi.PackageTeam {
	if g, ok := c.Group(id); ok && g.Title != "" {
		return openapi.PackageTeam{Id: id, DisplayName: g.Title}
	}
	return openapi.PackageTeam{Id: id, DisplayName: id}
}

// maxTickets is the number of tickets that are read for the holders of a package, and maxTicketsShown of those of one holder that are listed.
const (
	maxTickets      = 1000
	maxTicketsShown = 10
)

// held are the tickets by which applications hold a package, as far as a caller sees the applications.
type held struct {
	name    string // of the package
	tickets []*approval.Ticket
	sees    func(application string) bool
}

// held returns the newest maxTickets tickets by which applications hold a package.
func (a *API) held(ctx context.Context, name string) (held, error) {
	p, spec, err := a.find(ctx, name)
	if err != nil {
		return held{}, err
	}
	out := held{name: p.Name, sees: func(string) bool { return true }}
	c, who := a.Catalog(), core.Caller(ctx)
	f := approval.Filter{Package: p.Name, ItemStates: inForce, Limit: maxTickets, OmitEvents: true}
	if !seesHolders(c, who, spec.Team) {
		own, _ := c.Owned(who.ID)
		f.Applications = views.Names(own)
		out.sees = func(application string) bool { return slices.Contains(f.Applications, application) }
		if len(own) == 0 {
			return out, nil
		}
	}
	out.tickets, err = a.Tickets.Store.List(core.RequestContext(ctx), f)
	return out, err
}

// items iterates over the accesses of the package that are in force, by ticket. The tickets are the newest first.
func (h *held) items() iter.Seq2[*approval.Ticket, *approval.Item] {
	return func(yield func(*approval.Ticket, *approval.Item) bool) {
		for _, t := range h.tickets {
			for i := range t.Items {
				it := &t.Items[i]
				if it.Package == nil || it.Package.Name != h.name || !t.Kind.Access() || !it.State.MayBeOnHost() || !h.sees(it.ApplicationName) {
					continue
				}
				if !yield(t, it) {
					return
				}
			}
		}
	}
}

// ListPackageHolders implements openapi.StrictServerInterface.
func (a *API) ListPackageHolders(ctx context.Context, r openapi.ListPackageHoldersRequestObject) (openapi.ListPackageHoldersResponseObject, error) {
	h, err := a.held(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	page, next, err := core.Page("package holders", holdersOf(a.Catalog(), &h), func(h openapi.PackageHolder) string { return h.Application.Name },
		func(openapi.PackageHolder, string) bool { return true }, nil, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	out := openapi.ListPackageHolders200JSONResponse{Items: page, NextCursor: next}
	if len(h.tickets) == maxTickets {
		out.Incomplete = new(true)
	}
	reasons := map[string]string{}
	for _, t := range h.tickets {
		reasons[t.ID()] = t.Reason
	}
	for i := range out.Items {
		x := &out.Items[i]
		x.Tickets = slices.DeleteFunc(x.Tickets, func(id string) bool {
			n, ok := approval.ParseID(id)
			return !ok || !a.TicketVisible(ctx, n)
		})
		if len(x.Tickets) > 0 {
			x.Reason = core.Optional(reasons[x.Tickets[0]])
		}
	}
	return out, nil
}

// seesHolders reports whether a person sees every application that holds a package of a team. Others see their own applications.
func seesHolders(c *catalog.Catalog, who approval.Actor, team string) bool {
	return who.Security || who.Auditor || c.InGroup(who.ID, team)
}

// inForce are the states of the items by which an application holds a package.
var inForce = []approval.State{approval.StateApproved, approval.StateApplying, approval.StateEffective, approval.StateFailed}

// holdersOf returns the applications that hold access by a package, sorted by name.
func holdersOf(c *catalog.Catalog, held *held) []openapi.PackageHolder {
	found := map[string]*openapi.PackageHolder{}
	for t, it := range held.items() {
		h := found[it.ApplicationName]
		if h == nil {
			h = &openapi.PackageHolder{Application: views.Ref(c, it.ApplicationName), Version: it.Package.Version}
			found[it.ApplicationName] = h
		}
		h.Items++
		h.Version = min(h.Version, it.Package.Version)
		if end := views.Time(it.End()); end != nil && (h.ExpiresAt == nil || end.Before(*h.ExpiresAt)) {
			h.ExpiresAt = end
		}
		if id := t.ID(); len(h.Tickets) < maxTicketsShown && !slices.Contains(h.Tickets, id) {
			h.Tickets = append(h.Tickets, id)
		}
	}
	out := make([]openapi.PackageHolder, 0, len(found))
	for _, h := range found {
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b openapi.PackageHolder) int { return strings.Compare(a.Application.Name, b.Application.Name) })
	return out
}
