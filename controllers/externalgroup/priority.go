package externalgroup

import (
	"slices"

	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
)

// priorityOf returns the priority of writing the objects of a subject: Revocation if access may be taken away by them, whoever requested
// it, Grant if a user waits for this subject, otherwise Bulk.
func (r *Reconciler) priorityOf(view *policycache.View, subject string, writes []*federation.Object, requested bool) writequeue.Priority {
	switch {
	case r.takesAccessAway(view, subject, writes):
		return writequeue.Revocation
	case requested:
		return writequeue.Grant
	default:
		return writequeue.Bulk
	}
}

// revokes reports whether a subject loses an address in a member.
func (r *Reconciler) revokes(writes []*federation.Object) bool {
	for _, next := range writes {
		e, exists := r.Federated.Get(next.Meta.Name)
		if !exists {
			continue
		}
		for _, change := range federation.SpecChanges(e, next, slices.Concat(e.Placement, next.Placement)) {
			if r.Effect(change.Before, change.After) > enforcer.Grants {
				return true
			}
		}
	}
	return false
}

// takesAccessAway reports whether access may be taken away by objects of a subject: the subject loses an address, or it gets one
// and a deny names it, so that members refuse the address only when they have it in the group.
func (r *Reconciler) takesAccessAway(view *policycache.View, subject string, writes []*federation.Object) bool {
	return r.revokes(writes) || r.adds(writes) && view.Denies(subject, r.Clock.Now())
}

// adds reports whether a subject gets an address in a member other than by the placement of its group in a further member.
func (r *Reconciler) adds(writes []*federation.Object) bool {
	for _, next := range writes {
		e, exists := r.Federated.Get(next.Meta.Name)
		if !exists || len(e.Placement) == 0 {
			return true
		}
		both := slices.DeleteFunc(slices.Clone(next.Placement), func(c string) bool { return !slices.Contains(e.Placement, c) })
		for _, change := range federation.SpecChanges(e, next, both) {
			if r.Effect(change.After, change.Before) > enforcer.Grants { // The reverse change would revoke.
				return true
			}
		}
	}
	return false
}
