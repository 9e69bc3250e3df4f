package portal

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// publish stores a version of a package of the team storage, as if a ticket had published it.
func (x *site) publish(name, title string) {
	x.t.Helper()
	content, err := accesspackage.Spec{Title: title, Team: "storage", Chain: accesspackage.ChainOwners, DurationSeconds: 86400,
		Resources: map[string]accesspackage.Resource{portaltest.BobsCluster: {Actions: []string{"redis:connect"}, Owners: []string{"user:bob"}}}}.JSON()
	if err != nil {
		x.t.Fatal(err)
	}
	p := accesspackage.Publication{Name: name, Content: content, Ticket: int64(900 + len(title)), By: "bob", At: x.now()}
	if err := x.config.Packages.Publish(x.t.Context(), p); err != nil {
		x.t.Fatal(err)
	}
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
