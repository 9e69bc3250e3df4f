package approval

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/catalog"
)

// rulesRequest is an item as approval policies see it.
func rulesRequest(c *catalog.Catalog, kind Kind, requester string, breakGlass bool, it Item, f Facts) *rules.Request {
	r := &rules.Request{Kind: string(kind), Requester: rules.Person{ID: requester}, Actions: it.Actions, Duration: it.Duration,
		Permanent: kind.Access() && it.Duration == 0, BreakGlass: breakGlass, Enforcers: f.Enforcers, Clients: int64(f.Clients),
		Wildcard: slices.ContainsFunc(it.Actions, func(a string) bool { return strings.Contains(a, "*") })}
	r.Adopt, r.Override = it.Adopt, it.Override != nil
	if p, ok := c.Person(requester); ok {
		r.Requester.Groups = p.Groups
	}
	if app, ok := c.ByName(it.ApplicationName); ok {
		r.Application = entity(app)
	}
	if res, ok := c.ByName(it.ResourceName); ok {
		r.Resource = entity(res)
		r.Resource.Class = f.Class
	}
	if f.Protection != nil {
		r.FromMode = string(f.Protection.Spec.Mode)
	}
	if ch := it.Change; ch != nil {
		r.FromMode, r.ToMode = string(ch.FromMode), string(ch.ToMode)
	}
	return r
}

func entity(e catalog.Entity) rules.Entity {
	out := rules.Entity{ID: e.ID, Name: e.Name, Environment: e.Environment, Sensitivity: string(e.Sensitivity)}
	for _, o := range e.Owners {
		kind := "user"
		if o.Kind == catalog.OwnerGroup {
			kind = "group"
		}
		out.Owners = append(out.Owners, kind+":"+o.ID)
	}
	return out
}
