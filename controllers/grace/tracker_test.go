package grace

import (
	"testing"
	"time"
)

func TestInGrace(t *testing.T) {
	begin := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var p Tracker
	for _, c := range []struct {
		reason, name string
		waits        bool
		after        time.Duration
		want         bool
	}{
		{"nothing to wait for", "a", false, 0, false},
		{"it begins to wait", "a", true, 0, true},
		{"it goes on", "a", true, 2 * time.Second, true},
		{"another one has its own time", "b", true, 2 * time.Second, true},
		{"long enough", "a", true, 3 * time.Second, false},
		{"and does not begin anew while the reason lasts", "a", true, 4 * time.Second, false},
		{"the reason is gone", "a", false, 5 * time.Second, false},
		{"a new reason has its own time", "a", true, 6 * time.Second, true},
	} {
		if got := p.InGrace(c.name, c.waits, begin.Add(c.after), 3*time.Second); got != c.want {
			t.Errorf("%s: waits %t", c.reason, got)
		}
	}
}
