package portal

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/governance/governancetest"
	"github.com/acp-io/acp/internal/policy"
)

// BenchmarkFleetPages measures the pages about the members of a fleet with 500 members and 10,000 resources, of which 1,000 are not written
// yet and one member lacks all. It prints lines "bench NAME VALUE UNIT" and is run once, with -benchtime 1x.
func BenchmarkFleetPages(b *testing.B) {
	x := newSite(b)
	x.host.input, x.host.members = governancetest.Fleet(10_000, 500, func(resource, member int) v1alpha1.MemberState {
		switch {
		case member == 7:
			return v1alpha1.MemberDrifted
		case resource%10 == 0:
			return v1alpha1.MemberPending
		default:
			return ""
		}
	})
	x.host.built = policy.NewSnapshot(x.host.input)
	auditor := x.as("grace")
	const requests = 100
	for _, page := range []struct{ name, path string }{
		{"fleet", "/api/v1/fleet"},
		{"member", "/api/v1/fleet/member-007"},
		{"findings", "/api/v1/findings"},
		{"findings_of_member", "/api/v1/findings?member=member-007"},
		{"findings_search", "/api/v1/findings?q=member-1&sort=kind"},
	} {
		var took []time.Duration
		for range requests {
			x.advance(time.Minute) // the budgets of the caller
			start := time.Now()
			if a := auditor.Get(page.path); a.Status != http.StatusOK {
				b.Fatalf("%s: got %d, %s", page.path, a.Status, a.Body)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		fmt.Printf("bench portal_%s_500_p99 %.0f ms\n", page.name, float64(took[requests*99/100].Microseconds())/1000)
	}
}
