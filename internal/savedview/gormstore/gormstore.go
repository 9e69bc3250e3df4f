// Package gormstore stores saved views in SQL through gorm. It implements savedview.Store.
package gormstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/savedview"
)

// Store implements savedview.Store.
type Store struct{ db *database.DB }

var _ savedview.Store = (*Store)(nil)

// New returns a store in an open database.
func New(db *database.DB) *Store { return &Store{db} }

type row struct {
	ID      int64 `gorm:"primaryKey"`
	Person  string
	Page    savedview.Page
	Name    string
	Query   string
	SavedAt int64
	Link    string
}

func (row) TableName() string { return "saved_views" }

func (r row) view() savedview.View {
	return savedview.View{ID: r.ID, Page: r.Page, Name: r.Name, Query: r.Query, SavedAt: time.UnixMicro(r.SavedAt).UTC(), Link: r.Link}
}

// Views implements savedview.Store.
func (s *Store) Views(ctx context.Context, person string) ([]savedview.View, error) {
	var rows []row
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[row](tx, "SELECT * FROM saved_views WHERE person = ? ORDER BY saved_at DESC, id DESC", person)
		return err
	})
	out := make([]savedview.View, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.view())
	}
	return out, err
}

// Save implements savedview.Store.
func (s *Store) Save(ctx context.Context, person string, v savedview.View) (savedview.View, error) {
	err := s.db.Write(ctx, func(tx *gorm.DB) error {
		// The lock keeps two calls at once from both adding the last view that the limit admits.
		if err := database.Lock(tx, "saved views of "+person); err != nil {
			return err
		}
		r := row{Person: person, Page: v.Page, Name: v.Name, Query: v.Query, SavedAt: v.SavedAt.UnixMicro()}
		old, err := database.SelectOne[row](tx, "SELECT * FROM saved_views WHERE person = ? AND page = ? AND name = ?", person, v.Page, v.Name)
		if err != nil {
			return err
		}
		if old != nil {
			v.ID, v.Link = old.ID, old.Link
			_, err := database.Exec(tx, "UPDATE saved_views SET query = ?, saved_at = ? WHERE id = ?", r.Query, r.SavedAt, v.ID)
			return err
		}
		n, err := database.Number(tx, "SELECT COUNT(*) FROM saved_views WHERE person = ? AND page = ?", person, v.Page)
		if err != nil {
			return err
		}
		if n >= savedview.MaxViews {
			return savedview.ErrTooMany
		}
		v.Link = "" // a new view is not shared
		if err := tx.Create(&r).Error; err != nil {
			return err
		}
		v.ID = r.ID
		return nil
	})
	return v, err
}

// Delete implements savedview.Store.
func (s *Store) Delete(ctx context.Context, person string, id int64) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		n, err := database.Exec(tx, "DELETE FROM saved_views WHERE id = ? AND person = ?", id, person)
		if err == nil && n == 0 {
			err = savedview.ErrUnknown
		}
		return err
	})
}

// Share implements savedview.Store.
func (s *Store) Share(ctx context.Context, person string, id int64, link string) (savedview.View, error) {
	var v savedview.View
	err := s.db.Write(ctx, func(tx *gorm.DB) error {
		if _, err := database.Exec(tx, "UPDATE saved_views SET link = ? WHERE id = ? AND person = ? AND link = ''", link, id, person); err != nil {
			return err
		}
		r, err := database.SelectOne[row](tx, "SELECT * FROM saved_views WHERE id = ? AND person = ?", id, person)
		if err != nil {
			return err
		}
		if r == nil {
			return savedview.ErrUnknown
		}
		v = r.view()
		return nil
	})
	return v, err
}

// Unshare implements savedview.Store.
func (s *Store) Unshare(ctx context.Context, person string, id int64) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		n, err := database.Exec(tx, "UPDATE saved_views SET link = '' WHERE id = ? AND person = ?", id, person)
		if err == nil && n == 0 {
			err = savedview.ErrUnknown
		}
		return err
	})
}

// Shared implements savedview.Store.
func (s *Store) Shared(ctx context.Context, link string) (savedview.Shared, error) {
	if link == "" { // the link of every view that is not shared
		return savedview.Shared{}, savedview.ErrNotShared
	}
	var r *row
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		r, err = database.SelectOne[row](tx, "SELECT * FROM saved_views WHERE link = ?", link)
		return err
	})
	if err != nil {
		return savedview.Shared{}, err
	}
	if r == nil {
		return savedview.Shared{}, savedview.ErrNotShared
	}
	return savedview.Shared{View: r.view(), Person: r.Person}, nil
}
