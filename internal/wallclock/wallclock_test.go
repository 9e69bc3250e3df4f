package wallclock

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary print the time of its clock when ACP_TEST_CLOCK is set.
func TestMain(m *testing.M) {
	if os.Getenv("ACP_TEST_CLOCK") != "" {
		_, _ = os.Stdout.WriteString(Clock().Now().UTC().Format(time.RFC3339))
		return
	}
	os.Exit(m.Run())
}

func TestOnlyADrillMovesTheClock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clock")
	if err := os.WriteFile(file, []byte("-3h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // itself
	cmd.Env = append(os.Environ(), "ACP_TEST_CLOCK=1", "ACP_DRILL_CLOCK="+file)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, said.String())
	}
	shown, err := time.Parse(time.RFC3339, string(out))
	if err != nil {
		t.Fatal(err)
	}
	moved := time.Since(shown) > time.Hour
	if moved != forDrills {
		t.Errorf("the clock moved: %t; built for drills: %t", moved, forDrills)
	}
	if told := strings.Contains(said.String(), "built for drills: the clock is off by -3h0m0s"); told != forDrills {
		t.Errorf("it said %q; built for drills: %t", said.String(), forDrills)
	}
}
