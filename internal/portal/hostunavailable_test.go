package portal

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestHostClusterUnavailable checks that the portal reports since when policies may be outdated.
func TestHostClusterUnavailable(t *testing.T) {
	x := newSite(t)
	alice := x.as("alice")
	since := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		reason string
		away   time.Time
		me     *time.Time
		ready  string
	}{
		{"nothing is reported while it answers", time.Time{}, nil, "ok\n"},
		{"the time is reported to people and operators", since, &since, "has not answered since 2026-11-20T12:00:00Z"},
		{"nothing is reported when it answers again", time.Time{}, nil, "ok\n"},
	} {
		x.host.mu.Lock()
		x.host.away = c.away
		x.host.mu.Unlock()
		var me struct{ HostUnavailableSince *time.Time }
		alice.Get("/api/v1/me").Into(t, &me)
		if (me.HostUnavailableSince == nil) != (c.me == nil) || c.me != nil && !me.HostUnavailableSince.Equal(*c.me) {
			t.Errorf("%s: hostUnavailableSince is %v", c.reason, me.HostUnavailableSince)
		}
		if got := alice.Get("/readyz"); got.Status != http.StatusOK || !strings.Contains(string(got.Body), c.ready) {
			t.Errorf("%s: readyz returns %d %q", c.reason, got.Status, got.Body)
		}
	}
}
