package database

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"
)

// migrations holds one list of schema changes for both databases. A file is named YYYYMMDDhhmm_PACKAGE_what.sql after
// the time at which it was written, and its statements are never changed once it is released. There is no way back: a
// change is undone by another change. Programs of the previous release work on the changed schema, during a rolling
// update and after a rollback, so a change adds tables, and columns with defaults; it removes or renames only what the
// previous release does not use. With its last statement, each change records the oldest schema whose programs can work
// on the changed one (see compatibilityTable):
//
//	INSERT INTO schema_compatibility (version, oldest) VALUES (202612010900, 202611231710);
//
// A file contains SQL that both databases understand (integers are BIGINT), and these placeholders:
//
//	SERIAL_KEY  a column that numbers its rows and is the primary key
//	NUMBER_KEY  a number that the program assigns and that is the primary key
//	BYTES       binary data
//	-- +sqlite  (or -- +postgres) before a statement, up to its semicolon: the statement is for this database only
//
//go:embed migrations/*.sql
var migrations embed.FS

func (db *DB) migrate(ctx context.Context) (err error) {
	pool, err := db.w.DB()
	if err != nil {
		return err
	}
	if db.postgres {
		// Replicas of a new version start together. One of them migrates; the others wait for this lock and then find
		// nothing to do.
		alone, err := pool.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, alone.Close()) }()
		if _, err := alone.ExecContext(ctx, "SELECT pg_advisory_lock(hashtextextended('schema', 0))"); err != nil {
			return err
		}
		defer func() {
			_, e := alone.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock_all()")
			err = errors.Join(err, e)
		}()
	}
	return db.migrateAlone(ctx, pool)
}

func (db *DB) migrateAlone(ctx context.Context, pool *sql.DB) error {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	// Branches add migrations independently, so a database may see a higher number before a lower one.
	dialect := goose.DialectSQLite3
	if db.postgres {
		dialect = goose.DialectPostgres
	}
	p, err := goose.NewProvider(
		dialect,
		pool,
		dialectFS{dir, db.postgres},
		goose.WithAllowOutofOrder(true),
		goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(fillWords()),
	)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := p.GetDBVersion(ctx); err != nil { // creates goose's table
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if _, err := pool.ExecContext(ctx, compatibilityTable); err != nil {
		return fmt.Errorf("create the table of compatible schemas: %w", err)
	}
	if db.newer, err = db.newerChanges(ctx, p.ListSources()); err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	return nil
}

// compatibilityTable creates the table in which a schema change records the oldest schema whose programs can work on the
// changed one. It is not a migration, because programs that only read goose's table refuse a change that they do not know.
const compatibilityTable = "CREATE TABLE IF NOT EXISTS schema_compatibility (version BIGINT PRIMARY KEY, oldest BIGINT NOT NULL)"

// newerChanges returns the schema changes of the database that this program does not have. The error is ErrNewerSchema
// if one of them does not record that programs with the schema of this program can work on it.
func (db *DB) newerChanges(ctx context.Context, sources []*goose.Source) (newer []int64, err error) {
	r := db.w.WithContext(ctx)
	have, err := Select[int64](r, "SELECT version_id FROM goose_db_version WHERE is_applied AND version_id > 0 ORDER BY version_id")
	if err != nil {
		return nil, fmt.Errorf("read the schema's version: %w", err)
	}
	known := make(map[int64]bool, len(sources))
	for _, s := range sources {
		known[s.Version] = true
	}
	for _, v := range have {
		if known[v] {
			continue
		}
		oldest, err := Select[int64](r, "SELECT oldest FROM schema_compatibility WHERE version = ?", v)
		if err != nil {
			return nil, fmt.Errorf("read which programs can use schema change %d: %w", v, err)
		}
		if len(oldest) != 1 || !known[oldest[0]] {
			return nil, fmt.Errorf(
				"the database has schema change %d, which this program does not know: start the newer program again, or restore a backup: %w",
				v,
				ErrNewerSchema,
			)
		}
		newer = append(newer, v)
	}
	return newer, nil
}

// dialectFS serves the migrations in the SQL dialect of one database.
type dialectFS struct {
	fs.FS
	postgres bool
}

func (s dialectFS) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return &dialectFile{f, strings.NewReader(toDialect(string(text), s.postgres))}, nil
}

type dialectFile struct {
	fs.File
	text io.Reader
}

func (f *dialectFile) Read(p []byte) (int, error) { return f.text.Read(p) }

func toDialect(text string, postgres bool) string {
	other := "-- +postgres"
	words := strings.NewReplacer("SERIAL_KEY", "INTEGER PRIMARY KEY AUTOINCREMENT", "NUMBER_KEY", "INTEGER PRIMARY KEY", "BYTES", "BLOB")
	if postgres {
		other = "-- +sqlite"
		words = strings.NewReplacer("SERIAL_KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "NUMBER_KEY", "BIGINT PRIMARY KEY", "BYTES", "BYTEA")
	}
	var out strings.Builder
	skip := false
	for line := range strings.Lines(text) {
		end := strings.TrimSpace(line)
		skip = skip || end == other
		if !skip {
			out.WriteString(line)
		}
		skip = skip && !strings.HasSuffix(end, ";")
	}
	return words.Replace(out.String())
}
