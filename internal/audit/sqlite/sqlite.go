// Package sqlite is the embedded flow store: one file, written by one collector, read by other processes at the same time.
// It owns the schema and every query of that file. It may import internal/audit and database/sql, and nothing that
// knows where flows come from.
//
// The driver is github.com/glebarez/go-sqlite, the one under the portal's gorm dialect: it and modernc.org/sqlite register
// the same driver name, and a program that links both panics at start.
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

// SQLite's primary result codes, see https://www.sqlite.org/rescode.html.
const (
	codePerm     = 3
	codeReadOnly = 8
	codeIOErr    = 10
	codeFull     = 13
	codeCantOpen = 14
)

// Store is the collector's side of the file. It is safe for concurrent use.
type Store struct {
	queries
	db   *sql.DB
	path string
	now  func() time.Time

	// writing guards edges, which must not be ahead of what is committed.
	writing sync.Mutex
	edges   *edgeCache
}

var _ audit.Store = (*Store)(nil)

// Open opens the file for writing, creates it when it is missing, and brings its schema up to date. It returns
// audit.ErrReadOnly when the file or its folder cannot be written, and refuses a schema newer than this program.
func Open(ctx context.Context, path string) (*Store, error) {
	if err := ensureFile(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn(path, "rwc", "journal_mode(wal)", "synchronous(normal)", "foreign_keys(1)", "busy_timeout(5000)"))
	if err != nil {
		return nil, fmt.Errorf("open flow store %s: %w", path, err)
	}
	// One connection: writes never wait for each other inside the process, and a transaction is never half visible to it.
	db.SetMaxOpenConns(1)
	if err := migrate(ctx, db); err != nil {
		_ = db.Close() // the reason why it cannot be used is what gets reported
		return nil, fmt.Errorf("prepare flow store %s: %w", path, writeError(err))
	}
	s := &Store{db: db, path: path, now: time.Now, edges: newEdgeCache()}
	s.queries.db = func(context.Context) (*sql.DB, error) { return db, nil }
	return s, nil
}

// Close waits for running queries and closes the file.
func (s *Store) Close() error { return s.db.Close() }

// ensureFile creates the file readable by its owner only: flows are sensitive, and SQLite itself would use the umask.
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
		return fmt.Errorf("the schema has version %d and this program knows up to %d: use the newer program, or another file", have, known)
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

// writeError tells apart a store that refuses to be written from everything else.
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
