package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/testenv"
)

// TestChartsAreFresh compares the generated files of the charts with the output of the generator.
func TestChartsAreFresh(t *testing.T) {
	root := testenv.Root()
	want, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(root, name)) //nolint:gosec // it is in the repository
		if err != nil {
			t.Errorf("%v: run make generate", err)
		} else if d := cmp.Diff(text, string(got)); d != "" {
			t.Errorf("%s is not fresh: run make generate: %s", name, d)
		}
	}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err == nil && want[name] == "" {
				t.Errorf("%s is no longer generated: run make generate", name)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
