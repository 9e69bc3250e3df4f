package portal

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv/golden"
)

// TestEveryRouteHasARow compares the routes of the router with the table.
func TestEveryRouteHasARow(t *testing.T) {
	x := newSite(t)
	served := map[string]bool{}
	for _, key := range x.Routes() {
		served[key] = true
		if !slices.ContainsFunc(routes, func(r core.Route) bool { return r.Method+" "+r.Path == key }) {
			t.Errorf("%s has no row in the table", key)
		}
	}
	rows := map[string]bool{}
	for _, r := range routes {
		key := r.Method + " " + r.Path
		if !served[key] {
			t.Errorf("%s is in the table, and is not served", key)
		}
		if rows[key] {
			t.Errorf("%s has two rows", key)
		}
		rows[key] = true
	}
}

// TestBriefOperations checks that the operations of the list of brief operations exist.
func TestBriefOperations(t *testing.T) {
	n := 0
	operations := reflect.TypeFor[openapi.StrictServerInterface]()
	for _, r := range routes {
		if r.Brief {
			n++
			if _, ok := operations.MethodByName(strings.ToUpper(r.Operation[:1]) + r.Operation[1:]); !ok || r.Method != http.MethodGet || r.Costs != nil {
				t.Errorf("%s is not brief", r.Operation)
			}
		}
	}
	if n == 0 {
		t.Error("no operation is brief")
	}
}

// samples are values for the parameters of paths. The objects exist in newSiteOfFunctions, except those with random ids: tokens, people of
// SCIM, and what the messages of Slack are about. The walks fail for a parameter without a sample.
var samples = []string{
	"/applications/:id", "/applications/app-888",
	"/resources/:id", "/resources/bobs-cluster",
	"/tickets/:id", "/tickets/T-1",
	"/tokens/:id", "/tokens/none",
	"/views/:id", "/views/1",
	"/packages/:id", "/packages/stores",
	"/people/:id", "/people/alice",
	"/groups/:id", "/groups/search",
	"/rollout/:id", "/rollout/bobs-cluster",
	"/workloads/:id", "/workloads/vm-1",
	"/delegations/:id", "/delegations/1",
	"/approval-policies/:id", "/approval-policies/extra",
	"/organizations/:id", "/organizations/payments",
	"/reviews/:id", "/reviews/R-1",
	"/sources/:id", "/sources/files",
	"/entities/:kind/:id", "/entities/resource/pay-one",
	"/fleet/:member", "/fleet/m1",
	"/classes/:name", "/classes/pay",
	"/policies/:name", "/policies/by-hand",
	"/scim/v2/*path", "/scim/v2/Users/none",
	"/integrations/*path", "/integrations/slack/interactions",
}

// queries are the required query parameters of operations.
var queries = map[string]string{"getDevice": "?userCode=BCDF-BCDF", "search": "?q=app", "getAccessPath": "?from=app-888&to=bobs-cluster",
	"listPastAccess": "?at=2026-01-01T00%3A00%3A00Z", "listAccessPeriods": "?application=app-888"}

// accessRequest is the identity by which an AccessRequest of newSiteOfFunctions requests access.
var accessRequest = approval.AccessRequester("shop", "cache")

// roles are the callers of TestRoutePermissions, in the order of the columns of its file. Each of the last five has one function only.
var roles = []struct {
	name, who string
	scope     credential.Scope // what the caller's only token permits; empty for people with a browser and a token for each scope
}{
	{name: "nobody"},
	{name: "requester", who: "alice"},
	{name: "owner", who: "bob"},
	{name: "leader", who: "carol"},
	{name: "security", who: "dave"},
	{name: "auditor", who: "grace"},
	{name: "organization", who: "olga"},                                        // an organization administrator
	{name: "delegate", who: "dean"},                                            // of approvers, and of people with other functions
	{name: "author", who: "arne"},                                              // of an AccessRequest
	{name: "platform", who: "dora", scope: credential.ScopeWorkloads},          // registers the machines of all applications
	{name: "program", who: accessRequest, scope: credential.ScopeTicketsWrite}, // an AccessRequest
}

