package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

func TestFindRepo(t *testing.T) {
	root := t.TempDir()
	nested := filepath.Join(root, "playground/deep")
	if err := os.MkdirAll(nested, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := FindRepo(nested); err == nil || !strings.Contains(err.Error(), "--repo") {
		t.Errorf("outside a repository: %v", err)
	}
	for file, module := range map[string]string{"go.mod": "github.com/acp-io/acp", "playground/go.mod": "github.com/acp-io/acp/playground"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte("module "+module+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := FindRepo(nested); err != nil || got != root {
		t.Errorf("got %s, %v; the nested module is not the repository %s", got, err, root)
	}
}

func TestPrinter(t *testing.T) {
	part := parts.Part{Name: "p", Programs: map[string]string{"tool": "x"}, Expect: "about 5 min the first time"}
	for name, tty := range map[string]bool{"Terminal": true, "Log": false} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := &Printer{Out: &out, TTY: tty}
			p.Begin(1, 3, part, "log")
			p.Elapsed(part, 61*time.Second, false)
			p.End(part, 62*time.Second, nil)
			text := out.String()
			for _, want := range []string{"part 1 of 3", "tool", "about 5 min", "built p in 1m2s"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q lacks %q", text, want)
				}
			}
			if strings.Contains(text, "\r") != tty {
				t.Errorf("only a terminal's line can be overwritten: %q", text)
			}
			if !strings.HasSuffix(text, "\n") {
				t.Errorf("an open line is left: %q", text)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	exited := &supervisor.ExitedError{Name: "portal", Exit: "exit status 1"}
	for _, tc := range []struct {
		reason string
		err    error
		kept   bool
		want   bool
	}{
		{"a program does not come up with what was kept", fmt.Errorf("start: %w", exited), true, true},
		{"nothing was kept, so nothing kept is damaged", exited, false, false},
		{"a slow start is not fixed by deleting the state", context.DeadlineExceeded, true, false},
	} {
		got := explain(tc.err, tc.kept, "/state")
		if !errors.Is(got, tc.err) || strings.Contains(got.Error(), "clean --state-dir /state") != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
	layout, err := fleet.NewLayout(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if layout.Kept() {
		t.Error("a new state folder keeps nothing yet")
	}
	if err := os.Mkdir(layout.Data("portal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if !layout.Kept() {
		t.Error("a folder with data keeps something")
	}
}
