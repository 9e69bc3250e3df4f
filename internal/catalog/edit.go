package catalog

import (
	"cmp"
	"context"
	"slices"
)

// Entity as the store has it, gone or not.
func (s *Service) Entity(ref Ref) (Stored, bool) {
	x, ok := s.view.Load().stored[ref]
	return x, ok
}

// Put creates an entity of the portal's own, or changes it. The version is that of the entity that was changed; 0: it
// is new, or takes the place of one that is gone. Security administrators only, and not to their own advantage.
func (s *Service) Put(ctx context.Context, a Actor, rec Record, version int64) (Stored, error) {
	if err := s.may(a); err != nil {
		return Stored{}, err
	}
	rec, err := rec.Normal()
	if err != nil {
		return Stored{}, err
	}
	if err := s.Refresh(ctx); err != nil {
		return Stored{}, err
	}
	v := s.view.Load()
	ref := rec.Ref()
	before, known := v.stored[ref]
	known = known && before.Gone.IsZero()
	switch {
	case known && before.Source != Portal:
		return Stored{}, refusal(ErrConflict, "%s comes from the source %s: change it there.", ref, before.Source)
	case known && version == 0:
		return Stored{}, refusal(ErrConflict, "%s exists already.", ref)
	case !known && version != 0:
		return Stored{}, unknown(ref)
	case known && version != before.Version:
		return Stored{}, changedSince()
	}
	if rec.Name != "" {
		for _, x := range v.stored {
			if x.Name == rec.Name && x.Gone.IsZero() && x.Ref() != ref {
				return Stored{}, fieldf("name", "%s has the resource name of %s (%s): two entities cannot be one", ref, x.Ref(), rec.Name)
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
	if err := selfless(v, v.with(w, v.revision), a); err != nil {
		return Stored{}, err
	}
	w.Ledger = v.lines(a.ID, d, w, s.Now())
	if err := s.write(ctx, v.state, w); err != nil {
		return Stored{}, err
	}
	after, _ = s.Entity(ref)
	return after, nil
}

// Retire lets an entity of the portal's own go: it decides nothing any more. Remove deletes it.
func (s *Service) Retire(ctx context.Context, a Actor, ref Ref, version int64) (*Leaves, error) {
	if err := s.may(a); err != nil {
		return nil, err
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	v := s.view.Load()
	x, known := v.stored[ref]
	switch {
	case !known || !x.Gone.IsZero():
		return nil, unknown(ref)
	case x.Source != Portal:
		return nil, refusal(ErrConflict, "%s comes from the source %s: change it there.", ref, x.Source)
	case x.Version != version:
		return nil, changedSince()
	}
	x.Gone = s.Now()
	w := Write{Put: []Stored{x}}
	after := v.with(w, v.revision)
	if err := selfless(v, after, a); err != nil { // who is left may lead now
		return nil, err
	}
	w.Ledger = v.lines(a.ID, Diff{Source: Portal, Gone: []Change{{Ref: ref, Title: x.Title}}}, w, s.Now())
	if err := s.write(ctx, v.state, w); err != nil {
		return nil, err
	}
	return s.granted(after.leaves([]Ref{ref})[ref], x), nil
}

func unknown(ref Ref) error { return refusal(ErrNotFound, "The catalog has no %s.", ref) }

// Departed is an entity that is gone, with what it leaves behind.
type Departed struct {
	Stored
	Leaves *Leaves
}

// Departed entities, the latest first.
func (s *Service) Departed() []Departed {
	v := s.view.Load()
	var refs []Ref
	for ref, x := range v.stored {
		if !x.Gone.IsZero() {
			refs = append(refs, ref)
		}
	}
	left := v.leaves(refs)
	out := make([]Departed, 0, len(refs))
	for _, ref := range refs {
		x := v.stored[ref]
		out = append(out, Departed{x, s.granted(left[ref], x)})
	}
	slices.SortFunc(out, func(a, b Departed) int {
		return cmp.Or(b.Gone.Compare(a.Gone), compareRefs(a.Ref(), b.Ref()))
	})
	return out
}

// Orphans are the applications and resources for which nobody can decide, because their owners left or never were.
func (s *Service) Orphans() []Ref { return orphans(s.Catalog()) }

// Remove deletes gone entities for good, as the catalog was at a revision. What they leave behind (grants, ownership)
// stays; whoever confirms has seen it in Departed.
func (s *Service) Remove(ctx context.Context, a Actor, refs []Ref, revision int64) error {
	if err := s.may(a); err != nil {
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
