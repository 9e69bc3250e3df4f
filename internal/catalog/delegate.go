package catalog

import (
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// authorizeEdit returns an error unless the actor may change single entities at all.
func (s *Service) authorizeEdit(a Actor) error {
	if a.ID != "" && a.Delegate != nil {
		return nil
	}
	return s.authorize(a)
}

// delegated checks a change by an actor who is not a security administrator, and returns the organization for which they make it; empty
// for security administrators. The write that follows fails if the catalog has another revision, so the check holds for what is written.
func (v *view) delegated(a Actor, before *Stored, stored bool, after *Record) (string, error) {
	if a.Security {
		return "", nil
	}
	var was *Record
	if stored {
		// An entity that is gone counts, too: it may return in its source, and with its owners.
		if before.Source != Portal {
			return "", refusal(ErrForbidden, message.CatalogEntityOfSource(before.Ref().String(), before.Source))
		}
		was = &before.Record
	}
	organization, err := a.Delegate(v.catalog, was, after)
	if err != nil || after == nil {
		return organization, err
	}
	// Otherwise they could take a name from another team of the organization: free it, and create an entity of their own team with it.
	if was != nil && was.Name != after.Name {
		return "", refusal(ErrForbidden, message.CatalogNameOfOrganization(after.Ref().String(), was.Name))
	}
	for ref, x := range v.stored {
		if x.Name == after.Name && !x.Gone.IsZero() && ref != after.Ref() {
			return "", refusal(ErrForbidden, message.CatalogNameOfGone(after.Ref().String(), ref.String(), after.Name))
		}
	}
	return organization, nil
}

// ofOrganization adds the organization whose administrator makes a change to the first of its ledger lines.
func ofOrganization(lines []ledger.Entry, organization string) []ledger.Entry {
	if organization != "" {
		lines[0].Details["organization"] = organization
	}
	return lines
}
