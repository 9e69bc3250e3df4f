package portal

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// stillHost says itself when it has changed.
type stillHost struct {
	*fakeHost
	changes uint64
	ready   bool
}

func (h *stillHost) Changes() uint64 { return h.changes }
func (h *stillHost) Ready() bool     { return h.ready }

// listing is a page of one ticket, and what it is asked with.
type listing struct {
	t    *testing.T
	api  *api
	host *stillHost
	who  approval.Actor
	c    *catalog.Catalog
	all  []*approval.Ticket
	next *string
	at   time.Time
}

func newListing(t *testing.T, state approval.State) *listing {
	x := newSite(t)
	l := &listing{t: t, api: &api{x.Server}, host: &stillHost{fakeHost: x.host, ready: true}, who: approval.Actor{ID: "alice"}, c: x.Catalog(), at: time.Now()}
	x.Host, x.Now = l.host, func() time.Time { return l.at }
	l.all = []*approval.Ticket{{Number: 7, Version: 3, Kind: approval.KindGrant, Requester: "alice", Reason: "the first reason", UpdatedAt: l.at,
		Items: []approval.Item{{State: state, ApplicationName: portaltest.App888, ResourceName: portaltest.BobsCluster, SID: "t-7-1"}}}}
	x.host.input.Policies = append(x.host.input.Policies, &v1alpha1.AccessControlPolicy{})
	x.host.input.Policies[1].Name = policy.PolicyNameFor(portaltest.BobsCluster)
	l.member("Pending")
	return l
}

// member says what the adapter sees in the one member.
func (l *listing) member(state v1alpha1.MemberState) {
	p := &l.host.input.Policies[1].Status
	p.Units = []v1alpha1.PolicyUnit{{Resource: portaltest.BobsCluster, Clusters: []v1alpha1.ClusterState{{Name: "east", State: state}}}}
}

func (l *listing) show() string {
	l.t.Helper()
	s, err := l.api.shown(l.c, l.who, l.all, l.next)
	if err != nil {
		l.t.Fatal(err)
	}
	var page openapi.TicketList
	if err := json.Unmarshal(s.body, &page); err != nil || len(page.Items) != 1 {
		l.t.Fatalf("%s: %v", s.body, err)
	}
	it := page.Items[0]
	members := ""
	for _, c := range it.Items[0].Clusters {
		members += string(c.State)
	}
	return fmt.Sprint(it.Reason, "; withdraw ", it.Can.Withdraw, "; ", members, "; more ", page.NextCursor != nil)
}

func TestShownLists(t *testing.T) {
	const first = "the first reason; withdraw false; Pending; more false"
	for name, tc := range map[string]struct {
		change func(*listing)
		want   string
	}{
		"nothing changed": {func(l *listing) { l.all[0].Reason = "changed by nobody" }, first},
		"another version": {func(l *listing) { l.all[0].Version++; l.all[0].Reason = "the second" },
			"the second; withdraw false; Pending; more false"},
		"the members, said":    {func(l *listing) { l.member("Realized"); l.host.changes++ }, "the first reason; withdraw false; Realized; more false"},
		"the members, unsaid":  {func(l *listing) { l.member("Realized") }, first},
		"the host was lost":    {func(l *listing) { l.host.ready = false }, first},
		"another page follows": {func(l *listing) { l.next = encodeNumber(listTickets, 7) }, "the first reason; withdraw false; Pending; more true"},
		"another catalog":      {func(l *listing) { c := *l.c; l.c = &c; l.all[0].Reason = "read again" }, "read again; withdraw false; Pending; more false"},
		"another person":       {func(l *listing) { l.who.ID = "zoe"; l.all[0].Reason = "read again" }, "read again; withdraw false; Pending; more false"},
		"an auditor by now":    {func(l *listing) { l.who.Auditor = true; l.all[0].Reason = "read again" }, "read again; withdraw false; Pending; more false"},
		"security by now":      {func(l *listing) { l.who.Security = true; l.all[0].Reason = "read again" }, "read again; withdraw false; Pending; more false"},
		"stands for somebody":  {func(l *listing) { l.who.StandsFor = []string{"bob"}; l.all[0].Reason = "read again" }, "read again; withdraw false; Pending; more false"},
		"long ago":             {func(l *listing) { l.at = l.at.Add(keepShownFor); l.all[0].Reason = "read again" }, "read again; withdraw false; Pending; more false"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newListing(t, approval.StateEffective)
			if got := l.show(); got != first {
				t.Fatal(got)
			}
			tc.change(l)
			if got := l.show(); got != tc.want {
				t.Errorf("%s, not %s", got, tc.want)
			}
		})
	}
}

// TestShownListsBeforeTheHostIsKnown: what the members have is not known then, which is nothing to keep.
func TestShownListsBeforeTheHostIsKnown(t *testing.T) {
	l := newListing(t, approval.StateEffective)
	l.host.ready = false
	l.show()
	l.host.ready = true
	l.member("Realized")
	if got, want := l.show(), "the first reason; withdraw false; Realized; more false"; got != want {
		t.Error(got)
	}
}

// TestShownListsOfWhatIsOver: tickets that give nothing show no members, so the host's changes leave their page as it was.
func TestShownListsOfWhatIsOver(t *testing.T) {
	l := newListing(t, approval.StateExpired)
	before := l.show()
	l.host.changes++
	l.all[0].Reason = "changed by nobody"
	if got := l.show(); got != before {
		t.Error(got)
	}
}

// TestShownListsKeepNoCatalog: each sync makes another one, and pages stay until others take their place.
func TestShownListsKeepNoCatalog(t *testing.T) {
	l := newListing(t, approval.StateExpired)
	c := *l.c
	l.c = &c
	old := weak.Make(l.c)
	l.show()
	l.c = l.api.Catalog()
	l.show()
	runtime.GC()
	if old.Value() != nil {
		t.Error("a page keeps the catalog that it was made of")
	}
}

// TestLongListsAreNotKept bounds what the kept pages take.
func TestLongListsAreNotKept(t *testing.T) {
	l := newListing(t, approval.StateExpired)
	long := make([]byte, keepShownBytes)
	for i := range long {
		long[i] = 'a'
	}
	l.all[0].Reason = string(long)
	l.show()
	l.all[0].Reason = "read again"
	if got := l.show(); got != "read again; withdraw false; ; more false" {
		t.Error(got)
	}
}
