package ticketapi

import (
	"context"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/change"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// GetTicketChange implements openapi.StrictServerInterface.
func (a *API) GetTicketChange(ctx context.Context, r openapi.GetTicketChangeRequestObject) (openapi.GetTicketChangeResponseObject, error) {
	t, err := a.Ticket(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	v, err := a.changeView(who, t.Kind, t.Items, func(i int) bool { return approval.DecidesItem(who, t, i) })
	return openapi.GetTicketChange200JSONResponse(v), err
}

// members returns the members of the fleet, with the properties that determine what is placed in them.
func (a *API) members() []change.Member {
	return change.MembersOf(a.Host.Members())
}

// decidesNone is for items of a request that is not submitted, so that nobody decides them.
func decidesNone(int) bool { return false }

// changeView returns the view of the changes of items. Existing access to a resource is shown to those who may see it on the page
// of the resource, and to the approvers of an item about it until the item is decided, because they need to know what they add to. decides
// reports whether the caller is an approver of an item that waits for its decision. A change of a class, which names the clients of all of
// its resources, is left out for others.
func (a *API) changeView(who approval.Actor, kind approval.Kind, all []approval.Item, decides func(item int) bool) (openapi.ChangeView, error) {
	var items []approval.Item
	decided := map[string]bool{} // the resources of the items that the caller decides
	for i, it := range all {
		if views.ChangesClass(&it) && !decides(i) && !who.Security && !who.Auditor {
			continue
		}
		items = append(items, it)
		if decides(i) {
			decided[it.ResourceName] = true
		}
	}
	if len(items) == 0 {
		return openapi.ChangeView{Objects: []openapi.ObjectDiff{}, Notes: &[]message.Message{message.ChangePartsHidden()}}, nil
	}
	snap, err := a.Snapshot()
	if err != nil {
		return openapi.ChangeView{}, err
	}
	in, err := a.Input()
	if err != nil {
		return openapi.ChangeView{}, err
	}
	c, hidden, whole := a.Catalog(), false, in
	for _, it := range items {
		if it.ResourceName == "" || decided[it.ResourceName] || views.MayInspectName(c, who, it.ResourceName) {
			continue
		}
		hidden = true
		in = change.Hide(in, it.ResourceName, func(subject string) bool {
			return subject == it.ApplicationName || views.OwnsApplication(c, who, subject)
		})
	}
	v := change.Of(snap, in, a.members(), kind, items, a.Now())
	if hidden || len(items) < len(all) {
		v.Note(message.ChangePartsHidden())
	}
	if hidden {
		v.Refuse(snap, whole, a.members(), kind, items, a.Now())
	}
	out := openapi.ChangeView{Objects: []openapi.ObjectDiff{}}
	if len(v.Notes) > 0 {
		out.Notes = &v.Notes
	}
	for _, o := range v.Objects {
		d := openapi.ObjectDiff{
			Layer:    new(openapi.ObjectDiffLayer(o.Layer)),
			Kind:     o.Kind,
			Name:     o.Name,
			Enforcer: core.Optional(o.Enforcer),
			Before:   o.Before,
			After:    o.After,
		}
		if o.Clusters != nil {
			d.Clusters = &o.Clusters
		}
		out.Objects = append(out.Objects, d)
	}
	if len(v.Refused) > 0 {
		out.Refused = &v.Refused
	}
	return out, nil
}
