// Package gormstore stores access packages in SQL through gorm. It implements accesspackage.Store.
package gormstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
)

// Store implements accesspackage.Store.
type Store struct{ db *database.DB }

var _ accesspackage.Store = (*Store)(nil)

// New returns a store in an open database.
func New(db *database.DB) *Store { return &Store{db} }

type packageRow struct {
	Name        string `gorm:"primaryKey"`
	Version     int
	Title       string
	Description string
	Team        string
	Chain       accesspackage.Chain
	Resources   int
	PublishedAt int64
	ArchivedAt  int64
	ArchivedBy  string
}

func (packageRow) TableName() string { return "access_packages" }

type versionRow struct {
	Package     string `gorm:"primaryKey"`
	Number      int    `gorm:"primaryKey;autoIncrement:false"`
	Content     string
	Digest      string
	Ticket      int64
	PublishedBy string
	PublishedAt int64
}

func (versionRow) TableName() string { return "access_package_versions" }

func (r versionRow) version() accesspackage.Version {
	return accesspackage.Version{Number: r.Number, Content: json.RawMessage(r.Content), Digest: r.Digest, Ticket: r.Ticket, PublishedBy: r.PublishedBy,
		PublishedAt: database.Instant(r.PublishedAt)}
}

// Package implements accesspackage.Store.
func (s *Store) Package(ctx context.Context, name string) (out accesspackage.Package, err error) {
	err = s.db.Read(ctx, func(tx *gorm.DB) error {
		p, err := find(tx, name)
		if err != nil {
			return err
		}
		v, err := version(tx, name, p.Version)
		out = accesspackage.Package{Name: name, Current: v, ArchivedAt: database.Instant(p.ArchivedAt), ArchivedBy: p.ArchivedBy}
		return err
	})
	return out, err
}

func find(tx *gorm.DB, name string) (packageRow, error) {
	p, err := database.SelectOne[packageRow](tx, "SELECT * FROM access_packages WHERE name = ?", name)
	switch {
	case err != nil:
		return packageRow{}, err
	case p == nil:
		return packageRow{}, accesspackage.ErrUnknown
	}
	return *p, nil
}

func version(tx *gorm.DB, name string, number int) (accesspackage.Version, error) {
	r, err := database.SelectOne[versionRow](tx, "SELECT * FROM access_package_versions WHERE package = ? AND number = ?", name, number)
	switch {
	case err != nil:
		return accesspackage.Version{}, err
	case r == nil:
		return accesspackage.Version{}, accesspackage.ErrUnknown
	}
	return r.version(), nil
}

// Version implements accesspackage.Store.
func (s *Store) Version(ctx context.Context, name string, number int) (out accesspackage.Version, err error) {
	err = s.db.ReadOne(ctx, func(tx *gorm.DB) error {
		out, err = version(tx, name, number)
		return err
	})
	return out, err
}

// Versions implements accesspackage.Store.
func (s *Store) Versions(ctx context.Context, name string, limit int) ([]accesspackage.Version, error) {
	var rows []versionRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[versionRow](tx, "SELECT * FROM access_package_versions WHERE package = ? ORDER BY number DESC LIMIT ?", name, limit)
		return err
	})
	out := make([]accesspackage.Version, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.version())
	}
	return out, err
}

// List implements accesspackage.Store.
func (s *Store) List(ctx context.Context) ([]accesspackage.Summary, error) {
	var rows []packageRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[packageRow](tx, "SELECT * FROM access_packages ORDER BY name")
		return err
	})
	out := make([]accesspackage.Summary, 0, len(rows))
	for _, r := range rows {
		out = append(out, accesspackage.Summary{Name: r.Name, Title: r.Title, Description: r.Description, Team: r.Team, Chain: r.Chain, Version: r.Version,
			Resources: r.Resources, PublishedAt: database.Instant(r.PublishedAt), Archived: r.ArchivedAt > 0})
	}
	return out, err
}

// Publish implements accesspackage.Store.
func (s *Store) Publish(ctx context.Context, p accesspackage.Publication) error {
	spec, err := accesspackage.ParseSpec(p.Content)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		// The lock keeps two publications at once from both replacing one version, or adding the last package that the limit admits.
		if err := database.Lock(tx, "access packages"); err != nil {
			return err
		}
		done, err := database.Number(tx, "SELECT COUNT(*) FROM access_package_versions WHERE ticket = ?", p.Ticket)
		if err != nil || done > 0 {
			return err
		}
		had, err := database.SelectOne[packageRow](tx, "SELECT * FROM access_packages WHERE name = ?", p.Name)
		if err != nil {
			return err
		}
		if err := checkBase(tx, had, p.Base); err != nil {
			return err
		}
		v := versionRow{Package: p.Name, Number: p.Base + 1, Content: string(p.Content), Digest: accesspackage.Digest(p.Content), Ticket: p.Ticket,
			PublishedBy: p.By, PublishedAt: database.Micros(p.At)}
		if err := tx.Create(&v).Error; err != nil {
			return err
		}
		r := packageRow{Name: p.Name, Version: v.Number, Title: spec.Title, Description: spec.Description, Team: spec.Team, Chain: spec.Chain,
			Resources: len(spec.Resources), PublishedAt: v.PublishedAt}
		if err := tx.Save(&r).Error; err != nil {
			return err
		}
		if err := queueUpdate(tx, p.Name, v.Number, spec, p.At); err != nil {
			return err
		}
		return ledgerstore.Append(tx, ledger.Entry{At: p.At, Actor: p.By, Action: "package.published", Object: p.Name, Details: map[string]string{
			"version": strconv.Itoa(v.Number), "digest": v.Digest, "ticket": fmt.Sprintf("T-%d", p.Ticket)}})
	})
}

// checkBase checks that a publication replaces the current version of a package, and adds one only below the limit.
func checkBase(tx *gorm.DB, had *packageRow, base int) error {
	switch {
	case had == nil && base != 0, had != nil && (had.Version != base || had.ArchivedAt > 0):
		return accesspackage.ErrStale
	case had != nil:
		return nil
	}
	n, err := database.Number(tx, "SELECT COUNT(*) FROM access_packages")
	if err == nil && n >= accesspackage.MaxPackages {
		err = accesspackage.ErrTooMany
	}
	return err
}

// Archive implements accesspackage.Store.
func (s *Store) Archive(ctx context.Context, name, by string, at time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		if err := database.Lock(tx, "access packages"); err != nil {
			return err
		}
		p, err := find(tx, name)
		if err != nil || p.ArchivedAt > 0 {
			return err
		}
		if _, err := database.Exec(
			tx,
			"UPDATE access_packages SET archived_at = ?, archived_by = ? WHERE name = ?",
			database.Micros(at),
			by,
			name,
		); err != nil {
			return err
		}
		return ledgerstore.Append(tx, ledger.Entry{At: at, Actor: by, Action: "package.archived", Object: name,
			Details: map[string]string{"version": strconv.Itoa(p.Version)}})
	})
}
