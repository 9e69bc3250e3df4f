package approval

import (
	"slices"
	"time"

	"github.com/acp-io/acp/internal/tokenize"
)

// Matches reports whether the filter selects a ticket. Order and page do not matter.
func (f Filter) Matches(t *Ticket) bool {
	concerns := t.Concerns()
	is := func(item int, person string, role Role) bool {
		return slices.ContainsFunc(concerns, func(c Concern) bool {
			return (item < 0 || c.Item == item) && c.Person == person && c.Role == role
		})
	}
	switch {
	case len(f.Numbers) > 0 && !slices.Contains(f.Numbers, t.Number), f.Text != "" && !mentions(t, f.Text),
		f.Requester != "" && t.Requester != f.Requester,
		len(f.Kinds) > 0 && !slices.Contains(f.Kinds, t.Kind),
		len(f.States) > 0 && !slices.Contains(f.States, t.State()),
		f.DecidedBy != "" && !is(-1, f.DecidedBy, RoleDecided):
		return false
	}
	if w := f.WaitsFor; w != nil && (t.Requester == w.Person || !slices.ContainsFunc(concerns, func(c Concern) bool {
		return c.Role == RoleWaits && (c.Person == w.Person || slices.Contains(w.StandsFor, c.Person) && !is(c.Item, w.Person, RoleDecided))
	})) {
		return false
	}
	if f.VisibleTo != nil && !f.VisibleTo.sees(t, concerns) {
		return false
	}
	return slices.ContainsFunc(t.Items, func(it Item) bool { return f.matchesItem(it) })
}

func (v *Visible) sees(t *Ticket, concerns []Concern) bool {
	return t.Requester == v.Person || slices.Contains(v.Statements, t.Number) || slices.ContainsFunc(concerns, func(c Concern) bool {
		return c.Person == v.Person || c.Role == RoleNamed && slices.Contains(v.StandsFor, c.Person)
	}) || slices.ContainsFunc(t.Items, func(it Item) bool {
		return slices.Contains(v.Applications, it.ApplicationName) || slices.Contains(v.Resources, it.ResourceName)
	})
}

// Words returns the words by which a ticket is found: the words of its reason and of the ids of the requester, the
// applications and the resources.
func (t *Ticket) Words() []string {
	in := []string{t.Reason, t.Requester}
	for _, it := range t.Items {
		in = append(in, it.Application, it.Resource)
	}
	return tokenize.Tokens(in...)
}

// mentions reports whether each typed word is the beginning of a word of the ticket.
func mentions(t *Ticket, typed string) bool {
	prefixes := tokenize.Prefixes(typed)
	return len(prefixes) > 0 && tokenize.Match(t.Words(), prefixes)
}

func (f Filter) matchesItem(it Item) bool {
	due := it.Due()
	return (len(f.ItemStates) == 0 || slices.Contains(f.ItemStates, it.State)) &&
		(f.Application == "" || it.Application == f.Application) &&
		(len(f.Applications) == 0 || slices.Contains(f.Applications, it.ApplicationName)) && (f.Resource == "" || it.Resource == f.Resource) &&
		(f.Policy == "" || it.Policy == f.Policy) && (f.Target == nil || it.Target != nil && *it.Target == *f.Target) &&
		(f.Package == "" || it.Package != nil && it.Package.Name == f.Package) &&
		(f.DueBy.IsZero() || !due.IsZero() && !due.After(f.DueBy)) &&
		(f.ExpiresBy.IsZero() || !it.End().IsZero() && !it.End().After(f.ExpiresBy))
}

// FirstEnd returns when the first access of the ticket ends, among the items that meet the filter's conditions about one item; zero if
// none of them ends.
func (f Filter) FirstEnd(t *Ticket) time.Time {
	var first time.Time
	for _, it := range t.Items {
		if end := it.End(); f.matchesItem(it) && !end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}
