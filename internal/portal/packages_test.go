package portal

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// publish stores a version of a package of the team storage, as if a ticket had published it.
func (x *site) publish(name, title string) {
	x.t.Helper()
	x.publishFor("storage", name, title)
}

// publishFor is publish for a team.
func (x *site) publishFor(team, name, title string) {
	x.t.Helper()
	content, err := accesspackage.Spec{Title: title, Team: team, Chain: accesspackage.ChainOwners, DurationSeconds: 86400,
		Resources: map[string]accesspackage.Resource{portaltest.BobsCluster: {Actions: []string{"redis:connect"}, Owners: []string{"user:bob"}}}}.JSON()
	if err != nil {
		x.t.Fatal(err)
	}
	p := accesspackage.Publication{Name: name, Content: content, Ticket: int64(900 + len(title)), By: "bob", At: x.now()}
	if err := x.config.Packages.Publish(x.t.Context(), p); err != nil {
		x.t.Fatal(err)
	}
}

// hold gives an application access to Bob's cluster by version 1 of a package, and returns the number of the ticket.
func (x *site) hold(requester, app, appName, name string) int64 {
	x.t.Helper()
	t, err := x.config.Tickets.Store.Create(x.t.Context(), approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: requester,
		Reason: "for " + app, Items: []approval.Item{{Application: app, ApplicationName: appName, Resource: "bobs-cluster",
			ResourceName: portaltest.BobsCluster, Actions: []string{"redis:connect"}, Package: &approval.PackageRef{Name: name, Version: 1},
			Steps: []approval.Step{{Name: "owner", Approvers: []string{"nina"}, Quorum: 1, Auto: true}}}}}, x.now()))
	if err != nil {
		x.t.Fatal(err)
	}
	return t.Number
}

func newPackage(team string) map[string]any {
	return map[string]any{"kind": "package", "reason": "a bundle", "items": []any{map[string]any{"package": map[string]any{
		"name": "stores", "title": "Payment stores", "team": team, "chain": "publisher",
		"resources": []any{map[string]any{"resource": "bobs-cluster", "actions": []string{"redis:connect"}}},
	}}}}
}

// TestPackagesAreListed checks the search, the archive and its rule.
func TestPackagesAreListed(t *testing.T) {
	x := newSite(t)
	x.publish("stores", "Payment stores")
	x.publish("caches", "Caches")
	alice := x.as("alice")
	names := func(query string) string {
		t.Helper()
		var list openapi.PackageList
		a := alice.Get("/api/v1/packages" + query)
		if a.Into(t, &list); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		var out []string
		for _, p := range list.Items {
			out = append(out, p.Name)
		}
		return strings.Join(out, " ")
	}
	if got := names("") + "|" + names("?q=paym") + "|" + names("?q=x") + "|" + names("?archived=true"); got != "caches stores|stores||" {
		t.Errorf("the lists: %s", got)
	}
	if a := alice.Post("/api/v1/packages/stores/archive", nil); a.Status != http.StatusForbidden {
		t.Errorf("alice is not in the team: %d %s", a.Status, a.Body)
	}
	if a := x.as("bob").Post("/api/v1/packages/stores/archive", nil); a.Status != http.StatusNoContent {
		t.Errorf("bob is in the team: %d %s", a.Status, a.Body)
	}
	if got := names("") + "|" + names("?archived=true"); got != "caches|stores" {
		t.Errorf("after the archiving: %s", got)
	}
	if a := alice.Get("/api/v1/packages/none"); a.Status != http.StatusNotFound {
		t.Errorf("a package that does not exist: %d %s", a.Status, a.Body)
	}
}

