package backup

import (
	"archive/zip"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// TestEveryTable: a migration that adds a table has to say whether a backup contains it.
func TestEveryTable(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
		if db.Postgres() {
			query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
		}
		var have []string
		err := db.Read(t.Context(), func(tx *gorm.DB) error {
			return database.Rows(tx, func(rows *sql.Rows) error {
				var name string
				err := rows.Scan(&name)
				have = append(have, name)
				return err
			}, query)
		})
		if err != nil {
			t.Fatal(err)
		}
		known := slices.Collect(maps.Keys(leftOut()))
		for _, x := range tables() {
			known = append(known, x.name)
		}
		slices.Sort(have)
		slices.Sort(known)
		if d := cmp.Diff(known, have); d != "" {
			t.Errorf("tables that a backup contains or leaves out, and those of the schema (-known +schema):\n%s", d)
		}
	})
}

func backedUp(t *testing.T, db *database.DB) string {
	t.Helper()
	return backedUpAt(t, db, now)
}

func backedUpAt(t *testing.T, db *database.DB, at time.Time) string {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "acp.backup")
	// The host cluster is empty; TestRestoredBackupDoesNotRestoreRevokedGrants in cmd/portal has a real one.
	if _, err := Write(
		t.Context(),
		Source{Database: db, Host: fake.NewClientBuilder().WithScheme(scheme).Build(), Version: "test", Now: func() time.Time { return at }},
		path,
	); err != nil {
		t.Fatal(err)
	}
	return path
}

func restored(t *testing.T, path string, db *database.DB, mode Mode) (Report, error) {
	t.Helper()
	a, err := Open(path)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = a.Close() }() // it was only read
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return Restore(
		t.Context(),
		a,
		Target{Database: db, Host: fake.NewClientBuilder().WithScheme(scheme).Build(), Mode: mode, Withheld: io.Discard, Now: func() time.Time { return now }},
	)
}

// contents returns the rows of all tables that a backup contains, without the line of the restore.
func contents(t *testing.T, db *database.DB) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := db.Read(t.Context(), func(tx *gorm.DB) error {
		for _, x := range tables() {
			cols, err := columns(tx, db.Postgres(), x.name)
			if err != nil {
				return err
			}
			for row, err := range rowsOf(tx, x, cols) {
				if err != nil {
					return err
				}
				if text := fmt.Sprintf("%#v", row); !strings.Contains(text, ActionRestored) {
					out[x.name] = append(out[x.name], text)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRoundTrip: from each database into each, everything that a backup contains arrives unchanged, and new rows get new numbers.
// An older program cannot back up tables that it does not know.
func TestNewerSchemaIsNotBackedUp(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		err := db.Write(t.Context(), func(tx *gorm.DB) error {
			if _, err := database.Exec(tx, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999901010000, true)"); err != nil {
				return err
			}
			_, err := database.Exec(tx, "INSERT INTO schema_compatibility (version, oldest) VALUES (999901010000, 202611231710)")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "acp.backup")
		source := Source{Database: databasetest.Open(t, dsn), Host: fake.NewClientBuilder().Build(), Version: "test", Now: func() time.Time { return now }}
		if _, err := Write(t.Context(), source, path); !errors.Is(err, database.ErrNewerSchema) {
			t.Errorf("a backup without the newer program's tables: %v", err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("a file was left")
		}
	})
}

func TestRoundTrip(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, from string) {
		source := databasetest.Open(t, from)
		store := gormstore.New(source)
		for n := range 3 {
			if _, err := store.Create(t.Context(), approvaltest.Ticket("a", fmt.Sprint("r", n), "")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := store.Delegate(
			t.Context(),
			approval.Delegation{From: "a", To: "b", Start: now, End: now.Add(time.Hour), Reason: "x <&> \u2028 ü", CreatedBy: "a", CreatedAt: now},
		); err != nil {
			t.Fatal(err)
		}
		path := backedUp(t, source)
		want := contents(t, source)
		if len(want["tickets"]) != 3 || len(want["ledger"]) == 0 || len(want["ticket_words"]) == 0 {
			t.Fatalf("too little to be a test: %v", want)
		}
		databasetest.Each(t, func(t *testing.T, to string) {
			target := databasetest.Open(t, to)
			if _, err := restored(t, path, target, ModeNothingSince); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, contents(t, target)); d != "" {
				t.Errorf("restored (-source +target):\n%s", d)
			}
			x, err := gormstore.New(target).Create(t.Context(), approvaltest.Ticket("a", "another", ""))
			if err != nil || x.Number != 4 {
				t.Errorf("the next ticket is %v: %v", x, err)
			}
		})
	})
}

// TestDamagedArchives: what is not complete and unchanged is refused before anything is written.
func TestDamagedArchives(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t))
	if _, err := gormstore.New(db).Create(t.Context(), approvaltest.Ticket("a", "r", "")); err != nil {
		t.Fatal(err)
	}
	path := backedUp(t, db)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the backup: %v %v", info.Mode(), err)
	}
	edit := func(name string, change func(string) string) []byte {
		return rewritten(t, path, name, change)
	}
	for name, tc := range map[string]struct {
		text []byte
		want string
	}{
		"cut off":          {whole[:len(whole)-100], "was cut off"},
		"another file":     {[]byte("hello"), "is not a backup"},
		"empty":            {nil, "is not a backup"},
		"a changed row":    {edit("database/tickets.jsonl", func(s string) string { return strings.Replace(s, "pending", "effective", 1) }), "checksum"},
		"a missing row":    {edit("database/tickets.jsonl", func(s string) string { return s[:strings.LastIndex(s[:len(s)-1], "\n")+1] }), "checksum"},
		"a missing file":   {edit("database/items.jsonl", nil), "it has no database/items.jsonl"},
		"no manifest":      {edit(manifestName, nil), "it has no manifest.json"},
		"a newer format":   {edit(manifestName, func(s string) string { return strings.Replace(s, `"format": 1`, `"format": 2`, 1) }), "format 2"},
		"another manifest": {edit(manifestName, func(string) string { return "{" }), "not JSON"},
		"another schema": {edit(manifestName, func(s string) string { return strings.Replace(s, "202611222140", "202611222141", 1) }),
			"another schema"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x")
			if err := os.WriteFile(file, tc.text, 0o600); err != nil {
				t.Fatal(err)
			}
			target := databasetest.Open(t, databasetest.SQLite(t))
			_, err := restored(t, file, target, ModeNothingSince)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
			if full, err := used(t.Context(), target); full || err != nil {
				t.Errorf("something was written: %v", err)
			}
		})
	}
}

