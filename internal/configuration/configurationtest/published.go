// Package configurationtest compares what is published about a program's settings with the settings.
package configurationtest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/testenv"
)

var publish = flag.Bool("publish", false, "write deploy/configuration and docs/configuration.md again")

// Published fails when the schema in deploy/configuration or the tables in docs/configuration.md are not those of the program's
// settings, or writes them with -publish.
func Published(t *testing.T, program string, s *configuration.Settings) {
	t.Helper()
	if err := s.Parse(nil, nil, t.Output()); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Schema()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, filepath.Join("deploy", "configuration", program+".schema.json"), func(string) string { return string(schema) })
	begin, end := "<!-- begin "+program+" -->\n", "<!-- end "+program+" -->\n"
	compare(t, filepath.Join("docs", "configuration.md"), func(now string) string {
		head, rest, found := strings.Cut(now, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("docs/configuration.md has no %q and %q", begin, end)
		}
		return head + begin + s.Reference() + "\n" + end + tail
	})
}

func compare(t *testing.T, file string, fresh func(now string) string) {
	t.Helper()
	path := filepath.Join(testenv.Root(), file)
	now, err := os.ReadFile(path) //nolint:gosec // it is in the repository
	if err != nil && (!*publish || !os.IsNotExist(err)) {
		t.Fatal(err)
	}
	want := fresh(string(now))
	if *publish {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // everybody may read it
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, string(now)); d != "" {
		t.Errorf("%s is not fresh: make generate writes it again: %s", file, d)
	}
}