// TestPublishingAndRequesting checks the tickets of packages, and who sees what of a package.
func TestPublishingAndRequesting(t *testing.T) {
	x := newSite(t)
	if a := x.as("alice").Post("/api/v1/tickets", newPackage("storage")); a.Status != http.StatusForbidden {
		t.Errorf("alice publishes for the team storage: %d %s", a.Status, a.Body)
	}
	a := x.as("bob").Post("/api/v1/tickets", newPackage("storage"))
	var ticket openapi.Ticket
	if a.Into(t, &ticket); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	want := &openapi.PackageRef{Name: "stores", Version: 1, Title: new("Payment stores")}
	if d := cmp.Diff(want, ticket.Items[0].Package); d != "" || ticket.State != "pending" {
		t.Errorf("the ticket is %s (-want +got):\n%s", ticket.State, d)
	}
	if a := x.as("alice").Get("/api/v1/tickets/" + ticket.Id); a.Status != http.StatusNotFound {
		t.Errorf("alice sees the ticket: %d", a.Status)
	}

	x.publish("caches", "Caches")
	wants := map[string]any{"reason": "all of it", "package": map[string]any{"name": "caches", "version": 1},
		"items": []any{map[string]any{"application": "app-888"}}}
	if a := x.as("erin").Post("/api/v1/tickets", wants); a.Status != http.StatusForbidden {
		t.Errorf("erin does not own the application: %d %s", a.Status, a.Body)
	}
	a = x.as("alice").Post("/api/v1/tickets", wants)
	if a.Into(t, &ticket); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	it := ticket.Items[0]
	if it.Resource == nil || it.Resource.Name != portaltest.BobsCluster || it.DurationSeconds == nil || *it.DurationSeconds != 86400 ||
		it.Package == nil || it.Package.Name != "caches" {
		t.Errorf("the item: %+v", it)
	}
	var p openapi.AccessPackage
	for who, publishes := range map[string]bool{"alice": false, "bob": true, "dave": true, "grace": false} {
		a := x.as(who).Get("/api/v1/packages/caches")
		if a.Into(t, &p); a.Status != http.StatusOK || p.Can.Publish != publishes || len(p.Resources) != 1 {
			t.Errorf("%s: %d %+v", who, a.Status, p)
		}
	}
	for _, who := range []string{"alice", "bob", "erin", "grace"} { // it is not in force, so nobody holds it
		var holders openapi.PackageHolderList
		a := x.as(who).Get("/api/v1/packages/caches/holders")
		if a.Into(t, &holders); a.Status != http.StatusOK || len(holders.Items) != 0 {
			t.Errorf("%s sees %d %s", who, a.Status, a.Body)
		}
	}
}

