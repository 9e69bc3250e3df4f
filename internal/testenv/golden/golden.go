// Package golden compares what a test produces with a file in the repository. "go test PACKAGE -update" writes the files
// of a package again; the difference is then reviewed as a part of the change.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files again instead of comparing with them")

// Compare fails the test if the file does not contain what was produced. With -update it writes the file instead.
func Compare(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // everybody may read the repository
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file) //nolint:gosec // the tests of this repository choose the file
	if err != nil {
		t.Fatalf("%v: run the test with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs from what was produced; if the change is intended, run the test with -update (-want +got):\n%s", file, diff)
	}
}
