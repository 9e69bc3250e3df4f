package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSaysItsClock: a step with a wrong clock is none when the clock was right.
func TestSaysItsClock(t *testing.T) {
	const drilled = "built for drills: the clock is off by "
	for name, c := range map[string]struct{ reason, log, want string }{
		"Wrong":     {"as it was told", "--- starts\n" + drilled + "-10m0s\nready\n", ""},
		"Again":     {"the last start counts", drilled + "0s\nready\n" + drilled + "-10m0s\n", ""},
		"Right":     {"it runs with a right clock", drilled + "-10m0s\n" + drilled + "0s\n", "was not set"},
		"Shipped":   {"it is not built for drills", "ready\n", "build the programs with the tag drill"},
		"Otherwise": {"another offset", drilled + "-10m0s5\n", "was not set"},
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		err := saysItsClock(file, -10*time.Minute)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

func TestOutagesByName(t *testing.T) {
	if got := len(outagesWith("clock")); got != 3 {
		t.Errorf("%d outages of clocks", got)
	}
	if err := Run(t.Context(), Options{Outages: "none of these"}, nil); err == nil {
		t.Error("a drill without any outage breaks nothing")
	}
}
