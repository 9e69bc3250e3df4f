package approval

import (
	"slices"

	"github.com/acp-io/acp/internal/catalog"
)

// Actor is who calls, with the roles that do not come from ownership.
type Actor struct {
	ID       string
	Security bool
	Auditor  bool
}

// May answers what an actor may do with a ticket.
type May struct{ See, Approve, Reject, Withdraw, Revoke bool }

// MayDo is the one place that decides about access to tickets. An auditor sees all and changes nothing, whatever else
// he is.
func MayDo(c *catalog.Catalog, a Actor, t *Ticket) May {
	owner := false
	for _, it := range t.Items {
		owner = owner || ownsItem(c, a.ID, it)
	}
	involved := t.Requester == a.ID || slices.ContainsFunc(t.Steps, func(s Step) bool {
		return s.DecidedBy == a.ID || slices.Contains(s.Approvers, a.ID)
	})
	m := May{See: involved || owner || a.Security || a.Auditor}
	if a.Auditor {
		return m
	}
	m.Approve = t.CanDecide(a.ID) == nil
	m.Reject = m.Approve
	if i := t.Current(); m.Approve {
		_, stranded := t.strands(i, a.ID)
		m.Approve = !stranded && standing(c, a.ID, t) == nil
	}
	m.Withdraw = t.Requester == a.ID && t.State == StatePending
	m.Revoke = (owner || a.Security) && t.State.Grants()
	return m
}

// standing tells whether the catalog still says what the chain was resolved from: that the requester speaks for the
// application, and the approver for the step that waits. Days may have passed since the submission. A rejection needs
// no standing, for it opens nothing.
func standing(c *catalog.Catalog, approver string, t *Ticket) error {
	for _, it := range t.Items {
		if app, ok := c.ByName(it.ApplicationName); !ok || !c.Owns(t.Requester, app) {
			return failf(CodeConflict, "%s does not own %s any more: reject the request, and let an owner ask again.", displayName(c, t.Requester), it.Application)
		}
		resource, ok := c.ByName(it.ResourceName)
		if !ok {
			return failf(CodeConflict, "The catalog does not know %s any more: reject the request.", it.Resource)
		}
		if !fills(c, t.Steps[t.Current()].Name, approver, t.Requester, resource) {
			return failf(CodeForbidden, "By the catalog you do not speak for the step %q any more: the request has to be made again.", t.Steps[t.Current()].Name)
		}
	}
	return nil
}

// fills tells whether a person is one of those from whom the default chain takes a step's approvers.
func fills(c *catalog.Catalog, step, person, requester string, resource catalog.Entity) bool {
	security := c.InGroup(person, catalog.GroupSecurity)
	switch step {
	case StepLeader:
		return slices.Contains(c.Leaders(requester), person)
	case StepOwner:
		return c.Owns(person, resource) || security
	case StepSecurity:
		return security
	}
	return false
}

func ownsItem(c *catalog.Catalog, person string, it Item) bool {
	if app, ok := c.Application(it.Application); ok && app.Name == it.ApplicationName && c.Owns(person, app) {
		return true
	}
	res, ok := c.Resource(it.Resource)
	return ok && res.Name == it.ResourceName && c.Owns(person, res)
}

// VisibleTo is the filter that agrees with MayDo; nil: everything.
func VisibleTo(c *catalog.Catalog, a Actor) *Visible {
	if a.Security || a.Auditor {
		return nil
	}
	v := &Visible{Person: a.ID}
	for _, e := range c.Applications() {
		if c.Owns(a.ID, e) {
			v.Applications = append(v.Applications, e.Name)
		}
	}
	for _, e := range c.Resources() {
		if c.Owns(a.ID, e) {
			v.Resources = append(v.Resources, e.Name)
		}
	}
	return v
}
