package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	audittest.Run(t, func(t *testing.T) audit.Store { return open(t, filepath.Join(t.TempDir(), "flows.db")) })
}

func batch(id string, count int64) *audit.Batch {
	return &audit.Batch{
		ID:      id,
		Rollups: []audit.Rollup{{Bucket: audittest.T0, Edge: audittest.Edge(), Count: count, FirstSeen: audittest.T0, LastSeen: audittest.T0}},
	}
}

func total(t *testing.T, r audit.Reader) int64 {
	t.Helper()
	page, err := r.Connections(t.Context(), audit.ConnectionQuery{})
	if err != nil {
		t.Fatalf("Connections: %v", err)
	}
	var n int64
	for _, c := range page.Items {
		n += c.Count
	}
	return n
}

func TestReaderFollowsTheFile(t *testing.T) {
	// The name contains characters that have a meaning in a DSN.
	path := filepath.Join(t.TempDir(), "flows 100%?mode=memory#.db")
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatalf("OpenReader: %v", err)
	}
	defer r.Close()
	if _, err := r.Connections(t.Context(), audit.ConnectionQuery{}); !errors.Is(err, audit.ErrUnavailable) {
		t.Fatalf("Connections without a file: %v, want ErrUnavailable", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the reader created the file: %v", err)
	}

	s := open(t, path)
	if err := s.Append(t.Context(), batch("1", 3)); err != nil {
		t.Fatalf("Append: %v", err)
	}
	if got := total(t, r); got != 3 {
		t.Errorf("got %d connections while the writer is open, want 3", got)
	}
	if err := s.Append(t.Context(), batch("2", 4)); err != nil {
		t.Fatalf("Append: %v", err)
	}
	if got := total(t, r); got != 7 {
		t.Errorf("got %d connections after another batch, want 7", got)
	}
	db, err := r.current(t.Context())
	if err != nil {
		t.Fatalf("current: %v", err)
	}
	if _, err := db.ExecContext(t.Context(), "DELETE FROM rollups"); err == nil {
		t.Error("the reader's connection can write")
	}

	// A collector that starts anew deletes the old file and creates a new one.
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("remove: %v", err)
		}
	}
	if _, err := r.LastFlow(t.Context()); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("LastFlow after the file was deleted: got %v, want ErrUnavailable", err)
	}
	if err := open(t, path).Append(t.Context(), batch("1", 5)); err != nil {
		t.Fatalf("Append: %v", err)
	}
	if got := total(t, r); got != 5 {
		t.Errorf("got %d connections in the new file, want 5", got)
	}
}

func TestReaderAfterTheWriterHasClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flows.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	if err := s.Append(t.Context(), batch("1", 3)); err != nil {
		t.Fatalf("Append: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	r, err := OpenReader(t.Context(), path)
	if err != nil {
		t.Fatalf("OpenReader: %v", err)
	}
	defer r.Close()
	if got := total(t, r); got != 3 {
		t.Errorf("got %d connections, want 3", got)
	}
}

func TestReaderErrors(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(t.Context(), garbage)
	if err != nil {
		t.Fatalf("OpenReader: %v", err)
	}
	defer r.Close()
	if _, err := r.Connections(t.Context(), audit.ConnectionQuery{}); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("Connections of a file that is no database: %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Connections(ctx, audit.ConnectionQuery{}); !errors.Is(err, context.Canceled) || errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("Connections with a cancelled context: %v, want the cancellation only", err)
	}
}

func TestOpenRejects(t *testing.T) {
	dir := t.TempDir()
	newer := filepath.Join(dir, "newer.db")
	s, err := Open(t.Context(), newer)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	if _, err := s.db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)"); err != nil {
		t.Fatalf("make the schema newer: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, path, message string
		is                    error
	}{
		"Newer":    {"an older program must not write into a newer schema", newer, "use the newer program", nil},
		"NoFolder": {"the directory must exist", filepath.Join(dir, "missing", "flows.db"), "create it first", os.ErrNotExist},
		"IsFolder": {"the path is a directory", dir, "is a directory", audit.ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), tc.path)
			if err == nil {
				s.Close()
				t.Fatalf("%s, but Open succeeded", tc.reason)
			}
			if !strings.Contains(err.Error(), tc.message) || (tc.is != nil && !errors.Is(err, tc.is)) {
				t.Errorf("Open: %v; want %q and %v", err, tc.message, tc.is)
			}
		})
	}
}

func TestFullDisk(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "flows.db"))
	if err := s.Append(t.Context(), batch("1", 1)); err != nil {
		t.Fatalf("Append: %v", err)
	}
	var pages int64
	if err := s.db.QueryRowContext(t.Context(), "PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if err := s.db.QueryRowContext(t.Context(), "PRAGMA max_page_count = 1").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	big := &audit.Batch{ID: "2", Positions: []audit.Position{{Source: "m1", Time: audittest.T0}}}
	for i := range 100_000 {
		big.Seen = append(big.Seen, audit.SeenEvent{Source: "m1", Time: audittest.T0, ID: uint64(i)})
	}
	if err := s.Append(t.Context(), big); !errors.Is(err, audit.ErrReadOnly) {
		t.Fatalf("Append to a full store: %v, want ErrReadOnly", err)
	}
	if r, err := s.Resume(t.Context(), "m1"); err != nil || !r.Position.IsZero() {
		t.Errorf("got Resume = %+v, %v; want nothing of the failed batch", r, err)
	}
	if err := s.db.QueryRowContext(t.Context(), "PRAGMA max_page_count = 1000000").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), big); err != nil {
		t.Errorf("Append of the same batch with free space: %v", err)
	}
}

func TestFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flows.db")
	open(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("got mode %v of the flow store, which others can read", info.Mode().Perm())
	}
}

func TestReaderDSNIsReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.db")
	db, err := sql.Open("sqlite", dsn(path, "ro", "query_only(1)"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("opening a missing file read-only succeeded")
	}
}
