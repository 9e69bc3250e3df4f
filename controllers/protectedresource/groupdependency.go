package protectedresource

import (
	"maps"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
)

// heldForGroups returns the members in which the Cilium policies of a plan must not change before the groups that the unit refers to are written. In
// the others, the plan closes something, or opens something that no group affects.
func (f *facts) heldForGroups(p *plan) map[string]bool {
	outdated := f.outdatedGroups(p)
	if len(outdated) == 0 {
		return nil
	}
	harmless := func(group string) bool {
		g, is := outdated[group]
		return !is || f.lacksOnly(g)
	}
	held := map[string]bool{}
	for _, next := range p.Writes {
		if next.Kind != federation.CiliumPolicy {
			continue
		}
		e := f.existing(next.Key())
		for _, change := range federation.SpecChanges(e, next, placementsOf(e, next)) {
			if e != nil && e.ForeignFields || cilium.NeedsGroups(change.Before, change.After, harmless) {
				for _, c := range change.Members {
					held[c] = true
				}
			}
		}
	}
	return held
}

// outdatedGroups returns the groups of the unit, by name, that are not on the host as they have to be for the members of a plan.
func (f *facts) outdatedGroups(p *plan) map[string]*externalgroup.Object {
	out := map[string]*externalgroup.Object{}
	var members []string
	for _, next := range p.Writes {
		members = append(members, next.Placement...)
	}
	members = sortedSet(members)
	for i := range f.Groups {
		g := &f.Groups[i]
		outdated := func(c string) bool { return g.Federated == nil || g.Federated.RevisionIn(c) != g.Revision }
		if g.Revision != "" && slices.ContainsFunc(members, outdated) {
			out[g.Name] = g
		}
	}
	return out
}

// lacksOnly reports whether members can have only addresses of a group that it has to have, so that an allow of it lets in nobody whom it must not.
func (f *facts) lacksOnly(g *externalgroup.Object) bool {
	if e := g.Federated; e != nil {
		return !e.ForeignFields && len(e.Overrides) == 0 && cilium.GroupEffectOf(e.TemplateSpec, g.Spec) == enforcer.Grants
	}
	for c := range f.ObservedGroups {
		if o := f.observedGroup(c, g).Object; o != nil && o.Revision != g.Revision {
			return false // Somebody deleted the group's object on the host by force.
		}
	}
	return true
}

// withoutChangesIn returns the writes of a plan in which the Cilium policies of some members stay as they are.
func (f *facts) withoutChangesIn(held map[string]bool, p *plan) ([]*federation.Object, error) {
	var out []*federation.Object
	for _, next := range p.Writes {
		if next.Kind != federation.CiliumPolicy {
			out = append(out, next)
			continue
		}
		e := f.existing(next.Key())
		if !slices.ContainsFunc(placementsOf(e, next), func(c string) bool { return !held[c] }) {
			continue
		}
		next = keptIn(held, e, next)
		differs, err := federation.Differs(e, next)
		if err != nil {
			return nil, err
		}
		if differs {
			out = append(out, next)
		}
	}
	return out, nil
}

// keptIn returns the successor of an object, which may be nil, with what some members have by the object.
func keptIn(held map[string]bool, e, next *federation.Object) *federation.Object {
	out := *next
	out.Placement, out.Overrides = nil, maps.Clone(next.Overrides)
	for _, c := range placementsOf(e, next) {
		if !held[c] {
			if next.IsPlacedIn(c) {
				out.Placement = append(out.Placement, c)
			}
			continue
		}
		delete(out.Overrides, c)
		if e == nil || !e.IsPlacedIn(c) {
			continue
		}
		out.Placement = append(out.Placement, c)
		if out.Overrides == nil {
			out.Overrides = map[string]federation.Override{}
		}
		out.Overrides[c] = federation.Override{Spec: e.SpecIn(c), Labels: map[string]string{v1alpha1.LabelRevision: e.RevisionIn(c)}}
	}
	return &out
}

// placementsOf returns the members of an object, which may be nil, and of its successor, sorted.
func placementsOf(e, next *federation.Object) []string {
	if e == nil {
		return sortedSet(slices.Clone(next.Placement))
	}
	return sortedSet(slices.Concat(e.Placement, next.Placement))
}
