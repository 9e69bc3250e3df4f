package portal

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestHostClusterAway: what is shown of policies may then be old, and nobody must take it for the present.
func TestHostClusterAway(t *testing.T) {
	x := newSite(t)
	alice := x.as("alice")
	since := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		reason string
		away   time.Time
		me     *time.Time
		ready  string
	}{
		{"nothing is said while it answers", time.Time{}, nil, "ok\n"},
		{"people and operators are told since when", since, &since, "has not answered since 2026-11-20T12:00:00Z"},
		{"nothing is said when it is back", time.Time{}, nil, "ok\n"},
	} {
		x.host.mu.Lock()
		x.host.away = c.away
		x.host.mu.Unlock()
		var me struct{ HostUnavailableSince *time.Time }
		alice.Get("/api/v1/me").Into(t, &me)
		if (me.HostUnavailableSince == nil) != (c.me == nil) || c.me != nil && !me.HostUnavailableSince.Equal(*c.me) {
			t.Errorf("%s: me says %v", c.reason, me.HostUnavailableSince)
		}
		if got := alice.Get("/readyz"); got.Status != http.StatusOK || !strings.Contains(string(got.Body), c.ready) {
			t.Errorf("%s: readyz says %d %q", c.reason, got.Status, got.Body)
		}
	}
}
