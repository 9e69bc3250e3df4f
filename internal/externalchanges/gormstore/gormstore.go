// Package gormstore stores in SQL which generations of ACP's objects, with their contents, and which instructions about waves the ledger has.
// It implements externalchanges.Store.
package gormstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

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
		return nil, false, fmt.Errorf("read what the ledger records of objects: %w", err)
	}
	mark := externalchanges.Key{Name: filled}
	_, ok := out[mark]
	delete(out, mark)
	return out, ok, nil
}

// Object implements externalchanges.Store.
func (s *Store) Object(ctx context.Context, k externalchanges.Key) (o *externalchanges.RecordedObject, err error) {
	err = s.db.Read(ctx, func(tx *gorm.DB) error {
		o, err = object(tx, k)
		return err
	})
	return o, err
}

func object(tx *gorm.DB, k externalchanges.Key) (*externalchanges.RecordedObject, error) {
	var out *externalchanges.RecordedObject
	err := database.Rows(tx, func(rows *sql.Rows) error {
		out = &externalchanges.RecordedObject{Row: externalchanges.Row{Key: k}}
		var spec string
		var created, at int64
		if err := rows.Scan(&out.UID, &out.Generation, &spec, &created, &at); err != nil {
			return err
		}
		if spec != "" {
			out.Spec = json.RawMessage(spec)
		}
		out.Created, out.At = fromMicro(created), fromMicro(at)
		return nil
	}, "SELECT o.uid, o.generation, coalesce(c.spec, ''), coalesce(c.created_at, 0), coalesce(c.recorded_at, 0) FROM ledger_objects o "+
		"LEFT JOIN ledger_contents c ON "+ofObject+" WHERE o.kind = ? AND o.name = ?", k.Kind, k.Name)
	if err != nil {
		return nil, fmt.Errorf("read what the ledger records of an object: %w", err)
	}
	return out, nil
}

// ofObject joins the content c of an object o that is recorded. A content of another generation may be there, because earlier versions of the
// portal do not change it.
const ofObject = "c.kind = o.kind AND c.name = o.name AND c.uid = o.uid AND c.generation = o.generation"

// micro returns an instant as microseconds since 1970; 0 for the zero time.
func micro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// WithoutContent implements externalchanges.Store.
func (s *Store) WithoutContent(ctx context.Context) ([]externalchanges.Row, error) {
	var out []externalchanges.Row
	err := s.db.Read(ctx, func(tx *gorm.DB) error {
		out = nil
		return database.Rows(tx, func(rows *sql.Rows) error {
			var r externalchanges.Row
			err := rows.Scan(&r.Kind, &r.Name, &r.UID, &r.Generation)
			out = append(out, r)
			return err
		}, "SELECT o.kind, o.name, o.uid, o.generation FROM ledger_objects o LEFT JOIN ledger_contents c ON "+ofObject+
			" WHERE o.kind <> '' AND c.kind IS NULL ORDER BY o.kind, o.name")
	})
	if err != nil {
		return nil, fmt.Errorf("read of which objects the ledger has no content: %w", err)
	}
	return out, nil
}

// AddContents implements externalchanges.Store.
func (s *Store) AddContents(ctx context.Context, objects []externalchanges.RecordedObject) error {
	if len(objects) == 0 {
		return nil
	}
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		for _, o := range objects {
			if err := putContent(tx, o, " WHERE ledger_contents.uid <> excluded.uid OR ledger_contents.generation < excluded.generation"); err != nil {
				return err
			}
		}
		return nil
	})
}

// putContent records the content of an object. where limits which other content it replaces.
func putContent(tx *gorm.DB, o externalchanges.RecordedObject, where string) error {
	_, err := database.Exec(
		tx,
		"INSERT INTO ledger_contents (kind, name, uid, generation, spec, created_at, recorded_at) VALUES (?, ?, ?, ?, ?, ?, ?) "+
			"ON CONFLICT (kind, name) DO UPDATE SET uid = excluded.uid, generation = excluded.generation, spec = excluded.spec, "+
			"created_at = excluded.created_at, recorded_at = excluded.recorded_at"+where,
		o.Kind, o.Name, o.UID, o.Generation, string(o.Spec), micro(o.Created), micro(o.At),
	)
	return err
}

// Watched implements externalchanges.Store.
func (s *Store) Watched(ctx context.Context) (at time.Time, err error) {
	err = s.db.Read(ctx, func(tx *gorm.DB) error {
		us, err := database.Number(tx, "SELECT at FROM ledger_watched WHERE id = 1")
		at = fromMicro(us)
		return err
	})
	if err != nil {
		return at, fmt.Errorf("read until when the ledger has the changes of the host cluster: %w", err)
	}
	return at, nil
}

// SetWatched implements externalchanges.Store.
func (s *Store) SetWatched(ctx context.Context, at time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		_, err := database.Exec(tx, "INSERT INTO ledger_watched (id, at) VALUES (1, ?) ON CONFLICT (id) "+
			"DO UPDATE SET at = excluded.at WHERE ledger_watched.at < excluded.at", micro(at))
		return err
	})
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
		if had, err := object(tx, externalchanges.Key{Name: filled}); err != nil || had != nil {
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
		had, err := object(tx, k)
		if err != nil {
			return err
		}
		if (had == nil) != (o.Before == nil) || had != nil && had.Row != o.Before.Row {
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
		for _, table := range []string{"ledger_objects", "ledger_contents"} {
			if _, err := database.Exec(tx, "DELETE FROM "+table+" WHERE kind = ? AND name = ?", k.Kind, k.Name); err != nil {
				return err
			}
		}
		return nil
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
	if err != nil || o.Current.Spec == nil {
		return err
	}
	return putContent(tx, externalchanges.RecordedObject{Row: o.Current.Row, Content: o.Current.Content, At: o.ReadAt}, "")
}