// TestHoldersHaveReasonsAndUses checks that holders have the reason of their ticket and their last use, for those who may see the ticket and
// the connections.
func TestHoldersHaveReasonsAndUses(t *testing.T) {
	x := newSite(t)
	x.publishFor("search", "caches", "Caches") // erin's team, which owns neither the resource nor app-888
	sid := x.written(x.hold("alice", "app-888", portaltest.App888, "caches"))
	x.hold("erin", "app-889", portaltest.App889, "caches") // approved, and not written yet
	now := time.Now().UTC().Truncate(time.Minute)
	see := func(minutes int, subject, policyName, sid string) {
		x.flows.see(
			now.Add(-time.Duration(minutes)*time.Minute),
			audit.Edge{Cluster: "m1", Subject: subject, Resource: portaltest.BobsCluster, Action: "redis:connect", Port: 6379,
				Protocol: "TCP", Decision: policy.Allowed, Verdict: audit.VerdictForwarded, Statement: policy.Ref{Policy: policyName, SID: sid}},
			1,
		)
	}
	see(40, portaltest.App888, policy.PolicyNameFor(portaltest.BobsCluster), sid)
	see(30, portaltest.App888, "by-hand", "eight") // by another statement
	see(20, portaltest.App889, "by-hand", "nine")
	at := now.Add(-40 * time.Minute).Format(time.RFC3339)
	for who, want := range map[string]map[string]string{
		"dave":  {portaltest.App888: "used " + at + " for app-888", portaltest.App889: "unknown  for app-889"},
		"grace": {portaltest.App888: "used " + at + " for app-888", portaltest.App889: "unknown  for app-889"},
		"bob":   {}, // owns the resource, but is not in the team
		"alice": {portaltest.App888: "used " + at + " for app-888"},
		"erin":  {portaltest.App888: "unknown  ", portaltest.App889: "unknown  for app-889"},
		"carol": {},
	} {
		b, got := x.as(who), map[string]string{}
		var holders openapi.PackageHolderList
		b.Get("/api/v1/packages/caches/holders").Into(t, &holders)
		var uses openapi.PackageHolderUseList
		if b.Get("/api/v1/packages/caches/holders/uses").Into(t, &uses); !uses.Available {
			t.Errorf("%s: the uses are not available", who)
		}
		for _, u := range uses.Items {
			got[u.Application] = string(u.State) + " "
			if u.LastUsed != nil {
				got[u.Application] += u.LastUsed.Format(time.RFC3339)
			}
			got[u.Application] += " "
		}
		for _, h := range holders.Items {
			if h.Reason != nil {
				got[h.Application.Name] += *h.Reason
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", who, d)
		}
	}
	x.flows.err = errUnavailable
	var uses openapi.PackageHolderUseList
	if x.as("dave").Get("/api/v1/packages/caches/holders/uses").Into(t, &uses); uses.Available || len(uses.Items) != 0 {
		t.Errorf("without flows: %+v", uses)
	}
}

// TestVersionForHolders checks who sees which applications of an update, and what the ticket of such a version shows.
func TestVersionForHolders(t *testing.T) {
	x := newSite(t)
	x.publish("caches", "Caches")
	forHolders := newPackage("storage")
	body := forHolders["items"].([]any)[0].(map[string]any)["package"].(map[string]any)
	body["name"], body["toHolders"] = "caches", true
	var problem problemBody
	if a := x.as("bob").Post("/api/v1/tickets", forHolders); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("nobody holds the package: %d %s", a.Status, a.Body)
	} else if a.Into(t, &problem); len(problem.Fields) != 1 || problem.Fields[0].Field != "items[0].package.toHolders" {
		t.Errorf("the problem: %+v", problem)
	}

	n := x.hold("alice", "app-888", portaltest.App888, "caches")
	a := x.as("bob").Post("/api/v1/tickets", forHolders)
	var ticket openapi.Ticket
	if a.Into(t, &ticket); a.Status != http.StatusCreated || ticket.Items[0].Package == nil || ticket.Items[0].Package.Holders == nil ||
		*ticket.Items[0].Package.Holders != 1 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}

	spec := accesspackage.Spec{Title: "Caches", Team: "storage", Chain: accesspackage.ChainOwners, Holders: map[string]accesspackage.HolderChange{
		portaltest.App888: {},
		portaltest.App889: {},
	}, Resources: map[string]accesspackage.Resource{portaltest.BobsCluster: {Actions: []string{"redis:connect"}}}}
	content, err := spec.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.config.Packages.Publish(
		t.Context(),
		accesspackage.Publication{Name: "caches", Base: 1, Content: content, Ticket: 990, By: "bob", At: x.now()},
	); err != nil {
		t.Fatal(err)
	}
	if _, err := x.config.Packages.SaveHolder(t.Context(), accesspackage.HolderUpdate{Package: "caches", Version: 2, Application: portaltest.App888,
		State: accesspackage.HolderWaiting, Ticket: n, UpdatedAt: x.now()}, accesspackage.HolderPending); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]struct {
		total, listed, waiting int
		ticket                 bool
	}{
		"bob":   {2, 2, 1, true},  // of the team, and owner of the resource
		"dave":  {2, 2, 1, true},  // security
		"grace": {2, 2, 1, true},  // auditor
		"alice": {1, 1, 1, true},  // owns app-888
		"erin":  {1, 1, 0, false}, // owns app-889
	} {
		var p openapi.AccessPackage
		a := x.as(who).Get("/api/v1/packages/caches")
		if a.Into(t, &p); a.Status != http.StatusOK || len(p.Versions) != 2 || p.Versions[0].Holders == nil || p.Versions[1].Holders != nil {
			t.Errorf("%s: %d %s", who, a.Status, a.Body)
			continue
		}
		u := p.Versions[0].Holders
		hasTicket := false
		for _, app := range u.Applications {
			hasTicket = hasTicket || app.Ticket != nil
		}
		if u.State != "queued" || u.Total != want.total || len(u.Applications) != want.listed || u.Waiting != want.waiting || hasTicket != want.ticket {
			t.Errorf("%s sees %+v, want %+v", who, u, want)
		}
	}
}
