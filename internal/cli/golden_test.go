package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/testenv/golden"
)

// goldenTime is the clock of every case.
var goldenTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A case is a folder with the command lines in *.cmd, which run in it, and for each the exit code, the output and the
// errors in *.want.
func TestGolden(t *testing.T) {
	commands, err := filepath.Glob("testdata/*/*.cmd")
	if err != nil || len(commands) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, path := range commands {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".cmd"), func(t *testing.T) {
			t.Chdir(filepath.Dir(path))
			base := strings.TrimSuffix(filepath.Base(path), ".cmd")
			line, err := os.ReadFile(base + ".cmd")
			if err != nil {
				t.Fatal(err)
			}
			code, out, errs := run(t, "", strings.Fields(string(line))...)
			got := fmt.Sprintf("exit %d\n-- out --\n%s-- err --\n%s", code, out, errs)
			golden.Compare(t, base+".want", got)
		})
	}
}

func run(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(context.Background(), args, Streams{In: strings.NewReader(stdin), Out: &o, Err: &e, Now: func() time.Time { return goldenTime }})
	return code, o.String(), e.String()
}
