// Package gormstore keeps tickets, the outbox, the ledger and sessions in SQL through gorm; today in SQLite. It owns
// the schema and its migrations. It implements approval.Store and decides nothing about tickets itself.
package gormstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/glebarez/sqlite"
	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/acp-io/acp/internal/approval"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store implements approval.Store. SQLite has one writer at a time, so writes go through one connection, which
// begins its transactions as a writer; reads have connections of their own that cannot write.
type Store struct {
	w, r *gorm.DB
}

// OpenSQLite opens or creates the database file and brings its schema up to date.
func OpenSQLite(ctx context.Context, path string) (*Store, error) {
	if err := usable(path); err != nil {
		return nil, err
	}
	w, err := connect(path, url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "foreign_keys(1)", "synchronous(FULL)"}}, 1)
	if err != nil {
		return nil, openError(path, err)
	}
	s := &Store{w: w}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(openError(path, err), s.Close())
	}
	if s.r, err = connect(path, url.Values{"_pragma": {"busy_timeout(5000)", "query_only(1)"}}, 4); err != nil {
		return nil, errors.Join(openError(path, err), s.Close())
	}
	return s, nil
}

// usable finds out before SQLite does, because its own words ("unable to open database file") help nobody.
func usable(path string) error {
	dir := filepath.Dir(path)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return fmt.Errorf("database %s: its folder does not exist: create %s or change --database", path, dir)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("database %s: no permission to write: change the permissions or --database", path)
	}
	if err != nil {
		return fmt.Errorf("database %s cannot be written: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close database file: %w", err)
	}
	// SQLite keeps its journal beside the file.
	probe, err := os.CreateTemp(dir, ".acp-probe-*")
	if err != nil {
		return fmt.Errorf("database %s: its folder %s cannot be written: change the permissions or --database", path, dir)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func openError(path string, err error) error {
	if errors.Is(err, approval.ErrNewerSchema) {
		return err
	}
	return fmt.Errorf("database %s cannot be used: %w", path, err)
}

func connect(path string, opts url.Values, conns int) (*gorm.DB, error) {
	db, err := gorm.Open(sqlite.Open("file:"+(&url.URL{Path: path}).EscapedPath()+"?"+opts.Encode()), &gorm.Config{
		Logger: logger.Discard, SkipDefaultTransaction: true, TranslateError: false,
	})
	if err != nil {
		return nil, err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	return db, nil
}

func (s *Store) migrate(ctx context.Context) error {
	pool, err := s.w.DB()
	if err != nil {
		return err
	}
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, pool, dir)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if have > newest {
		return fmt.Errorf("the database has schema %d and this program knows %d: start the newer program again, or restore a backup: %w",
			have, newest, approval.ErrNewerSchema)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema from %d to %d: %w", have, newest, err)
	}
	return nil
}

// Close the connections.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*gorm.DB{s.r, s.w} {
		if db == nil {
			continue
		}
		pool, err := db.DB()
		if err == nil {
			err = pool.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Ping implements approval.Store; beginning as a writer finds a read-only file and a lock that is never released.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE ledger SET seq = seq WHERE seq = -1").Error
	})
}

// write runs f in one transaction and translates what the database says.
func (s *Store) write(ctx context.Context, f func(tx *gorm.DB) error) error {
	return storeError(s.w.WithContext(ctx).Transaction(f))
}

// read runs f on one consistent snapshot.
func (s *Store) read(ctx context.Context, f func(tx *gorm.DB) error) error {
	return storeError(s.r.WithContext(ctx).Transaction(f, &sql.TxOptions{ReadOnly: true}))
}
