package notify

import (
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

// Directory implements People with the catalog and the active delegations.
type Directory struct {
	Catalog     *catalog.Catalog
	Delegations []approval.Delegation
	Now         time.Time
	// WhoIsOnCall looks up who is on call. If it is nil, this is not known.
	WhoIsOnCall approval.OnCall
}

// Name implements People.
func (c Directory) Name(person string) string {
	if p, ok := c.Catalog.Person(person); ok {
		return p.DisplayName
	}
	return person
}

// Title implements People.
func (c Directory) Title(name string) string {
	if e, ok := c.Catalog.ByName(name); ok {
		return e.Title
	}
	return name
}

// Owners implements People. For a change of an object, these are the owners of the resource that it is about.
func (c Directory) Owners(it approval.Item) (application, resource []string) {
	if e, ok := c.Catalog.Application(it.Application); ok {
		application = c.Catalog.OwnerPeople(e)
	}
	if e, ok := c.Catalog.Resource(it.Resource); ok {
		resource = c.Catalog.OwnerPeople(e)
	}
	return application, resource
}

// Security implements People.
func (c Directory) Security() []string { return c.Catalog.Members(catalog.GroupSecurity) }

// Delegates implements People.
func (c Directory) Delegates(person string) []string {
	var out []string
	for _, d := range c.Delegations {
		if d.From == person && d.Active(c.Now) && !slices.Contains(out, d.To) {
			out = append(out, d.To)
		}
	}
	return out
}

// Answerable implements People.
func (c Directory) Answerable(t *approval.Ticket) (approval.Answerable, bool) {
	return approval.AnswerableOf(c.Catalog, t)
}

// OnCall implements People.
func (c Directory) OnCall() approval.OnCall { return c.WhoIsOnCall }

// Recipient returns the name and address of a person in the catalog; false if there is no such person.
func (c Directory) Recipient(person string) (Recipient, bool) {
	p, ok := c.Catalog.Person(person)
	return Recipient{Person: person, Name: p.DisplayName, Email: p.Email}, ok
}
