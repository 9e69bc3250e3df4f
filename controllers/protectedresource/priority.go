package protectedresource

import (
	"slices"
	"time"

	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/objectkind"
)

// priorityOf derives the priority of a plan from its effect on what was written before, regardless of the request: a plan
// by which a client may lose access is a revocation. requested reports whether a user waits for this unit in particular. It is pure.
func priorityOf(f *facts, p *plan, requested bool) writequeue.Priority {
	worst := enforcer.Grants
	for _, next := range p.Writes {
		worst = max(worst, effect(f.existing(next.Key()), next))
	}
	switch {
	case worst == enforcer.Opens:
		return writequeue.Opening
	case worst == enforcer.Revokes:
		return writequeue.Revocation
	case requested:
		return writequeue.Grant
	default:
		return writequeue.Bulk
	}
}

// effectOf returns what computes the effect of a new spec of a kind; nil for a kind that no enforcer renders.
func effectOf(k federation.Kind) func(before, after map[string]any) enforcer.Effect {
	return registry.Of(objectkind.EnforcerOf(k)).Effect
}

// effect compares what each member must have by an object with what it must have by its successor. e may be nil.
func effect(e, next *federation.Object) enforcer.Effect {
	if e == nil {
		return enforcer.Grants
	}
	compare := effectOf(e.Kind)
	if e.ForeignFields || compare == nil {
		return enforcer.Revokes // the effect cannot be determined, so a revocation is assumed
	}
	worst := enforcer.Grants
	for _, change := range federation.SpecChanges(e, next, slices.Concat(e.Placement, next.Placement)) {
		worst = max(worst, compare(change.Before, change.After))
	}
	return worst
}

// missingGroupTimeout bounds how long a resource stays open because a group is missing. KubeFed restores an object that
// was deleted in a member after about ten seconds.
const missingGroupTimeout = 12 * time.Second

// missingGroupOf returns a group that is missing in a member which the plan closes, so that the clients in the group
// would be refused; "" if no group is known to be missing.
func missingGroupOf(f *facts, p *plan) string {
	for _, next := range p.Writes {
		e := f.existing(next.Meta.Name)
		for _, c := range next.Placement {
			var before map[string]any
			if e != nil && slices.Contains(e.Placement, c) {
				before = e.SpecIn(c)
			}
			if f.suspended(c) || !cilium.Closes(before, next.SpecIn(c)) {
				continue
			}
			for _, g := range f.Groups {
				seen := f.observedGroup(c, &g)
				if g.Revision != "" && seen.Reachable && (seen.Object == nil || seen.Object.Revision != g.Revision) {
					return g.Name
				}
			}
		}
	}
	return ""
}
