package externalgroup

import (
	"slices"

	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
)

// plan contains what must be written for a subject.
type plan struct {
	// Writes are the objects to create or to update.
	Writes []*federation.Object
	// Removals are the objects that the subject does not need any more. Each makes the next step of its removal after the writes.
	Removals []*federation.Object
	// Priority is that of the writes.
	Priority writequeue.Priority
	// Handover reports whether the subject keeps addresses until their next subject has them. The rest is planned after that.
	Handover bool
}

// newPlan computes the plan for a subject from its group and its objects on the host. requested reports whether a user waits for this
// subject in particular.
func (r *Reconciler) newPlan(view *policycache.View, subject string, requested bool) (plan, error) {
	wanted, err := r.render(view, subject)
	if err != nil {
		return plan{}, err
	}
	var p plan
	if p.Writes, err = r.writes(view, subject, wanted); err != nil {
		return plan{}, err
	}
	if p.Handover = (len(wanted) == 0 || r.revokes(p.Writes)) && r.awaitsHandover(view, subject); p.Handover {
		if p.Writes, err = r.writesBeforeHandover(view, subject); err != nil {
			return plan{}, err
		}
	} else {
		for _, e := range r.Federated.Of(subject) {
			if !contains(wanted, e.Meta.Name) {
				p.Removals = append(p.Removals, e)
			}
		}
	}
	p.Priority = r.priorityOf(view, subject, p.Writes, requested)
	return p, nil
}

// priorityOf returns the priority of writing objects of a subject.
func (r *Reconciler) priorityOf(view *policycache.View, subject string, writes []*federation.Object, requested bool) writequeue.Priority {
	switch {
	case r.urgent(view, subject, writes):
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
		for _, c := range slices.Concat(e.Placement, next.Placement) {
			if r.Effect(e.SpecIn(c), next.SpecIn(c)) > enforcer.Grants {
				return true
			}
		}
	}
	return false
}

// urgent reports whether access may be taken away by objects of a subject: the subject loses an address, or it gets one
// and a deny names it, so that members refuse the address only when they have it in the group.
func (r *Reconciler) urgent(view *policycache.View, subject string, writes []*federation.Object) bool {
	return r.revokes(writes) || r.adds(writes) && view.Denies(subject, r.Clock.Now())
}

// adds reports whether a subject gets an address in a member other than by the placement of its group in a further member.
func (r *Reconciler) adds(writes []*federation.Object) bool {
	for _, next := range writes {
		e, exists := r.Federated.Get(next.Meta.Name)
		if !exists || len(e.Placement) == 0 {
			return true
		}
		for _, c := range next.Placement {
			if slices.Contains(e.Placement, c) && r.Effect(next.SpecIn(c), e.SpecIn(c)) > enforcer.Grants { // The reverse change would revoke.
				return true
			}
		}
	}
	return false
}
