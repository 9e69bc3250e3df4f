package externalgroup

import (
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
)

// plan contains what must be written for a subject.
type plan struct {
	// Writes are the objects to create or to update.
	Writes []*federation.Object
	// Removals are the objects that the subject does not need any more. Each makes the next step of its removal after the writes.
	Removals []*federation.Object
	// Priority is the priority of the writes.
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
