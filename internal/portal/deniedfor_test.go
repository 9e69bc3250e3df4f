package portal

import (
	"testing"
	"time"

	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestResourcesThatRefusedAreListedFirst checks that resources that refused an application are listed first for its owners and the security team,
// and that others get the ordinary order.
func TestResourcesThatRefusedAreListedFirst(t *testing.T) {
	x := newSite(t)
	ledger := refused("m1", portaltest.App889)
	ledger.Resource = portaltest.LedgerCache
	x.flows.see(time.Now().Add(-time.Minute), ledger, 7)
	for name, tc := range map[string]struct{ reason, who, path, first string }{
		"Own":      {"the owner gets the resource that refused it first", "erin", "?deniedFor=app-889", "ledger-db-cache"},
		"Security": {"the security team sees all denials", "dave", "?deniedFor=app-889", "ledger-db-cache"},
		"Another":  {"alice does not own it, and gets the ordinary order", "alice", "?deniedFor=app-889", "bobs-cluster"},
		"Unknown":  {"an unknown application changes nothing", "erin", "?deniedFor=app-0", "bobs-cluster"},
		"Without":  {"the ordinary order", "erin", "", "bobs-cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			var got openapi.ResourceList
			x.as(tc.who).Get("/api/v1/resources"+tc.path).Into(t, &got)
			if len(got.Items) < 2 || got.Items[0].Id != tc.first {
				t.Errorf("%s: %+v", tc.reason, got.Items)
			}
		})
	}
}
