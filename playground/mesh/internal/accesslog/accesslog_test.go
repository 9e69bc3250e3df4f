package accesslog

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestRotation checks that the log is rotated by renaming, and that few rotated files are kept.
func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l, err := Open(path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	const entries = 50
	for range entries {
		if err := l.Write(&Entry{StartTime: time.Now(), Path: "/x/y"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	rotated, err := filepath.Glob(filepath.Join(filepath.Dir(path), "access-*.log"))
	if err != nil || len(rotated) != kept {
		t.Errorf("%d rotated files, %v, want %d", len(rotated), err, kept)
	}
	for _, name := range append(rotated, path) {
		content, err := os.ReadFile(name)
		if err != nil || len(content) == 0 || len(content) > 1000 || !bytes.HasSuffix(content, []byte("}\n")) {
			t.Errorf("%s has %d bytes, %v", name, len(content), err)
		}
	}
}