// refusedRoles are the roles that may not call a route of a row at all.
var refusedRoles = map[core.Callers]string{
	core.Changer:       "auditor",
	core.Governor:      "requester owner leader organization delegate author",
	core.Administrator: "requester owner leader auditor organization delegate author",
	core.CatalogEditor: "requester owner leader auditor delegate author",
	core.Registrar:     "owner leader auditor organization delegate author",
}

// refusesRole reports whether a row refuses a role whatever the request is about.
func refusesRole(r core.Route, role string) bool {
	return slices.Contains(strings.Fields(refusedRoles[r.Who]), role)
}

// rowOf returns the row of the operation of an attempt.
func rowOf(t *testing.T, a attempt) core.Route {
	t.Helper()
	i := slices.IndexFunc(routes, func(r core.Route) bool { return r.Operation == strings.Fields(a.name)[0] })
	if i < 0 {
		t.Fatalf("%s is no operation", a.name)
	}
	return routes[i]
}

// outcome returns the status of an attempt, and the code of a problem.
func outcome(b *portaltest.Browser, a attempt, h http.Header) (status int, code string) {
	b.T.Helper()
	if a.name == "streamEvents" { // it does not end
		ctx, cancel := context.WithCancel(b.T.Context())
		defer cancel()
		return b.Begin(ctx, a.method, a.path, h)
	}
	got := b.Call(a.method, a.path, a.body, h)
	if got.Header.Get("Content-Type") == "application/problem+json" {
		var p problemBody
		got.Into(b.T, &p)
		code = p.Code
	}
	return got.Status, code
}

// TestRoutePermissions requests every route as every role about objects that exist, each role on a site of its own, and compares with the
// table: first in a browser, then with tokens of each scope. What the browser receives depends on the object, too; testdata/permissions.txt
// contains the status of each request and role.
func TestRoutePermissions(t *testing.T) {
	file := map[string][]string{}
	var names []string
	for _, role := range roles {
		t.Run(role.name, func(t *testing.T) {
			x := newSiteOfFunctions(t)
			rows := append(x.attempts(t), attempt{name: "streamEvents", method: http.MethodGet, path: base + "/events"})
			names = names[:0]
			for _, a := range rows {
				names = append(names, a.name)
			}
			var status []string
			if role.scope == "" {
				status = x.walkBrowser(t, role.name, role.who, rows)
			} else {
				status = x.walkToken(t, role.name, x.token(role.who, role.scope), role.scope, role.who != accessRequest, rows)
			}
			for i, a := range rows {
				file[a.name] = append(file[a.name], status[i])
			}
			if role.who == "" || role.scope != "" {
				return
			}
			for _, s := range credential.Scopes() {
				x.walkToken(t, role.name, x.token(role.who, s), s, true, rows)
			}
		})
	}
	var out strings.Builder
	line := func(name string, cells []string) {
		fmt.Fprintf(&out, "%-45s", name)
		for i, cell := range cells {
			fmt.Fprintf(&out, " %-*s", len(roles[i].name), cell)
		}
		out.WriteString("\n")
	}
	var head []string
	for _, role := range roles {
		head = append(head, role.name)
	}
	line("", head)
	for _, name := range names {
		line(name, file[name])
	}
	golden.Compare(t, filepath.Join("testdata", "permissions.txt"), regexp.MustCompile(` +\n`).ReplaceAllString(out.String(), "\n"))
}

