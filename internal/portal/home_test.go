package portal

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// expiresSoon is how long before its end an access is on the home page.
const expiresSoon = 14 * 24 * time.Hour

type homeBody struct {
	Waiting, UnderWay, Expiring               []struct{ ID string }
	WaitingCount, ReviewsCount                *int
	UnderWayCount, ExpiringCount, DeniedCount *int
	ExpiringUntil                             time.Time
	ExpiringRequested                         []struct {
		Ticket, RequestedIn string
		Item                int
	}
	Denied []struct {
		Action, Ticket string
		Application    struct{ ID string }
	}
	DeniedApplications *[]string
	FlowsAvailable     bool
	Disagreements      *int
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
// expire those which end first are shown, however many newer ones there are.
func TestHomeCountsWhatItLeavesOut(t *testing.T) {
	x := newSite(t)
	at := time.Now().UTC().Truncate(time.Second)
	x.stopped.Store(&at)
	access := func(i int, application, name string) approval.Item {
		return approval.Item{
			Application:     application,
			ApplicationName: name,
			Resource:        "bobs-cluster",
			ResourceName:    portaltest.BobsCluster,
			Actions:         []string{fmt.Sprint("redis:", i)},
			Steps:           []approval.Step{{Name: "leader", Approvers: []string{"carol"}, Quorum: 1}},
		}
	}
	store := func(state approval.State, end time.Time, items ...approval.Item) string {
		t.Helper()
		made := approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: "alice", Reason: "because", Items: items}, x.now())
		made.Items[0].State, made.Items[0].ExpiresAt = state, end
		stored, err := x.Tickets.Store.Create(t.Context(), made)
		if err != nil {
			t.Fatal(err)
		}
		return approval.FormatID(stored.Number)
	}
	create := func(i int, state approval.State, end time.Time) string {
		t.Helper()
		return store(state, end, access(i, "app-888", portaltest.App888))
	}
	got := homeOf(t, x, "alice")
	for name, n := range map[string]*int{"waiting": got.WaitingCount, "reviews": got.ReviewsCount, "underWay": got.UnderWayCount,
		"expiring": got.ExpiringCount} {
		if n == nil || *n != 0 {
			t.Errorf("%s: the number of an empty list is not 0", name)
		}
	}
	if got.DeniedCount == nil || got.DeniedApplications == nil {
		t.Error("the number of refused connections is not known")
	}
	if want := x.now().Add(expiresSoon); !got.ExpiringUntil.Equal(want) {
		t.Errorf("accesses that end by %s, want %s", got.ExpiringUntil, want)
	}
	const pending, expiring = 32, 210
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
	// Neither the access of another application, also in a ticket that is about one of hers, nor what ends later is counted.
	store(approval.StateEffective, x.now().Add(time.Minute), access(1000, "app-889", "another"))
	store(approval.StateEffective, x.now().Add(time.Minute), access(1001, "app-889", "another"), access(1002, "app-888", portaltest.App888))
	create(1003, approval.StateEffective, x.now().Add(expiresSoon+time.Minute))
	got = homeOf(t, x, "alice")
	if len(got.UnderWay) != 20 || got.UnderWayCount == nil || *got.UnderWayCount != pending+1 {
		t.Errorf("%d requests under way, count %v", len(got.UnderWay), got.UnderWayCount)
	}
	if len(got.Expiring) != 20 || got.ExpiringCount == nil || *got.ExpiringCount != expiring {
		t.Errorf("%d expire, count %v", len(got.Expiring), got.ExpiringCount)
	}
	if len(got.Expiring) > 0 && got.Expiring[0].ID != first {
		t.Errorf("the first that expires is %s, want %s", got.Expiring[0].ID, first)
	}
	// The list that the page links has exactly these.
	list := func(who, query string) (ids []string) {
		t.Helper()
		for cursor := ""; ; {
			var page struct {
				Items      []struct{ ID string }
				NextCursor string
			}
			x.as(who).Get("/api/v1/tickets?limit=100&"+query+cursor).Into(t, &page)
			for _, each := range page.Items {
				ids = append(ids, each.ID)
			}
			if page.NextCursor == "" {
				return ids
			}
			cursor = "&cursor=" + page.NextCursor
		}
	}
	const linked = "view=owned&kind=grant&kind=extend&expiringWithinSeconds=1209600"
	if all := list("alice", linked); len(all) != expiring || all[len(all)-1] != first {
		t.Errorf("the list of all that expires has %d tickets, want %d", len(all), expiring)
	}
	if all := list("carol", "view=owned"); len(all) != 0 {
		t.Errorf("a person without applications has %d", len(all))
	}
	got = homeOf(t, x, "carol")
	if len(got.Waiting) != 10 || got.WaitingCount == nil || *got.WaitingCount != pending+1 {
		t.Errorf("%d wait, count %v", len(got.Waiting), got.WaitingCount)
	}
}

