package portal

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

type homeBody struct {
	Waiting, UnderWay, Expiring               []struct{ ID string }
	WaitingCount, ReviewsCount                *int
	UnderWayCount, ExpiringCount, DeniedCount *int
}

func homeOf(t *testing.T, x *site, who string) (out homeBody) {
	t.Helper()
	a := x.as(who).Get("/api/v1/home")
	if a.Into(t, &out); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return out
}

// TestHomeCountsWhatItLeavesOut checks that each list of the home page has the number of all its entries, and that of the accesses that
// expire those which end first are shown, not the newest.
func TestHomeCountsWhatItLeavesOut(t *testing.T) {
	x := newSite(t)
	create := func(i int, state approval.State, end time.Time) string {
		t.Helper()
		it := approval.Item{
			Application:     "app-888",
			ApplicationName: portaltest.App888,
			Resource:        "bobs-cluster",
			ResourceName:    portaltest.BobsCluster,
			Actions:         []string{fmt.Sprint("redis:", i)},
			Steps:           []approval.Step{{Name: "leader", Approvers: []string{"carol"}, Quorum: 1}},
		}
		draft := approval.Draft{Kind: approval.KindGrant, Requester: "alice", Reason: "because", Items: []approval.Item{it}}
		made := approval.NewTicket(draft, x.now())
		made.Items[0].State, made.Items[0].ExpiresAt = state, end
		stored, err := x.Tickets.Store.Create(t.Context(), made)
		if err != nil {
			t.Fatal(err)
		}
		return approval.FormatID(stored.Number)
	}
	got := homeOf(t, x, "alice")
	for name, n := range map[string]*int{"waiting": got.WaitingCount, "reviews": got.ReviewsCount, "underWay": got.UnderWayCount,
		"expiring": got.ExpiringCount} {
		if n == nil || *n != 0 {
			t.Errorf("%s: the number of an empty list is not 0", name)
		}
	}
	if got.DeniedCount == nil {
		t.Error("the number of refused connections is not known")
	}
	const pending, expiring = 32, 27
	for i := range pending {
		create(i, approval.StatePending, time.Time{})
	}
	first := ""
	for i := range expiring {
		// The oldest ticket ends first.
		if id := create(pending+i, approval.StateEffective, x.now().Add(time.Duration(i+1)*time.Hour)); first == "" {
			first = id
		}
	}
	got = homeOf(t, x, "alice")
	if len(got.UnderWay) != 20 || got.UnderWayCount == nil || *got.UnderWayCount != pending {
		t.Errorf("%d requests under way, count %v", len(got.UnderWay), got.UnderWayCount)
	}
	if len(got.Expiring) != 20 || got.ExpiringCount == nil || *got.ExpiringCount != expiring {
		t.Errorf("%d expire, count %v", len(got.Expiring), got.ExpiringCount)
	}
	if len(got.Expiring) > 0 && got.Expiring[0].ID != first {
		t.Errorf("the first that expires is %s, want %s", got.Expiring[0].ID, first)
	}
	got = homeOf(t, x, "carol")
	if len(got.Waiting) != 10 || got.WaitingCount == nil || *got.WaitingCount != pending {
		t.Errorf("%d wait, count %v", len(got.Waiting), got.WaitingCount)
	}
}
