package catalog

import (
	"cmp"
	"context"
	"slices"

	"github.com/acp-io/acp/internal/message"
)

// Entity returns an entity as the store has it, even if it is gone.
func (s *Service) Entity(ref Ref) (Stored, bool) {
	x, ok := s.view.Load().stored[ref]
	return x, ok
}

// Put creates or changes an entity of the source Portal. The version is the version of the entity before the change; 0 means
// that the entity is new, or replaces one that is gone. Only security administrators may call it, and not to gain
// authority themselves, and actors whose Delegate permits the change.
func (s *Service) Put(ctx context.Context, a Actor, rec Record, version int64) (Stored, error) {
	if err := s.authorizeEdit(a); err != nil {
		return Stored{}, err
	}
	rec, err := rec.Normalize()
	if err != nil {
		return Stored{}, err
	}
	if err := s.Refresh(ctx); err != nil {
		return Stored{}, err
	}
	v := s.view.Load()
	ref := rec.Ref()
	before, stored := v.stored[ref]
	organization, err := v.delegated(a, &before, stored, &rec)
	if err != nil {
		return Stored{}, err
	}
	known := stored && before.Gone.IsZero()
	switch {
	case known && before.Source != Portal:
		return Stored{}, refusal(ErrConflict, message.CatalogEntityOfSource(ref.String(), before.Source))
	case known && version == 0:
		return Stored{}, refusal(ErrConflict, message.CatalogEntityExists(ref.String()))
	case !known && version != 0:
		return Stored{}, unknown(ref)
	case known && version != before.Version:
		return Stored{}, changedSince()
	}
	if rec.Name != "" {
		for _, x := range v.stored {
			if x.Name == rec.Name && x.Gone.IsZero() && x.Ref() != ref {
				return Stored{}, fieldError("name", message.CatalogNameOfAnother(ref.String(), x.Ref().String(), rec.Name))
			}
		}
	}
	after := Stored{Record: rec, Source: Portal}
	d := Diff{Source: Portal}
	c := Change{Ref: ref, Title: rec.Title}
	if known {
		if c.Fields, c.Authority = changes(before, after); len(c.Fields) == 0 {
			return before, nil
		}
		d.Updated = []Change{c}
	} else {
		d.Created = []Change{c}
	}
	w := Write{Put: []Stored{after}}
	// An administrator of an organization is often a member of its teams, so they may create what their own team owns. The bounds limit
	// the names, and nobody else has owned the entity before.
	if organization == "" || stored {
		if err := refuseSelfGrant(v, v.with(w, v.revision), a); err != nil {
			return Stored{}, err
		}
	}
	w.Ledger = ofOrganization(v.lines(a.ID, d, w, s.Now()), organization)
	if err := s.write(ctx, v.state, w); err != nil {
		return Stored{}, err
	}
	after, _ = s.Entity(ref)
	return after, nil
}

// Retire marks an entity of the source Portal as gone, so that it has no rights any more, and returns what depends on
// it. Remove deletes it.
func (s *Service) Retire(ctx context.Context, a Actor, ref Ref, version int64) (*Dependents, error) {
	if err := s.authorizeEdit(a); err != nil {
		return nil, err
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	v := s.view.Load()
	x, known := v.stored[ref]
	if !known || !x.Gone.IsZero() {
		return nil, unknown(ref)
	}
	organization, err := v.delegated(a, &x, true, nil)
	switch {
	case err != nil:
		return nil, err
	case x.Source != Portal:
		return nil, refusal(ErrConflict, message.CatalogEntityOfSource(ref.String(), x.Source))
	case x.Version != version:
		return nil, changedSince()
	}
	x.Gone = s.Now()
	w := Write{Put: []Stored{x}}
	after := v.with(w, v.revision)
	if err := refuseSelfGrant(v, after, a); err != nil { // The actor may become a leader because of it.
		return nil, err
	}
	w.Ledger = ofOrganization(v.lines(a.ID, Diff{Source: Portal, Gone: []Change{{Ref: ref, Title: x.Title}}}, w, s.Now()), organization)
	if err := s.write(ctx, v.state, w); err != nil {
		return nil, err
	}
	return s.addGrants(after.dependents([]Ref{ref})[ref], x), nil
}

func unknown(ref Ref) error { return refusal(ErrNotFound, message.CatalogEntityUnknown(ref.String())) }

// GoneEntity is an entity that is gone, with what depends on it.
type GoneEntity struct {
	Stored
	Dependents *Dependents
}

// GoneEntities returns the entities that are gone, the latest first.
func (s *Service) GoneEntities() []GoneEntity {
	v := s.view.Load()
	var refs []Ref
	for ref, x := range v.stored {
		if !x.Gone.IsZero() {
			refs = append(refs, ref)
		}
	}
	left := v.dependents(refs)
	out := make([]GoneEntity, 0, len(refs))
	for _, ref := range refs {
		x := v.stored[ref]
		out = append(out, GoneEntity{x, s.addGrants(left[ref], x)})
	}
	slices.SortFunc(out, func(a, b GoneEntity) int {
		return cmp.Or(b.Gone.Compare(a.Gone), compareRefs(a.Ref(), b.Ref()))
	})
	return out
}

// Orphans returns the applications and resources for which nobody can decide, because their owners left or never
// existed.
func (s *Service) Orphans() []Ref { return orphans(s.Catalog()) }

// Remove deletes entities that are gone, if the catalog is at the given revision. Their dependents (grants,
// ownership) stay; GoneEntities shows them before a person confirms.
func (s *Service) Remove(ctx context.Context, a Actor, refs []Ref, revision int64) error {
	if err := s.authorize(a); err != nil {
		return err
	}
	if err := s.Refresh(ctx); err != nil {
		return err
	}
	v := s.view.Load()
	if v.revision != revision {
		return changedSince()
	}
	refs = slices.Clone(refs)
	slices.SortFunc(refs, compareRefs)
	w := Write{Remove: slices.Compact(refs)}
	lines, err := v.removed(a.ID, w.Remove, s.Now())
	if err != nil || len(lines) == 0 {
		return err
	}
	w.Ledger = lines
	return s.write(ctx, v.state, w)
}
