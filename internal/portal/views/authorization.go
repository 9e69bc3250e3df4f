package views

import (
	"context"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
)

// MayInspect reports whether a person may see the connections of an application or a resource.
func MayInspect(c *catalog.Catalog, who approval.Actor, e catalog.Entity) bool {
	return who.Security || who.Auditor || c.Owns(who.ID, e)
}

// InspectableApplication returns an application whose connections the caller may see, or an error.
func (d *Data) InspectableApplication(ctx context.Context, id string) (catalog.Entity, error) {
	c := d.Catalog()
	e, err := EntityOrNotFound(c.Application(id))
	if err != nil {
		return e, err
	}
	if !MayInspect(c, core.Caller(ctx), e) {
		return e, &approval.Error{Code: approval.CodeForbidden, Message: message.AccessApplicationReach()}
	}
	return e, nil
}

// InspectableResource returns a resource whose connections the caller may see, or an error.
func (d *Data) InspectableResource(ctx context.Context, id string) (catalog.Entity, error) {
	c := d.Catalog()
	e, err := EntityOrNotFound(c.Resource(id))
	if err != nil {
		return e, err
	}
	if !MayInspect(c, core.Caller(ctx), e) {
		return e, &approval.Error{Code: approval.CodeForbidden, Message: message.AccessResourceUsers()}
	}
	return e, nil
}

// OwnsApplication reports whether a person owns the application with a resource name.
func OwnsApplication(c *catalog.Catalog, who approval.Actor, name string) bool {
	e, ok := c.ByName(name)
	if !ok {
		return false
	}
	_, app := c.Application(e.ID)
	return app && c.Owns(who.ID, e)
}

// SeesClients reports whether a person may see the names of clients in the lines of an item of a ticket. Those who decide the item see them
// until it is decided. Otherwise the lines of a change of a resource name all of its clients, which only its owners, the security team and
// auditors see.
func SeesClients(c *catalog.Catalog, who approval.Actor, t *approval.Ticket, i int) bool {
	it := &t.Items[i]
	switch {
	case who.Security || who.Auditor || approval.DecidesItem(who, t, i):
		return true
	case it.Change == nil:
		return true
	case it.Change.Kind == approval.ObjectExternalWorkload: // its lines name everything that the application can access
		return OwnsApplication(c, who, it.ApplicationName)
	case ChangesClass(it): // its lines name the clients of every resource of the class
		return false
	case it.ResourceName == "":
		return true
	}
	return MayInspectName(c, who, it.ResourceName)
}

// ChangesClass reports whether an item changes a class.
func ChangesClass(it *approval.Item) bool {
	return it.Change != nil && (it.Change.Kind == approval.ObjectResourceClass || it.Change.Kind == approval.ObjectSubjectClass)
}

// MayInspectName reports whether a person may see the connections of the resource with a resource name.
func MayInspectName(c *catalog.Catalog, who approval.Actor, name string) bool {
	e, ok := c.ByName(name)
	return who.Security || who.Auditor || ok && MayInspect(c, who, e)
}
