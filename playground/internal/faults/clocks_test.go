package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCheckLoggedClock checks that a step with a wrong clock fails when the program ran with a correct clock.
func TestCheckLoggedClock(t *testing.T) {
	const drilled = "built for drills: the clock is off by "
	for name, c := range map[string]struct{ reason, log, want string }{
		"Wrong":     {"the log confirms the offset", "--- starts\n" + drilled + "-10m0s\nready\n", ""},
		"Again":     {"the last start counts", drilled + "0s\nready\n" + drilled + "-10m0s\n", ""},
		"Right":     {"the last start had a correct clock", drilled + "-10m0s\n" + drilled + "0s\n", "was not set"},
		"Shipped":   {"the program was built without the drill tag", "ready\n", "build the programs with the tag drill"},
		"Otherwise": {"another offset", drilled + "-10m0s5\n", "was not set"},
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkLoggedClock(file, -10*time.Minute)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

func TestOutagesMatching(t *testing.T) {
	if got := len(outagesMatching("clock", nil)); got != 3 {
		t.Errorf("%d outages of clocks, want 3", got)
	}
	if err := Run(t.Context(), Options{Outages: "none of these"}, nil); err == nil {
		t.Error("Run accepts a filter that matches no outage")
	}
}
