package packageapi

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// ListPackageHolderUses implements openapi.StrictServerInterface. It reads only connections that the caller may see: those of applications and
// to resources that they own.
func (a *API) ListPackageHolderUses(
	ctx context.Context,
	r openapi.ListPackageHolderUsesRequestObject,
) (openapi.ListPackageHolderUsesResponseObject, error) {
	h, err := a.held(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	q := views.UsesQuery{Snapshot: snap, Window: views.LastUseWindow}
	out := openapi.ListPackageHolderUses200JSONResponse{Items: []openapi.PackageHolderUse{}, Since: a.Now().Add(-q.Window).UTC()}
	accesses, resources := h.accesses()
	var grants []policy.Grant
	for _, name := range resources {
		for _, g := range snap.WhoCanReach(name, a.Now()) {
			if accesses[g.Subject][access{g.Ref.SID, g.Resource}] {
				grants = append(grants, g)
			}
		}
	}
	if q.Origins, err = a.OriginsOf(ctx, grants); err != nil {
		return nil, err
	}
	for _, g := range grants {
		if t, _ := q.Origins.Item(g); t != nil { // otherwise another policy has a statement with the same sid
			q.Edges = append(q.Edges, governance.UseEdge(snap, g))
		}
	}
	c, who := a.Catalog(), core.Caller(ctx)
	q.Filter = &audit.Filter{Resources: resources, Within: a.FlowScope(who)}
	uses := a.LastUses(ctx, q)
	if out.Available = uses != nil; !out.Available {
		return out, nil
	}
	found := map[string][]use{}
	for i := range q.Edges {
		e := &q.Edges[i]
		u := use{state: openapi.UseStateUnknown}
		if views.MayInspectName(c, who, e.Subject) || views.MayInspectName(c, who, e.Resource) {
			u.state, u.lastUsed = uses.Of(e)
		}
		found[e.Subject] = append(found[e.Subject], u)
	}
	for _, application := range slices.Sorted(maps.Keys(accesses)) {
		x := useOfHolder(application, len(accesses[application]), found[application])
		if x.State == openapi.UseStateUnused && len(h.tickets) == maxTickets {
			x.State = openapi.UseStateUnknown // accesses of older tickets were not read
		}
		out.Items = append(out.Items, x)
	}
	return out, nil
}

// use is what is known of the last use of one access.
type use struct {
	state    openapi.UseState
	lastUsed *time.Time // nil if no use was seen
}

// access identifies an access of an application by its statement.
type access struct{ sid, resource string }

// accesses returns the accesses by application, and the names of their resources in order.
func (h *held) accesses() (by map[string]map[access]bool, resources []string) {
	by = map[string]map[access]bool{}
	for _, it := range h.items() {
		if by[it.ApplicationName] == nil {
			by[it.ApplicationName] = map[access]bool{}
		}
		by[it.ApplicationName][access{it.SID, it.ResourceName}] = true
		resources = append(resources, it.ResourceName)
	}
	slices.Sort(resources)
	return by, slices.Compact(resources)
}

// useOfHolder returns the last use of the accesses of an application by a package. They are unused if each was watched well enough and none
// was used; what is not in force yet, or whose connections the caller may not see, is unknown.
func useOfHolder(application string, accesses int, seen []use) openapi.PackageHolderUse {
	out := openapi.PackageHolderUse{Application: application, State: openapi.UseStateUnused}
	if len(seen) < accesses {
		out.State = openapi.UseStateUnknown
	}
	for _, u := range seen {
		switch {
		case u.lastUsed != nil && (out.LastUsed == nil || u.lastUsed.After(*out.LastUsed)):
			out.State, out.LastUsed = openapi.UseStateUsed, u.lastUsed
		case u.state == openapi.UseStateUnknown && out.LastUsed == nil:
			out.State = u.state
		}
	}
	return out
}
