// Package sqlite is the embedded flow store: one file, written by one collector and read by other processes at the same time. It
// contains the schema and all queries of the file. It may import internal/audit and database/sql, and no source of flows.
//
// The driver is github.com/glebarez/go-sqlite, which the portal's gorm dialect uses as well: it and modernc.org/sqlite register
// the same driver name, so a program that links both panics at start.
package sqlite

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
	"sync"
	"time"

	driver "github.com/glebarez/go-sqlite"
	"github.com/pressly/goose/v3"

	"github.com/acp-io/acp/internal/audit"
)

//go:embed migrations/*.sql
var migrations embed.FS

// These are primary result codes of SQLite, see https://www.sqlite.org/rescode.html.
const (
	codePerm     = 3
	codeReadOnly = 8
	codeIOErr    = 10
	codeFull     = 13
	codeCantOpen = 14
)

// Store is the flow store for the collector, which writes the file. It is safe for concurrent use.
type Store struct {
	queries
	db   *sql.DB
	path string
	now  func() time.Time

	// writing guards edges, which must contain committed edges only.
	writing sync.Mutex
	edges   *edgeCache
}

var _ audit.Store = (*Store)(nil)

// Open opens the file for writing, creates it if it is missing, and migrates its schema. It returns audit.ErrReadOnly if the file
// or its directory cannot be written, and an error if the schema is newer than this program.
func Open(ctx context.Context, path string) (*Store, error) {
	if err := ensureFile(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(path, "rwc", "journal_mode(wal)", "synchronous(normal)", "foreign_keys(1)", "busy_timeout(5000)"))
	if err != nil {
		return nil, fmt.Errorf("open flow store %s: %w", path, err)
	}
	// With one connection, writes of this process are serialized, and it never observes a partial transaction.
	db.SetMaxOpenConns(1)
	if err := migrate(ctx, db); err != nil {
		_ = db.Close() // the error of the migration is reported instead
		return nil, fmt.Errorf("prepare flow store %s: %w", path, writeError(err))
	}
	s := &Store{db: db, path: path, now: time.Now, edges: newEdgeCache()}
	s.queries.db = func(context.Context) (*sql.DB, error) { return db, nil }
	return s, nil
}

// Close waits for running queries and closes the file.
func (s *Store) Close() error { return s.db.Close() }

// ensureFile creates the file with access for its owner only: flows are sensitive, and SQLite itself would apply the umask.
func ensureFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open flow store %s: the folder %s does not exist, create it first: %w", path, filepath.Dir(path), err)
	default:
		return fmt.Errorf("%w: %w", audit.ErrReadOnly, err)
	}
}

func migrate(ctx context.Context, db *sql.DB) error {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, dir)
	if err != nil {
		return fmt.Errorf("load migrations: %w", err)
	}
	have, known, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if have > known {
		return fmt.Errorf("the schema has version %d and this program supports at most %d: use the newer program, or another file", have, known)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate schema: %w", err)
	}
	return nil
}

func dsn(path, mode string, pragmas ...string) string {
	q := url.Values{"mode": {mode}, "_pragma": pragmas, "_txlock": {"immediate"}}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

// writeError wraps errors of a store that cannot be written in audit.ErrReadOnly, and returns others unchanged.
func writeError(err error) error {
	var e *driver.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case codePerm, codeReadOnly, codeIOErr, codeFull, codeCantOpen:
			return fmt.Errorf("%w: %w", audit.ErrReadOnly, err)
		}
	}
	return err
}
