package portal

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/portaltest"
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

// samples are values for the parameters of paths. TestRoutePermissions fails for a parameter without one.
var samples = []string{
	"/applications/:id",
	"/applications/app-888",
	"/resources/:id",
	"/resources/bobs-cluster",
	"/tickets/:id",
	"/tickets/T-999",
	"/tokens/:id",
	"/tokens/none",
	"/views/:id",
	"/views/1",
	"/packages/:id",
	"/packages/none",
	"/people/:id",
	"/people/alice",
	"/rollout/:id",
	"/rollout/bobs-cluster",
	"/workloads/:id",
	"/workloads/none",
	"/delegations/:id",
	"/delegations/1",
	"/approval-policies/:id",
	"/approval-policies/none",
	"/organizations/:id",
	"/organizations/none",
	"/reviews/:id",
	"/reviews/R-999",
	"/sources/:id",
	"/sources/upload",
	"/entities/:kind/:id",
	"/entities/application/none",
	"/fleet/:member",
	"/fleet/m1",
	"/classes/:name",
	"/classes/none",
	"/policies/:name",
	"/policies/by-hand",
	"/scim/v2/*path",
	"/scim/v2/Users/none",
	"/integrations/*path",
	"/integrations/slack/interactions",
}

// queries are the required query parameters of operations.
var queries = map[string]string{"getDevice": "?userCode=BCDF-BCDF", "search": "?q=app", "getAccessPath": "?from=app-888&to=bobs-cluster",
	"listPastAccess": "?at=2026-01-01T00%3A00%3A00Z", "listAccessPeriods": "?application=app-888"}

// refusedRoles are the roles of TestRoutePermissions that may not call a route of a row at all.
var refusedRoles = map[core.Callers]map[string]bool{
	core.Changer:       {"auditor": true},
	core.Governor:      {"requester": true, "resource owner": true, "leader": true},
	core.Administrator: {"requester": true, "resource owner": true, "leader": true, "auditor": true},
	core.CatalogEditor: {"requester": true, "resource owner": true, "leader": true, "auditor": true},
	core.Registrar:     {"resource owner": true, "leader": true, "auditor": true},
}

// TestRoutePermissions calls every route as every role, with a session and with tokens of each scope, and compares with the table.
func TestRoutePermissions(t *testing.T) {
	x := newSite(t)
	people := map[string]string{"nobody": "", "requester": "alice", "resource owner": "bob", "leader": "carol", "security": "dave", "auditor": "grace"}
	for role, who := range people {
		b, program := x.as(who), x.as("")
		tokens := map[credential.Scope]string{}
		if who != "" {
			for _, s := range credential.Scopes() {
				tokens[s] = x.token(who, s)
			}
		}
		for _, r := range routes {
			if r.Operation == "logout" {
				continue // it would end the walk; see TestSessionLifecycle
			}
			path := strings.NewReplacer(samples...).Replace(r.Path)
			path += queries[r.Operation]
			if strings.Contains(path, ":") {
				t.Fatalf("%s has a parameter without a sample", r.Path)
			}
			call := func(b *portaltest.Browser, h http.Header) (int, string) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel() // ends a stream
				return b.Begin(ctx, r.Method, path, h)
			}
			x.advance(time.Second) // the rate limit has a test of its own
			t.Run(role+" "+r.Operation, func(t *testing.T) {
				status, code := call(b, http.Header{"X-Acp-Request": {"1"}})
				if refused, want := status == http.StatusUnauthorized, r.Who != core.Anyone && who == ""; refused != want {
					t.Errorf("%d; unauthenticated is %v in the row", status, want)
				}
				if refused := status == http.StatusForbidden; who != "" && refusedRoles[r.Who][role] && !refused {
					t.Errorf("%d; the row does not permit the role", status)
				}
				if r.Method == http.MethodGet && role == "auditor" && status >= http.StatusBadRequest && status != http.StatusNotFound {
					t.Errorf("%d; an auditor may read everything", status)
				}
				if status >= http.StatusInternalServerError || code == "scope" {
					t.Errorf("%d %s", status, code)
				}
				if who != "" && r.Method != http.MethodGet && !r.Programs {
					if status, _ := call(b, nil); status != http.StatusForbidden {
						t.Errorf("%d without the header that forms of other sites cannot send", status)
					}
				}
				for scope, secret := range tokens {
					status, code := call(program, http.Header{"Authorization": {"Bearer " + secret}})
					good := r.Who == core.Anyone || r.Scope == scope
					if refused := status == http.StatusForbidden && code == "scope"; refused == good || status == http.StatusUnauthorized {
						t.Errorf("with a token for %s: %d %s; the scope permits it: %v", scope, status, code, good)
					}
					if good && refusedRoles[r.Who][role] && status != http.StatusForbidden {
						t.Errorf("with a token for %s: %d; the row does not permit the role", scope, status)
					}
				}
			})
		}
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
