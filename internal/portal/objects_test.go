package portal

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestForeignObjectsLookMissing checks for each route with an id that an object that the caller may not see gives the same answer as one that does
// not exist, so that guessing ids reveals nothing.
func TestForeignObjectsLookMissing(t *testing.T) {
	x := newSite(t)
	alice, erin := x.as("alice"), x.as("erin")
	must := func(a portaltest.Answer) portaltest.Answer {
		t.Helper()
		if a.Status >= http.StatusMultipleChoices {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		return a
	}
	must(alice.Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster")))
	var token struct{ Token struct{ ID string } }
	must(alice.Post("/api/v1/me/tokens", map[string]any{"name": "ci", "scopes": []string{"read"}, "expiresInSeconds": 3600})).Into(t, &token)
	var view struct{ ID string }
	must(putView(alice, "flows", "denied", "decision=denied")).Into(t, &view)
	var delegation struct{ ID string }
	must(
		alice.Post("/api/v1/delegations", map[string]any{"to": "carol", "start": time.Now().UTC(), "end": time.Now().Add(time.Hour).UTC(), "reason": "away"}),
	).Into(t, &delegation)
	must(
		alice.Post(
			"/api/v1/workloads",
			map[string]any{"items": []map[string]any{{"id": "vm-1", "subject": portaltest.App888, "addresses": []string{"192.0.2.7"}}}},
		),
	)
	if x.registered.count() != 1 {
		t.Fatal("the workload is not registered")
	}
	x.grantAccess("alice", "app-888", portaltest.App888, "ledger-db-cache", portaltest.LedgerCache, "carts")
	must(x.as("dave").Post("/api/v1/reviews", newReview(x)))
	x.review()

	x.host.organizations = []*v1alpha1.Organization{paymentsOrganization()}

	public := map[string]string{
		"getApplication":             "the catalog is for everyone who is logged in",
		"listApplicationAccess":      "refused as a whole; that the application exists is no secret",
		"listApplicationAccessUses":  "refused as a whole",
		"listApplicationConnections": "refused as a whole",
		"getResource":                "the catalog",
		"listResourceAccess":         "rows of the caller's own applications",
		"listResourceAccessUses":     "rows of the caller's own applications",
		"listPastAccess":             "rows of the caller's own applications",
		"listAccessPeriods":          "refused as a whole; that the resource and the application exist is no secret",
		"listModeHistory":            "refused as a whole",
		"listResourceConnections":    "rows of the caller's own applications",
		"getPackage":                 "everyone may request it",
		"listPackageHolders":         "rows of the caller's own applications",
		"listPackageHolderUses":      "rows of the caller's own applications",
		"archivePackage":             "refused as a whole; that the package exists is no secret",
		"getPerson":                  "the catalog",
		"getGroup":                   "the catalog",
		"getApprovalPolicy":          "everyone may know who has to approve",
		"getResourceProposal":        "refused as a whole; that the resource exists is no secret",
		"putProposalReview":          "refused as a whole",
		"notifyClient":               "refused as a whole",
		"getResourceEvidence":        "refused as a whole",
		"listResourceUnused":         "refused as a whole",
		"putTemporaryAudit":          "refused as a whole",
		"endTemporaryAudit":          "refused as a whole",
		"listApplicationUnused":      "refused as a whole",
		"getRollout":                 "refused as a whole",
		"putRolloutGuard":            "refused as a whole",
		"putRolloutWaves":            "refused as a whole",
		"putClassWaves":              "refused as a whole; that the class exists is no secret",
	}
	withID := map[string]struct {
		existing, none string
		body           any
		status         int
	}{
		"getTicket":         {"T-1", "T-999", nil, 404},
		"decideTicket":      {"T-1", "T-999", map[string]any{"decision": "approve", "version": 1}, 404},
		"withdrawTicket":    {"T-1", "T-999", map[string]any{"reason": "r"}, 404},
		"revokeTicket":      {"T-1", "T-999", map[string]any{"reason": "r"}, 404},
		"commentTicket":     {"T-1", "T-999", map[string]any{"comment": "c"}, 404},
		"reviewTicket":      {"T-1", "T-999", map[string]any{"confirm": true}, 404},
		"getTicketChange":   {"T-1", "T-999", nil, 404},
		"listTicketLedger":  {"T-1", "T-999", nil, 404},
		"getTicketImpact":   {"T-1", "T-999", nil, 404},
		"listTicketFacts":   {"T-1", "T-999", nil, 404},
		"revokeToken":       {token.Token.ID, "AAAAAAAAAAAAAAAAAAAAAAAAAA", nil, 404},
		"deleteSavedView":   {view.ID, "999", nil, 404},
		"shareView":         {view.ID, "999", nil, 404},
		"unshareView":       {view.ID, "999", nil, 404},
		"getSharedView":     {view.ID, "999", nil, 404}, // the view is not shared
		"endDelegation":     {delegation.ID, "999", nil, 404},
		"deleteWorkload":    {"vm-1", "vm-2", nil, 404},
		"previewSync":       {"files", "none", map[string]any{}, 403},
		"applySync":         {"files", "none", map[string]any{"token": "t"}, 403},
		"getMember":         {"m1", "none", nil, 403},
		"getPolicy":         {"by-hand", "none", nil, 403},
		"listPolicyUses":    {"by-hand", "none", nil, 403},
		"getOrganization":   {"payments", "none", nil, 404},
		"getReview":         {"R-1", "R-999", nil, 404},
		"listReviewLines":   {"R-1", "R-999", nil, 404},
		"decideReviewLines": {"R-1", "R-999", choice(1, 1, "keep"), 404},
		"endReview":         {"R-1", "R-999", map[string]any{"reason": "r"}, 403},
		"exportReview":      {"R-1", "R-999", nil, 403},
		"deleteEntity":      {"application/app-888", "application/none", map[string]any{"reason": "r"}, 403},
	}
	for _, r := range routes {
		if !strings.Contains(r.Path, ":") || public[r.Operation] != "" {
			continue
		}
		t.Run(r.Operation, func(t *testing.T) {
			tc, ok := withID[r.Operation]
			if !ok {
				t.Fatalf("%s %s has no row in this test", r.Method, r.Path)
			}
			said := func(id string) string {
				a := erin.Call(
					r.Method,
					strings.NewReplacer(":kind/:id", id, ":id", id, ":member", id, ":name", id).Replace(r.Path),
					tc.body,
					http.Header{"X-Acp-Request": {"1"}},
				)
				var p map[string]any
				a.Into(t, &p)
				delete(p, "requestId")
				if a.Status != tc.status {
					t.Errorf("%s: %d %s", id, a.Status, a.Body)
				}
				text, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				return strings.ReplaceAll(string(text), id, "ID")
			}
			if one, none := said(tc.existing), said(tc.none); one != none {
				t.Errorf("an object of somebody else: %s\none that does not exist: %s", one, none)
			}
		})
	}
	if alice.Get("/api/v1/tickets/T-1").Status != http.StatusOK || x.registered.count() != 1 {
		t.Error("a refused call changed something")
	}
	var left struct{ Items []any }
	if alice.Get("/api/v1/me/tokens").Into(t, &left); len(left.Items) != 1 {
		t.Error("the token of alice was revoked")
	}
}

// TestListsHideForeignObjects checks that no filter lists objects that the caller may not see.
func TestListsHideForeignObjects(t *testing.T) {
	x := newSite(t)
	alice, erin := x.as("alice"), x.as("erin")
	alice.Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
	alice.Post("/api/v1/me/tokens", map[string]any{"name": "ci", "scopes": []string{"read"}, "expiresInSeconds": 3600})
	alice.Post("/api/v1/delegations", map[string]any{"to": "carol", "start": time.Now().UTC(), "end": time.Now().Add(time.Hour).UTC(), "reason": "away"})
	alice.Post("/api/v1/workloads", map[string]any{"items": []map[string]any{{"id": "vm-1", "subject": portaltest.App888, "addresses": []string{"192.0.2.7"}}}})
	x.grantAccess("alice", "app-888", portaltest.App888, "ledger-db-cache", portaltest.LedgerCache, "carts")
	x.as("dave").Post("/api/v1/reviews", newReview(x))
	x.review()
	for _, path := range []string{"/tickets?view=all", "/tickets?view=all&requester=alice", "/tickets?view=all&q=T-1",
		"/tickets?view=all&q=checkout", "/tickets?view=all&application=app-888",
		"/tickets?view=all&resource=bobs-cluster", "/tickets?view=approvals", "/tickets?view=decided",
		"/tickets?view=review", "/search?q=T-1", "/me/tokens", "/me/inbox", "/delegations",
		"/workloads", "/workloads?application=app-888", "/workloads?q=vm", "/reviews", "/me/review-lines"} {
		var list struct{ Items []any }
		a := erin.Get("/api/v1" + path)
		if a.Into(t, &list); a.Status != http.StatusOK || len(list.Items) != 0 {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
		a = x.as("").Get("/api/v1" + path)
		if a.Status != http.StatusUnauthorized {
			t.Errorf("%s without a login: %d", path, a.Status)
		}
	}
	for _, path := range []string{"/delegations?all=true", "/ledger", "/catalog/sources", "/catalog/entities", "/ledger/export"} {
		if a := erin.Get("/api/v1" + path); a.Status != http.StatusForbidden {
			t.Errorf("%s: %d", path, a.Status)
		}
	}
	if a := erin.Post(
		"/api/v1/tickets/what-if",
		map[string]any{"as": "alice", "request": newTicket("app-888", "bobs-cluster")},
	); a.Status != http.StatusForbidden {
		t.Errorf("a request on behalf of another person: %d %s", a.Status, a.Body)
	}
}

// TestTokensNeverExceedTheirOwners checks that a scope permits nothing that the token's owner may not do, and that only security administrators can
// create tokens of platforms, which may register machines of every application.
func TestTokensNeverExceedTheirOwners(t *testing.T) {
	x := newSite(t)
	program := x.as("")
	call := func(secret, method, path string, body any) portaltest.Answer {
		return program.Call(method, "/api/v1"+path, body, http.Header{"Authorization": {"Bearer " + secret}})
	}
	vm := func(app string) map[string]any {
		return map[string]any{"items": []map[string]any{{"id": "vm-1", "source": "cmdb", "subject": app, "addresses": []string{"192.0.2.7"}}}}
	}
	own := map[string]any{"items": []map[string]any{{"id": "vm-1", "subject": portaltest.App889, "addresses": []string{"192.0.2.7"}}}}
	for name, tc := range map[string]struct {
		reason, who  string
		scope        string
		method, path string
		body         any
		want         int
	}{
		"ledger": {"the owner may not read the ledger", "alice", "ledger:read", "GET", "/ledger", nil, 403},
		"catalog": {
			"the owner may not change the catalog", "alice", "catalog:write", "POST", "/catalog/entities",
			map[string]any{"kind": "person", "id": "mallory", "title": "M"}, 403,
		},
		"others' machine": {
			"the owner may not register for others' applications", "alice",
			"workloads:write", "POST", "/workloads", vm(portaltest.App889), 403,
		},
		"full sync": {
			"the owner may not act for a platform", "alice", "workloads:write", "POST",
			"/workloads/sync", map[string]any{"source": "cmdb", "items": []any{}}, 403,
		},
		"platform":      {"a security administrator may", "dave", "workloads:write", "POST", "/workloads", vm(portaltest.App889), 200},
		"auditor":       {"an auditor's token changes nothing", "grace", "workloads:write", "POST", "/workloads", vm(portaltest.App889), 403},
		"auditor reads": {"an auditor's token reads the ledger", "grace", "ledger:read", "GET", "/ledger", nil, 200},
		"own decision": {
			"the requester cannot decide, with any token", "alice", "tickets:decide", "POST",
			"/tickets/T-1/decision", map[string]any{"decision": "approve", "version": 1}, 403,
		},
		"more tokens": {
			"a token creates no tokens", "alice", "read", "POST", "/me/tokens",
			map[string]any{"name": "x", "scopes": []string{"read"}, "expiresInSeconds": 3600}, 403,
		},
		"delegation": {"a token creates no delegations", "alice", "tickets:write", "POST", "/delegations", map[string]any{"to": "carol"}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "own decision" {
				x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster"))
			}
			if a := call(x.token(tc.who, scope(tc.scope)), tc.method, tc.path, tc.body); a.Status != tc.want {
				t.Errorf("%s: %d %s", tc.reason, a.Status, a.Body)
			}
		})
	}
	var results struct{ Items []struct{ Outcome string } }
	if call(
		x.token("alice", scope("workloads:write")),
		"POST",
		"/workloads",
		own,
	).Into(t, &results); len(results.Items) != 1 ||
		results.Items[0].Outcome != "refused" {
		t.Errorf("the token registered what its owner may not: %+v", results)
	}
	// With a token the cookie is ignored, so that a token does not get the permissions of a session.
	dave := x.as("dave")
	little := http.Header{"Authorization": {"Bearer " + x.token("alice", scope("read"))}}
	var me struct {
		Person struct{ ID string }
		Token  bool
	}
	if dave.Call("GET", "/api/v1/me", nil, little).Into(t, &me); me.Person.ID != "alice" || !me.Token {
		t.Errorf("the caller is %+v", me)
	}
	for reason, header := range map[string]string{
		"unknown":        "Bearer acp_" + strings.Repeat("A", 52),
		"another scheme": "Basic YWxpY2U6eA==", "empty": "Bearer", "nonsense": "Bearer ü\t",
	} {
		if a := dave.Call(
			"GET", "/api/v1/me", nil, http.Header{"Authorization": {header}},
		); a.Status != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: the session was used instead of the token: %d", reason, a.Status)
		}
	}
}

// TestFullSyncFromABrowser checks that only a security administrator can replace a platform's whole list, with a token of its preview, and that the
// list of people's registrations cannot be replaced.
func TestFullSyncFromABrowser(t *testing.T) {
	x := newSite(t)
	const path = "/api/v1/workloads/sync"
	one := func(source, token string) map[string]any {
		body := map[string]any{"source": source, "items": []map[string]any{{"id": "vm-1", "subject": portaltest.App889, "addresses": []string{"192.0.2.7"}}}}
		if token != "" {
			body["token"] = token
		}
		return body
	}
	for name, tc := range map[string]struct {
		reason, who, source string
		want                int
	}{
		"Owner":    {"erin owns the application, not the source", "erin", "cmdb", http.StatusForbidden},
		"Auditor":  {"changes nothing", "grace", "cmdb", http.StatusForbidden},
		"People's": {"what people registered is not one list", "dave", "portal", http.StatusForbidden},
		"BadName":  {"no source has such a name", "dave", "CMDB!", http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			if a := x.as(tc.who).Post(path, one(tc.source, "")); a.Status != tc.want {
				t.Errorf("%s: %d %s", tc.reason, a.Status, a.Body)
			}
		})
	}
	dave := x.as("dave")
	var preview, applied struct {
		Token   string
		Applied bool
		Added   int
	}
	dave.Post(path, one("cmdb", "")).Into(t, &preview)
	if preview.Applied || preview.Added != 1 || x.registered.count() != 0 {
		t.Fatalf("the preview is %+v, with %d registered", preview, x.registered.count())
	}
	if a := dave.Post(path, one("cmdb", "stale")); a.Status != http.StatusConflict {
		t.Errorf("the token of another preview: %d %s", a.Status, a.Body)
	}
	dave.Post(path, one("cmdb", preview.Token)).Into(t, &applied)
	if !applied.Applied || x.registered.count() != 1 {
		t.Errorf("applied: %+v, %d", applied, x.registered.count())
	}
}
