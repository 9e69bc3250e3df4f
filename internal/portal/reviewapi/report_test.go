package reviewapi

import (
	"testing"
	"time"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/portal/featuretest"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestReportColumns checks the cells of a line by their headers. A number of the evidence is not reported for a line that has none, because 0
// would look like access that is not used.
func TestReportColumns(t *testing.T) {
	line := accessreview.Line{
		Campaign: 3, Number: 7, ApplicationName: portaltest.App888, ResourceName: portaltest.BobsCluster, Actions: []string{"redis:connect"},
		Target: approval.Target{Ticket: 12}, Reviewers: []string{"bob", "carol"}, Decision: accessreview.Revoke, DecidedBy: "bob", Comment: "not needed",
	}
	cells := func() map[string]string {
		out := map[string]string{}
		for _, c := range reportColumns(featuretest.Data(t).Catalog(), &accessreview.Campaign{Name: "Caches"}) {
			if _, twice := out[c.Name]; twice {
				t.Errorf("two columns have the header %q", c.Name)
			}
			out[c.Name] = c.Value(&line)
		}
		return out
	}
	for name, want := range map[string]string{
		"review": "R-3", "name": "Caches", "line": "7", "application": portaltest.App888, "resource": portaltest.BobsCluster, "actions": "redis:connect",
		"ticket": "T-12", "reviewers": "bob carol", "decision": "revoke", "decided by": "bob", "comment": "not needed", "nobody decided": "no", "kind": "grant",
		"evidence at": "", "evidence days": "", "last used": "", "connections": "", "observed well enough": "", "observed %": "", "flows lost %": "",
	} {
		if got, ok := cells()[name]; !ok || got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	line.Evidence = accessreview.Evidence{
		At:             featuretest.Now,
		Days:           90,
		Count:          5,
		LastUsed:       featuretest.Now.Add(-time.Hour),
		Watched:        true,
		WatchedPercent: 99.5,
	}
	for name, want := range map[string]string{"evidence at": "2026-03-01T09:00:00Z", "evidence days": "90", "last used": "2026-03-01T08:00:00Z",
		"connections": "5", "observed well enough": "yes", "observed %": "99.5", "flows lost %": "0.0"} {
		if got := cells()[name]; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
