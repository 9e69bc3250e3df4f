package database_test

import (
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/testenv"
)

func TestNewerSchemaIsRefused(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		exec(t, db, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999901010000, true)")
		if _, err := database.Open(t.Context(), dsn); !errors.Is(err, database.ErrNewerSchema) || !strings.Contains(err.Error(), "999901010000") {
			t.Errorf("a schema change that only a newer program knows is refused by name, got %v", err)
		}
	})
}

// An older program works on a schema whose changes record that it can, and on no other.
func TestCompatibleNewerSchema(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		if newer := db.NewerChanges(); len(newer) != 0 {
			t.Errorf("the program's own schema has changes that it does not know: %d", newer)
		}
		exec(t, db, "ALTER TABLE tickets ADD COLUMN colour TEXT NOT NULL DEFAULT ''")
		exec(t, db, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999901010000, true)")
		exec(t, db, "INSERT INTO schema_compatibility (version, oldest) VALUES (999901010000, 202611231710)")
		older, err := database.Open(t.Context(), dsn)
		if err != nil {
			t.Fatalf("the change records that this program can work on it: %v", err)
		}
		if newer := older.NewerChanges(); !slices.Equal(newer, []int64{999901010000}) {
			t.Errorf("changes that the program does not know: %d", newer)
		}
		if err := older.Close(); err != nil {
			t.Error(err)
		}
		exec(t, db, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999902010000, true)")
		exec(t, db, "INSERT INTO schema_compatibility (version, oldest) VALUES (999902010000, 999901010000)")
		if _, err := database.Open(t.Context(), dsn); !errors.Is(err, database.ErrNewerSchema) || !strings.Contains(err.Error(), "999902010000") {
			t.Errorf("a change that needs a newer program is refused by name, got %v", err)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is not a database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	dsn := testenv.Postgres(t)
	for name, tc := range map[string]struct{ reason, dsn, want, secret string }{
		"no database":    {"a file of something else", "sqlite:" + text, "file is not a database", ""},
		"no folder":      {"the folder is named", "sqlite:" + filepath.Join(t.TempDir(), "no", "acp.db"), "does not exist", ""},
		"no form":        {"the forms are named", "mysql://x", "use sqlite:FILE or postgres://", ""},
		"no server":      {"where nothing listens", "postgres://acp:hush@127.0.0.1:1/acp", "database postgres://127.0.0.1:1/acp cannot be used", "hush"},
		"no such user":   {"the server's word is passed on", strings.Replace(dsn, "acp:", "nobody:hush", 1), "authentication failed", "hush"},
		"no URL":         {"a password in what cannot be read is not shown", "postgres://acp:hush@127.0.0.1:port/acp", "cannot be read", "hush"},
		"no such option": {"nor in an option", "postgres://acp:hush@127.0.0.1/acp?sslmode=never", "cannot be read", "hush"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := database.Open(t.Context(), tc.dsn)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
			if tc.secret != "" && strings.Contains(err.Error(), tc.secret) {
				t.Errorf("%s: the message shows the password: %v", tc.reason, err)
			}
		})
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		if file, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
			dsn = "sqlite:" + filepath.Join(filepath.Dir(file), "a b%20?.db")
		}
		first, err := database.Open(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, first, "INSERT INTO sessions (token, data, expires_at) VALUES ('a', 'b', 1)")
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if n := count(t, databasetest.Open(t, dsn), "sessions"); n != 1 {
			t.Errorf("%d rows are there after opening again, want 1", n)
		}
	})
}

// TestOpenAtOnce checks that replicas of a new version can start together on an old database.
func TestOpenAtOnce(t *testing.T) {
	dsn := testenv.Postgres(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			db, err := database.Open(t.Context(), dsn)
			if err == nil {
				err = db.Close()
			}
			if err != nil {
				t.Errorf("one of several that start at once: %v", err)
			}
		})
	}
	wg.Wait()
}

// TestANewPasswordNeedsNoRestart changes the password in the server and then in the file: open connections go on, and
// those that are cut are opened again.
func TestANewPasswordNeedsNoRestart(t *testing.T) {
	dsn := testenv.Postgres(t)
	admin := databasetest.Open(t, dsn)
	role := "rotating_" + strings.ToLower(rand.Text())
	exec(t, admin, "CREATE ROLE "+role+" LOGIN SUPERUSER PASSWORD 'one'")
	defer exec(t, admin, "DROP ROLE "+role)
	var now atomic.Pointer[string]
	use := func(password string) {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(role, password)
		now.Store(new(u.String()))
	}
	use("one")
	db, err := database.OpenWithRefresh(t.Context(), *now.Load(), func() (string, error) { return *now.Load(), nil })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	read := func() error {
		return db.Read(t.Context(), func(tx *gorm.DB) error { return tx.Exec("SELECT 1").Error })
	}
	cut := func() {
		exec(t, admin, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '"+role+"'")
	}
	exec(t, admin, "ALTER ROLE "+role+" PASSWORD 'two'")
	if err := read(); err != nil {
		t.Errorf("an open connection failed after the password changed: %v", err)
	}
	cut()
	for range 3 { // One attempt may be spent on the connection that was cut.
		if err = read(); err == nil {
			t.Fatal("a connection with the old password was accepted")
		}
	}
	use("two")
	if err := read(); err != nil {
		t.Errorf("a connection with the new password failed: %v", err)
	}
}

func TestErrorsAreClassified(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		insert := func(tx *gorm.DB) error {
			return tx.Exec("INSERT INTO sessions (token, data, expires_at) VALUES ('a', 'b', 1)").Error
		}
		if err := db.Write(t.Context(), insert); err != nil {
			t.Fatal(err)
		}
		if err := db.Write(t.Context(), insert); !errors.Is(err, database.ErrConflict) {
			t.Errorf("a second row of the same key is a conflict, got %v", err)
		}
		if err := db.Read(t.Context(), insert); !errors.Is(err, database.ErrUnavailable) || !strings.Contains(database.Detail(err).Text, "read-only") {
			t.Errorf("what reads cannot write, got %v", err)
		}
		own := errors.New("own")
		if err := db.Write(t.Context(), func(*gorm.DB) error { return own }); err != own { //nolint:errorlint // it is the very same
			t.Errorf("an error of the caller is left alone, got %v", err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := db.Ping(t.Context()); err == nil {
			t.Error("Ping succeeded on a closed database")
		}
	})
}

func exec(t *testing.T, db *database.DB, sql string) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *gorm.DB) error { return tx.Exec(sql).Error }); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db *database.DB, table string) (n int64) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *gorm.DB) error { return tx.Table(table).Count(&n).Error }); err != nil {
		t.Fatal(err)
	}
	return n
}
