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
		m.Approve = !stranded
	}
	m.Withdraw = t.Requester == a.ID && t.State == StatePending
	m.Revoke = (owner || a.Security) && t.State.Grants()
	return m
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
