// Package databasetest opens SQLite and PostgreSQL databases for tests.
package databasetest

import (
	"path/filepath"
	"testing"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/testenv"
)

// Each runs a test on SQLite and on PostgreSQL, with the DSN of an empty database.
func Each(t *testing.T, f func(t *testing.T, dsn string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { f(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { f(t, testenv.Postgres(t)) })
}

// SQLite returns the DSN of a file that is removed when the test ends.
func SQLite(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "acp.db") }

// Open opens a database and closes it when the test ends.
func Open(t testing.TB, dsn string) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