// TestHomeReadsItsSectionsTogether checks that a section which the flow store answers late neither delays another one nor the page beyond its
// bound, and that it is then not known.
func TestHomeReadsItsSectionsTogether(t *testing.T) {
	x := newSite(t)
	disagreementsRead := make(chan struct{})
	x.flows.held = func(f audit.Filter) {
		if f.Disagree {
			close(disagreementsRead)
		}
	}
	x.flows.denying = func(ctx context.Context) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the page waits for denials without a bound")
			return
		}
		select {
		case <-disagreementsRead:
		case <-ctx.Done():
			t.Error("the disagreements are read after the denials")
			return
		}
		<-ctx.Done()
	}
	got := homeOf(t, x, "dave")
	if got.FlowsAvailable || got.DeniedCount != nil || got.DeniedApplications != nil || len(got.Denied) != 0 {
		t.Errorf("denials that were not read in time are reported: %+v", got)
	}
	if got.Disagreements == nil || *got.Disagreements != 0 || got.UnderWayCount == nil {
		t.Errorf("the other sections are not reported: %+v", got)
	}
}

// TestHomeSaysWhatIsRequested checks that the home page names the ticket in which an access is requested already, also if it is another owner's
// or not among the newest ones of the reader.
func TestHomeSaysWhatIsRequested(t *testing.T) {
	x := newSite(t)
	at := x.now()
	access := func(actions ...string) approval.Item {
		return approval.Item{Application: "app-888", ApplicationName: portaltest.App888, Resource: "bobs-cluster", ResourceName: portaltest.BobsCluster,
			Actions: actions, Steps: []approval.Step{{Name: "leader", Approvers: []string{"carol"}, Quorum: 1}}}
	}
	store := func(requester string, state approval.State, items ...approval.Item) string {
		t.Helper()
		made := approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: requester, Reason: "because", Items: items}, at)
		for i := range made.Items {
			if made.Items[i].State = state; state != approval.StatePending {
				made.Items[i].ExpiresAt = at.Add(time.Hour)
			}
		}
		stored, err := x.Tickets.Store.Create(t.Context(), made)
		if err != nil {
			t.Fatal(err)
		}
		return approval.FormatID(stored.Number)
	}
	ending := store("alice", approval.StateEffective, access("redis:info"), access("redis:get"))
	approved := store("alice", approval.StateApproved, access("redis:del"))
	got := homeOf(t, x, "alice")
	if len(got.Denied) != 1 || got.Denied[0].Ticket != "" || len(got.ExpiringRequested) != 0 || len(got.Expiring) != 2 {
		t.Errorf("nothing is requested: %+v", got)
	}
	asked := store("erin", approval.StatePending, access("redis:connect", "redis:get"))
	got = homeOf(t, x, "alice")
	if len(got.Denied) != 1 || got.Denied[0].Ticket != asked {
		t.Errorf("the refused connection is not requested in %s: %+v", asked, got.Denied)
	}
	if r := got.ExpiringRequested; len(r) != 1 || r[0].Ticket != ending || r[0].Item != 1 || r[0].RequestedIn != asked {
		t.Errorf("the second access of %s is not requested in %s: %+v; %s requests only its own", ending, asked, r, approved)
	}
}
