package catalog

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/acp-io/acp/internal/message"
)

const (
	// provisionAttempts is how often a change of one entity is decided again because another one was written meanwhile.
	provisionAttempts = 5
	// removalWindow is the period in which Deprovision and deactivations remove at most RemovalLimit entities of a kind.
	removalWindow = time.Hour
)

// Provisioned returns a person or a group of the source SCIM, also a deactivated one.
func (s *Service) Provisioned(ref Ref) (Stored, bool) {
	x, ok := s.Entity(ref)
	return x, ok && x.provisioned()
}

// provisioned reports whether a SCIM client can read and change the entity.
func (x Stored) provisioned() bool { return x.Source == SCIM && (x.Gone.IsZero() || x.Deactivated) }

// wasAnother reports whether a person who is gone was another user of the SCIM client than the one of a record: providers assign the names of
// people who left to others, who must not get what was granted to the former.
func (x Stored) wasAnother(rec Record) bool {
	return x.Kind == KindPerson && x.Source == SCIM && x.ExternalID != "" && rec.ExternalID != "" && x.ExternalID != rec.ExternalID
}

// Provision creates or changes a person or a group of the source SCIM. The version is the version of the entity before the change; 0 means
// that the entity is new, or replaces one that is gone. A person replaces no other one who had the id. A deactivated
// person is gone until the client activates them. Only security
// administrators may call it, and not to gain authority themselves.
func (s *Service) Provision(ctx context.Context, a Actor, rec Record, version int64) (Stored, error) {
	if err := s.authorize(a); err != nil {
		return Stored{}, err
	}
	rec, err := rec.Normalize()
	if err != nil {
		return Stored{}, err
	}
	ref := rec.Ref()
	err = s.provision(ctx, a, func(v *view) (Diff, *Stored, error) {
		before, known := v.stored[ref]
		switch {
		case known && before.Source != SCIM && before.Gone.IsZero():
			return Diff{}, nil, refusal(ErrConflict, message.CatalogEntityOfSource(ref.String(), before.Source))
		case known && before.provisioned() && version == 0:
			return Diff{}, nil, refusal(ErrConflict, message.CatalogEntityExists(ref.String()))
		case known && version == 0 && before.wasAnother(rec):
			return Diff{}, nil, refusal(ErrConflict, message.CatalogPersonWasAnother(ref.ID, before.ExternalID))
		case version != 0 && (!known || !before.provisioned()):
			return Diff{}, nil, unknown(ref)
		case version != 0 && version != before.Version:
			return Diff{}, nil, changedSince()
		}
		d, after := provisioning(rec, before, known, s.Now())
		return d, after, nil
	})
	if err != nil {
		return Stored{}, err
	}
	x, _ := s.Entity(ref)
	return x, nil
}

// provisioning returns the change by which the source SCIM has a record, and the entity after it; nil if nothing changes. known reports
// whether there is an entity before the change, which may be gone.
func provisioning(rec Record, before Stored, known bool, now time.Time) (Diff, *Stored) {
	after := Stored{Record: rec, Source: SCIM}
	if rec.Deactivated {
		after.Gone = now
		if known && !before.Gone.IsZero() {
			after.Gone = before.Gone
		}
	}
	if known && before.Source == SCIM && before.Gone.Equal(after.Gone) && reflect.DeepEqual(before.Record, after.Record) {
		return Diff{}, nil
	}
	d := Diff{Source: SCIM}
	c := Change{Ref: rec.Ref(), Title: rec.Title}
	was, is := known && before.Gone.IsZero(), after.Gone.IsZero()
	switch {
	case was && !is:
		c.Authority = true
		d.Gone = []Change{c}
	case !known:
		d.Created = []Change{c}
	case was || !is:
		c.Fields, c.Authority = changes(before, after)
		d.Updated = []Change{c}
	default:
		c.Fields, c.Authority = changes(before, after)
		d.Returned = []Change{c}
	}
	return d, &after
}

// Deprovision removes a person or a group of the source SCIM: it is gone, with the grants that depend on it, until a security
// administrator deletes it. Only security administrators may call it.
func (s *Service) Deprovision(ctx context.Context, a Actor, ref Ref, version int64) error {
	if err := s.authorize(a); err != nil {
		return err
	}
	return s.provision(ctx, a, func(v *view) (Diff, *Stored, error) {
		x, known := v.stored[ref]
		switch {
		case !known || !x.provisioned():
			return Diff{}, nil, unknown(ref)
		case x.Version != version:
			return Diff{}, nil, changedSince()
		}
		d := Diff{Source: SCIM}
		if x.Gone.IsZero() {
			x.Gone = s.Now()
			d.Gone = []Change{{Ref: ref, Title: x.Title, Authority: true}}
		}
		x.Deactivated = false
		return d, &x, nil
	})
}

// provision makes the change of one entity that decide returns; nil means that nothing changes. It decides again if another entity
// was written meanwhile.
func (s *Service) provision(ctx context.Context, a Actor, decide func(*view) (Diff, *Stored, error)) error {
	err := s.Refresh(ctx)
	for range provisionAttempts {
		if err != nil {
			return err
		}
		v := s.view.Load()
		d, after, refused := decide(v)
		if refused != nil || after == nil {
			return refused
		}
		if len(d.Gone) > 0 {
			if err := v.limitRemovals(after.Kind, s.Now()); err != nil {
				return err
			}
		}
		w := Write{Put: []Stored{*after}}
		if err := refuseSelfGrant(v, v.with(w, v.revision), a); err != nil {
			return err
		}
		w.Ledger = v.lines(a.ID, d, w, s.Now())
		if err = s.write(ctx, v.state, w); !errors.Is(err, ErrChanged) {
			return err
		}
		err = s.Refresh(ctx)
	}
	return changedSince()
}

// limitRemovals refuses a further removal if RemovalLimit entities of a kind of the source SCIM were removed within removalWindow: a
// client that removes many is probably misconfigured.
func (s *state) limitRemovals(kind Kind, now time.Time) error {
	entities, removed := 0, 0
	for _, x := range s.stored {
		switch {
		case x.Source != SCIM || x.Kind != kind:
		case x.Gone.IsZero():
			entities++
		case now.Sub(x.Gone) < removalWindow:
			removed++
		}
	}
	if removed < RemovalLimit(entities+removed) {
		return nil
	}
	return refusal(ErrConflict, message.CatalogTooManyRemovals(removed))
}
