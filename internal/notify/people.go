package notify

import (
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

// Company implements People by the catalog and the delegations that are active.
type Company struct {
	Catalog     *catalog.Catalog
	Delegations []approval.Delegation
	Now         time.Time
}

// Name implements People.
func (c Company) Name(person string) string {
	if p, ok := c.Catalog.Person(person); ok {
		return p.DisplayName
	}
	return person
}

// Owners implements People. Of a change of an object, the owners are those of what it is about.
func (c Company) Owners(it approval.Item) (application, resource []string) {
	if e, ok := c.Catalog.Application(it.Application); ok {
		application = c.Catalog.OwnerPeople(e)
	}
	if e, ok := c.Catalog.Resource(it.Resource); ok {
		resource = c.Catalog.OwnerPeople(e)
	}
	return application, resource
}

// Security implements People.
func (c Company) Security() []string { return c.Catalog.Members(catalog.GroupSecurity) }

// Delegates implements People.
func (c Company) Delegates(person string) []string {
	var out []string
	for _, d := range c.Delegations {
		if d.From == person && d.Active(c.Now) && !slices.Contains(out, d.To) {
			out = append(out, d.To)
		}
	}
	return out
}

// Recipient is how the catalog says that a person is reached.
func (c Company) Recipient(person string) (Recipient, bool) {
	p, ok := c.Catalog.Person(person)
	return Recipient{Person: person, Name: p.DisplayName, Email: p.Email}, ok
}
