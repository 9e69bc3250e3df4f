package golden

import (
	"os"
	"path/filepath"
	"testing"
)

// recorder records whether a test failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; panic(r) }

// compare reports whether Compare failed.
func compare(file, got string) bool {
	var r recorder
	func() {
		defer func() { _ = recover() }() // Fatalf ends Compare
		Compare(&r, file, got)
	}()
	return r.failed
}

func TestCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.golden")
	if !compare(file, "x") {
		t.Error("a missing file was accepted")
	}
	*update = true
	failed := compare(file, "x")
	*update = false
	if text, err := os.ReadFile(file); failed || err != nil || string(text) != "x" {
		t.Errorf("-update wrote %q, %v", text, err)
	}
	if compare(file, "x") {
		t.Error("the same text was rejected")
	}
	if !compare(file, "y") {
		t.Error("another text was accepted")
	}
}