// walkBrowser makes requests in a browser, and returns the status of each. It checks what the table says of the role.
func (x *site) walkBrowser(t *testing.T, role, who string, rows []attempt) (status []string) {
	t.Helper()
	b := x.as(who)
	for _, a := range rows {
		r := rowOf(t, a)
		x.advance(time.Second) // the rate limit has a test of its own
		if who != "" && r.Method != http.MethodGet && !r.Programs {
			if got, _ := outcome(b, a, nil); got != http.StatusForbidden {
				t.Errorf("%s: %d without the header that forms of other sites cannot send", a.name, got)
			}
		}
		got, code := outcome(b, a, http.Header{"X-Acp-Request": {"1"}})
		if refused, want := got == http.StatusUnauthorized, r.Who != core.Anyone && who == ""; refused != want {
			t.Errorf("%s: %d; unauthenticated is %v in the row", a.name, got, want)
		}
		if refusesRole(r, role) && got != http.StatusForbidden {
			t.Errorf("%s: %d; the row does not permit the role", a.name, got)
		}
		if r.Method == http.MethodGet && role == "auditor" && got >= http.StatusBadRequest && got != http.StatusNotFound {
			t.Errorf("%s: %d; an auditor may read everything", a.name, got)
		}
		if got >= http.StatusInternalServerError || code == "scope" {
			t.Errorf("%s: %d %s", a.name, got, code)
		}
		status = append(status, strconv.Itoa(got))
	}
	return status
}

// walkToken makes requests with a token for a scope, and returns the status of each. It checks that the scope and the table limit it. known is
// false for the token of somebody who may not call at all.
func (x *site) walkToken(t *testing.T, role, secret string, scope credential.Scope, known bool, rows []attempt) (status []string) {
	t.Helper()
	program := x.as("")
	for _, a := range rows {
		r := rowOf(t, a)
		x.advance(time.Second)
		if !known {
			x.advance(5 * time.Second) // unknown tokens have a small budget
		}
		got, code := outcome(program, a, http.Header{"Authorization": {"Bearer " + secret}})
		good := r.Who == core.Anyone || r.Scope == scope
		switch refused := got == http.StatusForbidden && code == "scope"; {
		case !known:
			if r.Who != core.Anyone && got != http.StatusUnauthorized {
				t.Errorf("%s: %d %s; it may call nothing", a.name, got, code)
			}
		case refused == good || got == http.StatusUnauthorized:
			t.Errorf("%s with a token for %s: %d %s; the scope permits it: %v", a.name, scope, got, code, good)
		case good && refusesRole(r, role) && got != http.StatusForbidden:
			t.Errorf("%s with a token for %s: %d; the row does not permit the role", a.name, scope, got)
		}
		if got >= http.StatusInternalServerError {
			t.Errorf("%s with a token for %s: %d %s", a.name, scope, got, code)
		}
		status = append(status, strconv.Itoa(got))
	}
	return status
}

