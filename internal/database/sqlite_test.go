package database_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/database"
)

// TestCheckpointsRunBesideWriters writes less than the 64 MiB from which SQLite itself runs a checkpoint.
func TestCheckpointsRunBesideWriters(t *testing.T) {
	file := filepath.Join(t.TempDir(), "acp.db")
	db, err := database.Open(t.Context(), "sqlite:"+file)
	if err != nil {
		t.Fatal(err)
	}
	size := func(name string) int64 {
		st, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return -1
		}
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	const much = 2 << 20
	before := size(file)
	exec(t, db, "CREATE TABLE much (text TEXT)")
	exec(t, db, "INSERT INTO much VALUES ('"+strings.Repeat("x", much)+"')")
	for deadline := time.Now().Add(30 * time.Second); size(file) < before+much; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the database still has %d bytes, its log %d", size(file), size(file+"-wal"))
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n := size(file + "-wal"); n >= 0 {
		t.Errorf("a log of %d bytes is left: a connection is still open", n)
	}
}
