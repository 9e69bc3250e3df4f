// Package gormstore stores the catalog in SQL with gorm. It implements catalog.Store, makes no decisions, and owns the
// tables catalog_*.
package gormstore

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/database"
	ledger "github.com/acp-io/acp/internal/ledger/gormstore"
)

// Store implements catalog.Store.
type Store struct{ db *database.DB }

var _ catalog.Store = (*Store)(nil)

// New returns a store in an open database.
func New(db *database.DB) *Store { return &Store{db} }

// rowsPerStatement keeps the number of a statement's parameters far below the databases' limits.
const rowsPerStatement = 500

// Revision implements catalog.Store.
func (s *Store) Revision(ctx context.Context) (rev int64, err error) {
	err = s.db.Read(ctx, func(tx *gorm.DB) (err error) { rev, err = revision(tx); return err })
	return rev, err
}

func revision(tx *gorm.DB) (int64, error) {
	rev, err := database.SelectOne[int64](tx, "SELECT revision FROM catalog_revision WHERE id = 1")
	if err != nil {
		return 0, err
	}
	if rev == nil {
		return 0, errors.New("the catalog has no revision")
	}
	return *rev, nil
}

// Load implements catalog.Store.
func (s *Store) Load(ctx context.Context) (out []catalog.Stored, rev int64, err error) {
	var rows []entityRow
	err = s.db.Read(ctx, func(tx *gorm.DB) (err error) {
		if rev, err = revision(tx); err != nil {
			return err
		}
		rows, err = database.Select[entityRow](tx, "SELECT * FROM catalog_entities")
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	out = make([]catalog.Stored, 0, len(rows))
	for _, row := range rows {
		x := catalog.Stored{Source: row.Source, Gone: database.Instant(row.GoneAt), Version: row.Version}
		if err := json.Unmarshal([]byte(row.Record), &x.Record); err != nil {
			return nil, 0, fmt.Errorf("read %s/%s: %w", row.Kind, row.ID, err)
		}
		out = append(out, x)
	}
	return out, rev, nil
}

// Write implements catalog.Store.
func (s *Store) Write(ctx context.Context, at int64, w catalog.Write) (int64, error) {
	rows := make([]entityRow, 0, len(w.Put))
	for _, x := range w.Put {
		record, err := json.Marshal(x.Record)
		if err != nil {
			return 0, fmt.Errorf("write %s: %w", x.Ref(), err)
		}
		rows = append(
			rows,
			entityRow{Kind: string(x.Kind), ID: x.ID, Source: x.Source, Record: string(record), GoneAt: database.Micros(x.Gone), Version: at + 1},
		)
	}
	err := s.db.Write(ctx, func(tx *gorm.DB) error {
		n, err := database.Exec(tx, "UPDATE catalog_revision SET revision = ? WHERE id = 1 AND revision = ?", at+1, at)
		if err != nil {
			return err
		}
		if n != 1 {
			return catalog.ErrChanged
		}
		if w.Preview != "" {
			n, err := database.Exec(tx, "DELETE FROM catalog_previews WHERE token = ?", hash(w.Preview))
			if err != nil {
				return err
			}
			if n != 1 {
				return catalog.ErrNotFound
			}
		}
		if len(rows) > 0 {
			if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).CreateInBatches(rows, rowsPerStatement).Error; err != nil {
				return err
			}
		}
		for _, ref := range w.Remove {
			if _, err := database.Exec(tx, "DELETE FROM catalog_entities WHERE kind = ? AND id = ?", ref.Kind, ref.ID); err != nil {
				return err
			}
		}
		return ledger.Append(tx, w.Ledger...)
	})
	if err != nil {
		return 0, err
	}
	return at + 1, nil
}

// KeepPreview implements catalog.Store.
func (s *Store) KeepPreview(ctx context.Context, p catalog.Preview, dropBefore time.Time) error {
	content, err := packed(p.Content)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		if _, err := database.Exec(
			tx,
			"DELETE FROM catalog_previews WHERE source = ? AND actor = ? OR created_at < ?",
			p.Source,
			p.Actor,
			database.Micros(dropBefore),
		); err != nil {
			return err
		}
		return tx.Create(
			&previewRow{Token: hash(p.Token), Source: p.Source, Actor: p.Actor, Revision: p.Revision, Reading: content, CreatedAt: database.Micros(p.Created)},
		).Error
	})
}

// Preview implements catalog.Store.
func (s *Store) Preview(ctx context.Context, token string) (catalog.Preview, error) {
	var row *previewRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		row, err = database.SelectOne[previewRow](tx, "SELECT * FROM catalog_previews WHERE token = ?", hash(token))
		return err
	})
	if err != nil {
		return catalog.Preview{}, err
	}
	if row == nil {
		return catalog.Preview{}, catalog.ErrNotFound
	}
	p := catalog.Preview{Token: token, Source: row.Source, Actor: row.Actor, Revision: row.Revision, Created: database.Instant(row.CreatedAt)}
	return p, unpack(row.Reading, &p.Content)
}

// KeepStatus implements catalog.Store.
func (s *Store) KeepStatus(ctx context.Context, st catalog.Status) error {
	text, err := json.Marshal(st)
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", st.Source, err)
	}
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&sourceRow{Source: st.Source, Status: string(text)}).Error
	})
}

// Statuses implements catalog.Store.
func (s *Store) Statuses(ctx context.Context) ([]catalog.Status, error) {
	var rows []sourceRow
	if err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[sourceRow](tx, "SELECT * FROM catalog_sources ORDER BY source")
		return err
	}); err != nil {
		return nil, err
	}
	out := make([]catalog.Status, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal([]byte(row.Status), &out[i]); err != nil {
			return nil, fmt.Errorf("read the status of %s: %w", row.Source, err)
		}
	}
	return out, nil
}

func packed(r catalog.SourceContent) ([]byte, error) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if err := errors.Join(json.NewEncoder(z).Encode(r), z.Close()); err != nil {
		return nil, fmt.Errorf("pack the content of a source: %w", err)
	}
	return buf.Bytes(), nil
}

func unpack(data []byte, r *catalog.SourceContent) error {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(z)
	}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil {
		return fmt.Errorf("unpack the content of a source: %w", err)
	}
	return nil
}