// TestAnAccessRequestCannotLogIn checks that the name of an AccessRequest at the login provider opens no session, so that nobody decides or
// withdraws in its name.
func TestAnAccessRequestCannotLogIn(t *testing.T) {
	x := newSiteOfFunctions(t)
	b := portaltest.NewBrowser(t, x.base)
	if to := b.Login(x.provider, "/", accessRequest); !strings.Contains(to, "error=") {
		t.Errorf("the login led to %s", to)
	}
	if a := b.Get("/api/v1/me"); a.Status != http.StatusUnauthorized {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestVisibility checks what each person sees of tickets, resources and applications.
func TestVisibility(t *testing.T) {
	x := newSite(t)
	if a := x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster")); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for name, tc := range map[string]struct {
		reason, who, path string
		want              int
		items             int // -1: not a list
	}{
		"requester":             {"it is the own request", "alice", "/api/v1/tickets/T-1", 200, -1},
		"approver":              {"decides the current step", "carol", "/api/v1/tickets/T-1", 200, -1},
		"later approver":        {"decides a later step", "bob", "/api/v1/tickets/T-1", 200, -1},
		"security":              {"sees all", "dave", "/api/v1/tickets/T-1", 200, -1},
		"auditor":               {"sees all", "grace", "/api/v1/tickets/T-1", 200, -1},
		"unconcerned":           {"it looks missing", "erin", "/api/v1/tickets/T-1", 404, -1},
		"unconcerned, list":     {"empty", "erin", "/api/v1/tickets?view=all", 200, 0},
		"approver's list":       {"the step is current", "carol", "/api/v1/tickets?view=approvals", 200, 1},
		"later approver's list": {"the step is not current yet", "bob", "/api/v1/tickets?view=approvals", 200, 0},
		"all for security":      {"all", "dave", "/api/v1/tickets?view=all", 200, 1},
		"odd id":                {"no such ticket", "alice", "/api/v1/tickets/T-01", 404, -1},
		"own app's access":      {"an owner sees what it reaches", "alice", "/api/v1/applications/app-888/access", 200, 1},
		"other app's access":    {"others do not", "erin", "/api/v1/applications/app-888/access", 403, -1},
		"other app's flows":     {"others do not", "bob", "/api/v1/applications/app-888/connections", 403, -1},
		"auditor's app access":  {"sees all", "grace", "/api/v1/applications/app-888/access", 200, 1},
		"owner's resource":      {"all rows", "bob", "/api/v1/resources/bobs-cluster/access", 200, 2},
		"client's resource":     {"only rows of the own application", "alice", "/api/v1/resources/bobs-cluster/access", 200, 1},
		"unconcerned, resource": {"no rows", "carol", "/api/v1/resources/bobs-cluster/access", 200, 0},
		"own app's uses":        {"an owner sees them", "alice", "/api/v1/applications/app-888/access/uses", 200, 1},
		"other app's uses":      {"others do not", "bob", "/api/v1/applications/app-888/access/uses", 403, -1},
		"owner's uses":          {"all rows", "bob", "/api/v1/resources/bobs-cluster/access/uses", 200, 2},
		"client's uses":         {"the own rows", "erin", "/api/v1/resources/bobs-cluster/access/uses", 200, 1},
		"unconcerned, uses":     {"no rows", "carol", "/api/v1/resources/bobs-cluster/access/uses", 200, 0},
		"owner's flows":         {"all rows", "bob", "/api/v1/resources/bobs-cluster/connections", 200, 2},
		"client's flows":        {"the own rows", "erin", "/api/v1/resources/bobs-cluster/connections", 200, 1},
		"unconcerned, flows":    {"none", "frank", "/api/v1/resources/bobs-cluster/connections", 200, 0},
		"my applications":       {"mine", "alice", "/api/v1/applications?mine=true", 200, 1},
		"all applications":      {"everyone may list", "frank", "/api/v1/applications", 200, 2},
		"search":                {"by title", "frank", "/api/v1/applications?q=APP+889", 200, 1},
		"bad limit":             {"out of range", "frank", "/api/v1/applications?limit=0", 400, -1},
		"bad view":              {"not a view", "frank", "/api/v1/tickets?view=x", 400, -1},
		"bad since":             {"not a time", "alice", "/api/v1/applications/app-888/connections?since=yesterday", 400, -1},
		"unknown":               {"not in the catalog", "alice", "/api/v1/resources/nothing", 404, -1},
	} {
		t.Run(name, func(t *testing.T) {
			a := x.as(tc.who).Get(tc.path)
			if a.Status != tc.want {
				t.Fatalf("%s: %d, want %d: %s", tc.reason, a.Status, tc.want, a.Body)
			}
			if tc.items < 0 {
				return
			}
			var list struct{ Items []any }
			if a.Into(t, &list); list.Items == nil || len(list.Items) != tc.items {
				t.Errorf("%s: want %d items: %s", tc.reason, tc.items, a.Body)
			}
		})
	}
	var app struct{ Denied24h *int64 }
	if x.as("erin").Get("/api/v1/applications/app-888").Into(t, &app); app.Denied24h != nil {
		t.Error("another person sees how often the application was refused")
	}
	if x.as("alice").Get("/api/v1/applications/app-888").Into(t, &app); app.Denied24h == nil || *app.Denied24h != 3 {
		t.Error("the owner does not see how often the application was refused")
	}
}