// rewritten returns an archive in which one file is changed, or missing if change is nil.
func rewritten(t *testing.T, path, name string, change func(string) string) []byte {
	t.Helper()
	in, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // it was only read
	var out strings.Builder
	z := zip.NewWriter(&out)
	for _, f := range in.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == name {
			if change == nil {
				continue
			}
			text = []byte(change(string(text)))
		}
		w, err := z.Create(f.Name)
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(out.String())
}

// TestStands checks which items of a backup remain valid according to the later lines of the ledger.
func TestStands(t *testing.T) {
	entry := func(action, item string, state approval.State) ledger.Entry {
		d := map[string]string{"state": string(state)}
		if item != "" {
			d["item"] = item
		}
		return ledger.Entry{Action: "ticket." + action, Object: "T-7", Details: d}
	}
	for name, tc := range map[string]struct {
		reason  string
		entries []ledger.Entry
		state   approval.State
		want    bool
	}{
		"no line":      {"nothing happened to it", nil, approval.StateEffective, true},
		"revoked":      {"somebody took it back", []ledger.Entry{entry("revoke-requested", "1", approval.StateRevoking)}, approval.StateEffective, false},
		"shortened":    {"the backup has a later end", []ledger.Entry{entry("shortened", "1", approval.StateEffective)}, approval.StateEffective, false},
		"another item": {"only item 2 was revoked", []ledger.Entry{entry("revoke-requested", "2", approval.StateRevoking)}, approval.StateEffective, true},
		"revoked, commented": {
			"a comment about the whole ticket hides nothing",
			[]ledger.Entry{entry("revoke-requested", "1", approval.StateRevoking), entry("comment", "", approval.StateEffective)},
			approval.StateEffective, false,
		},
		"failed": {"it was not in force", []ledger.Entry{entry("failed", "1", approval.StateFailed)}, approval.StateEffective, false},
		"failed, again there": {
			"the last line counts",
			[]ledger.Entry{entry("failed", "1", approval.StateFailed), entry("effective", "1", approval.StateEffective)},
			approval.StateEffective, true,
		},
		"further on":     {"it was approved later", []ledger.Entry{entry("approved", "1", approval.StateApproved)}, approval.StatePending, true},
		"approvals void": {"its approvals became void", []ledger.Entry{entry("voided", "1", approval.StatePending)}, approval.StateApproved, false},
		"withdrawn": {
			"the requester withdrew what was pending",
			[]ledger.Entry{entry("withdrawn", "", approval.StateEffective)}, approval.StatePending, false,
		},
		"withdrawn the rest": {
			"what was in force stayed", []ledger.Entry{entry("withdrawn", "", approval.StateEffective)}, approval.StateEffective, true,
		},
		"all ended": {
			"the sum says that nothing is left",
			[]ledger.Entry{entry("comment", "", approval.StateRevoked)}, approval.StateEffective, false,
		},
		"a state of a newer version": {"what is not known is not fine", []ledger.Entry{entry("suspended", "1", "suspended")}, approval.StateEffective, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedgerExport()
			for _, e := range tc.entries {
				l.add(e)
			}
			if got := l.stands(7, 0, tc.state); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
