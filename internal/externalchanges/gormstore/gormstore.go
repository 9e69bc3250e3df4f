// Package gormstore stores in SQL which generations of ACP's objects the ledger has. It implements
// externalchanges.Store.
package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/externalchanges"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
)

// Store implements externalchanges.Store.
type Store struct{ db *database.DB }

// New returns a store in an open database.
func New(db *database.DB) *Store { return &Store{db} }

var _ externalchanges.Store = (*Store)(nil)

// filled is the name, without a kind, of the row that marks that the first comparison was made.
const filled = "filled"

const noteOwn = "INSERT INTO ledger_own (uid, generation) VALUES (?, ?) ON CONFLICT DO NOTHING"

var errMoved = errors.New("another portal has recorded the object")

// Rows implements externalchanges.Store.
func (s *Store) Rows(ctx context.Context) (map[externalchanges.Key]externalchanges.Row, bool, error) {
	var out map[externalchanges.Key]externalchanges.Row
	err := s.db.Read(ctx, func(tx *gorm.DB) error {
		out = map[externalchanges.Key]externalchanges.Row{}
		return database.Rows(tx, func(rows *sql.Rows) error {
			var r externalchanges.Row
			err := rows.Scan(&r.Kind, &r.Name, &r.UID, &r.Generation)
			out[r.Key] = r
			return err
		}, "SELECT kind, name, uid, generation FROM ledger_objects")
	})
	if err != nil {
		return nil, false, fmt.Errorf("read what the ledger knows of objects: %w", err)
	}
	mark := externalchanges.Key{Name: filled}
	_, ok := out[mark]
	delete(out, mark)
	return out, ok, nil
}

// Row implements externalchanges.Store.
func (s *Store) Row(ctx context.Context, k externalchanges.Key) (r *externalchanges.Row, err error) {
	err = s.db.Read(ctx, func(tx *gorm.DB) error {
		r, err = row(tx, k)
		return err
	})
	return r, err
}

func row(tx *gorm.DB, k externalchanges.Key) (*externalchanges.Row, error) {
	var out *externalchanges.Row
	err := database.Rows(tx, func(rows *sql.Rows) error {
		out = &externalchanges.Row{Key: k}
		return rows.Scan(&out.UID, &out.Generation)
	}, "SELECT uid, generation FROM ledger_objects WHERE kind = ? AND name = ?", k.Kind, k.Name)
	if err != nil {
		return nil, fmt.Errorf("read what the ledger knows of an object: %w", err)
	}
	return out, nil
}

// Fill implements externalchanges.Store.
func (s *Store) Fill(ctx context.Context, rows []externalchanges.Row) error {
	values := make([][]any, 0, len(rows)+1)
	for _, r := range append([]externalchanges.Row{{Key: externalchanges.Key{Name: filled}}}, rows...) {
		values = append(values, []any{r.Kind, r.Name, r.UID, r.Generation})
	}
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		if err := database.Lock(tx, "ledger objects"); err != nil {
			return err
		}
		if had, err := row(tx, externalchanges.Key{Name: filled}); err != nil || had != nil {
			return err
		}
		_, err := database.Insert(tx, "ledger_objects (kind, name, uid, generation)", "", values)
		return err
	})
}

// AddOwnChange implements externalchanges.Store.
func (s *Store) AddOwnChange(ctx context.Context, o externalchanges.OwnChange) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		_, err := database.Exec(tx, noteOwn, o.UID, o.Generation)
		return err
	})
}

// OwnChanges implements externalchanges.Store.
func (s *Store) OwnChanges(ctx context.Context, uids map[string]bool) (own map[externalchanges.OwnChange]bool, err error) {
	err = s.db.Read(ctx, func(tx *gorm.DB) error {
		own, err = ownChanges(tx, uids)
		return err
	})
	return own, err
}

func ownChanges(tx *gorm.DB, uids map[string]bool) (map[externalchanges.OwnChange]bool, error) {
	out := map[externalchanges.OwnChange]bool{}
	for uid := range uids {
		err := database.Rows(tx, func(rows *sql.Rows) error {
			o := externalchanges.OwnChange{UID: uid}
			err := rows.Scan(&o.Generation)
			out[o] = true
			return err
		}, "SELECT generation FROM ledger_own WHERE uid = ?", uid)
		if err != nil {
			return nil, fmt.Errorf("read the portal's own changes: %w", err)
		}
	}
	return out, nil
}

// Record implements externalchanges.Store.
func (s *Store) Record(ctx context.Context, k externalchanges.Key, o externalchanges.Observation) (bool, error) {
	err := s.db.Write(ctx, func(tx *gorm.DB) error {
		if err := database.Lock(tx, "ledger object "+k.Kind+"/"+k.Name); err != nil {
			return err
		}
		had, err := row(tx, k)
		if err != nil {
			return err
		}
		if (had == nil) != (o.Before == nil) || had != nil && *had != *o.Before {
			return errMoved
		}
		own, err := ownChanges(tx, o.UIDs())
		if err != nil {
			return err
		}
		if err := replace(tx, k, o); err != nil {
			return err
		}
		return ledgerstore.Append(tx, o.Lines(own)...) // The ledger is written last, because its writers wait for each other.
	})
	if errors.Is(err, errMoved) {
		return false, nil
	}
	return err == nil, err
}

// replace replaces what is recorded about an object. If the object exists, the records of the portal's own changes are
// no longer needed. If it does not exist, its deletion is marked as recorded, because another portal may have observed
// it, too.
func replace(tx *gorm.DB, k externalchanges.Key, o externalchanges.Observation) error {
	for uid := range o.UIDs() {
		keep, last := externalchanges.Deletion, int64(0)
		if o.Current != nil && o.Current.UID == uid {
			last = o.Current.Generation
		} else {
			keep, last = externalchanges.Recorded, externalchanges.Deletion
			if _, err := database.Exec(tx, noteOwn, uid, externalchanges.Recorded); err != nil {
				return err
			}
		}
		if _, err := database.Exec(tx, "DELETE FROM ledger_own WHERE uid = ? AND generation <= ? AND generation <> ?", uid, last, keep); err != nil {
			return err
		}
	}
	if o.Current == nil {
		_, err := database.Exec(tx, "DELETE FROM ledger_objects WHERE kind = ? AND name = ?", k.Kind, k.Name)
		return err
	}
	_, err := database.Exec(
		tx,
		"INSERT INTO ledger_objects (kind, name, uid, generation) VALUES (?, ?, ?, ?) ON CONFLICT (kind, name) "+
			"DO UPDATE SET uid = excluded.uid, generation = excluded.generation",
		k.Kind,
		k.Name,
		o.Current.UID,
		o.Current.Generation,
	)
	return err
}
