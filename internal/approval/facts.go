package approval

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/catalog"
)

// rulesRequest returns an item in the form that the conditions of approval policies use.
func rulesRequest(c *catalog.Catalog, kind Kind, requester string, breakGlass bool, it Item, f Facts, requestedAt time.Time) *rules.Request {
	r := &rules.Request{Kind: string(kind), Requester: rules.Person{ID: requester}, Actions: it.Actions, Duration: it.Duration, Total: it.Total(requestedAt),
		Permanent: kind.Access() && it.Duration == 0, Hours: it.Hours != nil, BreakGlass: breakGlass, Enforcers: f.Enforcers, Clients: int64(f.Clients)}
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
	if it.Scope != nil {
		r.Resource.Sensitivity = string(sensitivityOf(it.Scope.resources(c)))
	}
	if f.Protection != nil {
		r.FromMode = string(strictest(modesOf(f.Protection.Spec, f.Members)))
	}
	if ch := it.Change; ch != nil && ch.Kind == ObjectProtectedResource {
		r.FromMode = ""
		if before, ok := protectionOf(ch.Before); ok {
			r.FromMode = string(strictest(modesOf(before, f.Members)))
		}
		if after, ok := protectionOf(ch.After); ok {
			r.ToMode = string(weakest(modesOf(after, f.Members)))
		}
		r.Opens, r.Closes = ch.Verb != VerbCreate && weaker(ch), Closes(ch)
	}
	return r
}

func protectionOf(spec json.RawMessage) (v1alpha1.ProtectedResourceSpec, bool) {
	var out v1alpha1.ProtectedResourceSpec
	ok := len(spec) > 0 && json.Unmarshal(spec, &out) == nil
	return out, ok
}

// modesOf returns the modes that a spec has in the members where the resource is placed. If these are not known, it
// returns the base mode and the modes of all members that the spec names.
func modesOf(s v1alpha1.ProtectedResourceSpec, members []string) []v1alpha1.Mode {
	var out []v1alpha1.Mode
	for _, m := range members {
		out = append(out, modeIn(s, v1alpha1.ClusterName(m)))
	}
	if len(out) > 0 {
		return out
	}
	out = append(out, s.Mode)
	for _, m := range s.ClusterModes {
		out = append(out, m.Mode)
	}
	return out
}

func weakest(modes []v1alpha1.Mode) v1alpha1.Mode {
	return slices.MinFunc(modes, func(a, b v1alpha1.Mode) int { return strictness[a] - strictness[b] })
}

func strictest(modes []v1alpha1.Mode) v1alpha1.Mode {
	return slices.MaxFunc(modes, func(a, b v1alpha1.Mode) int { return strictness[a] - strictness[b] })
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
