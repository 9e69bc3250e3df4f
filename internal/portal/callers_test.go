package portal

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// functions are people who have exactly one function each, and stan, who has none. Stan is what the others are compared with.
const functions = `
---
{kind: Group, metadata: {name: reviewers}, spec: {members: [rita]}}
---
{kind: Group, metadata: {name: packagers, annotations: {acp.io/lead: zoe}}, spec: {members: [pat]}}
---
{kind: Group, metadata: {name: rota}, spec: {members: [omar, otto]}}
---
{kind: User, metadata: {name: rita}}
---
{kind: User, metadata: {name: pat}}
---
{kind: User, metadata: {name: olga}}
---
{kind: User, metadata: {name: omar}}
---
{kind: User, metadata: {name: otto}}
---
{kind: User, metadata: {name: oona}}
---
{kind: User, metadata: {name: dean}}
---
{kind: User, metadata: {name: arne}}
---
{kind: User, metadata: {name: stan}}
`

// payPattern is the part of the names that the organization payments may have in its catalog.
const payPattern = "trnv1:rsc:trip-com:pay:stores:*"

// newSiteOfFunctions returns a site with a waiting ticket whose step is limited to who is on call, the waiting ticket of an AccessRequest that
// arne wrote, an open access review, an access package, an organization with a class, an approval policy and a part of the catalog, a machine,
// a saved view, delegations to dean, a member cluster, and the people of functions.
func newSiteOfFunctions(t *testing.T) *site {
	t.Helper()
	x := newSite(t)
	file := filepath.Join(x.files, "demo.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(data, functions...), 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := x.Directory.Sync(t.Context(), "files"); err != nil || st.Error != "" {
		t.Fatalf("%+v %v", st, err)
	}
	o := paymentsOrganization()
	o.Spec.Teams = []v1alpha1.TeamName{"search"}
	o.Spec.Administrators = []v1alpha1.OrganizationAdministrator{"person:olga"}
	o.Spec.Bounds.Catalog = &v1alpha1.CatalogBounds{
		Patterns: []v1alpha1.NamePattern{payPattern}, Kinds: []v1alpha1.EntityKind{"resource"}, Sensitivities: []v1alpha1.Sensitivity{"medium"},
	}
	x.host.organizations = []*v1alpha1.Organization{o}
	x.host.approvals = []*v1alpha1.ApprovalPolicy{
		policyOfPayments(v1alpha1.ApprovalStep{Name: "more", Approvers: []v1alpha1.Approver{"person:olga"}}),
		{ObjectMeta: metav1.ObjectMeta{Name: "rota"}, Spec: v1alpha1.ApprovalPolicySpec{
			Match: `request.kind == "grant"`,
			Steps: []v1alpha1.ApprovalStep{{Name: "duty", Approvers: []v1alpha1.Approver{"group:rota"}, LimitTo: `onCall("shop", 1)`}},
		}},
	}
	x.host.input.ResourceClasses = append(x.host.input.ResourceClasses, &v1alpha1.ResourceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "pay"},
		Spec:       v1alpha1.ResourceClassSpec{Organization: "payments", Pattern: payPattern, LabelKey: "com.trip/pay"},
		Status: v1alpha1.ResourceClassStatus{Rollout: &v1alpha1.ClassRolloutStatus{Settled: v1alpha1.ClassRules{OtherPorts: v1alpha1.OtherPortsAllow},
			Progress: &v1alpha1.RolloutProgress{StartedAt: metav1.Now(), Wave: 1, Waves: 2, Name: "canary",
				Begun: v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{"m1"}}, Waiting: 1}}},
	})
	x.Tickets.OnCall = func(schedule string, tier int) approval.Duty {
		return approval.Duty{Known: schedule == "shop" && tier == 1, People: []string{"omar", "oona"}, At: x.now()}
	}
	must := func(a portaltest.Answer) {
		t.Helper()
		if a.Status >= http.StatusMultipleChoices {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	must(x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster")))
	x.grantAccess("erin", "app-889", portaltest.App889, "ledger-db-cache", portaltest.LedgerCache, "search")
	x.publishFor("packagers", "stores", "Payment stores")
	review := newReview(x)
	review["reviewers"] = []string{"group:reviewers"}
	dave := x.as("dave")
	must(dave.Post("/api/v1/reviews", review))
	x.review()
	must(dave.Post("/api/v1/catalog/entities", payResource("one")))
	must(putView(x.as("alice"), "flows", "denied", "decision=denied"))
	must(x.as("alice").Post("/api/v1/workloads", map[string]any{"items": []map[string]any{
		{"id": "vm-1", "subject": portaltest.App888, "addresses": []string{"192.0.2.7"}}}}))
	for _, from := range []string{"dave", "omar", "rita", "pat", "olga"} {
		must(x.as(from).Post("/api/v1/delegations",
			map[string]any{"to": "dean", "start": x.now().UTC(), "end": x.now().Add(time.Hour).UTC(), "reason": "away"}))
	}
	x.host.members = []*v1alpha1.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}}
	tk, err := x.Tickets.Submit(t.Context(), approval.Program(accessRequest, "app-888", "arne"), approval.Request{Kind: approval.KindGrant, Reason: "carts",
		Items: []approval.RequestItem{{Application: "app-888", Resource: "ledger-db-cache", Actions: []string{"redis:connect"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if tk.ID() != programTicket {
		t.Fatalf("the ticket of the AccessRequest is %s", tk.ID())
	}
	return x
}

// programTicket is the ticket of the AccessRequest of newSiteOfFunctions.
const programTicket = "T-3"

func payResource(id string) map[string]any {
	return map[string]any{
		"kind": "resource", "id": "pay-" + id, "title": id, "name": strings.TrimSuffix(payPattern, "*") + id, "owners": []string{"group:search"},
		"sensitivity": "medium",
	}
}

// attempt is a request of the walk.
type attempt struct {
	name   string // the operation, and what distinguishes several attempts of it
	method string
	path   string
	body   any
}

// attempts returns at least one request for each route, about objects that exist.
func (x *site) attempts(t *testing.T) []attempt {
	t.Helper()
	var ticket struct{ Version int64 }
	x.as("dave").Get("/api/v1/tickets/T-1").Into(t, &ticket)
	decision := map[string]any{"decision": "approve", "version": ticket.Version}
	bodies := map[string]any{
		"createTicket": newTicket("app-888", "bobs-cluster"), "previewTicket": newTicket("app-888", "bobs-cluster"),
		"previewImpact":  newTicket("app-888", "bobs-cluster"),
		"whatIf":         map[string]any{"as": "alice", "request": newTicket("app-888", "bobs-cluster")},
		"withdrawTicket": map[string]any{"reason": "r"}, "revokeTicket": map[string]any{"reason": "r"}, "commentTicket": map[string]any{"comment": "c"},
		"reviewTicket": map[string]any{"confirm": true}, "decideTicket": decision,
		"decideMany":        map[string]any{"decision": "approve", "items": []any{map[string]any{"ticket": "T-1", "version": ticket.Version}}},
		"decideReviewLines": choice(1, 1, "keep"), "endReview": map[string]any{"reason": "r"}, "createReview": newReview(x), "previewReview": newReview(x),
		"putEntity": payResource("two"), "deleteEntity": map[string]any{"reason": "r"},
		"putWorkloads": map[string]any{"items": []any{map[string]any{
			"id": "vm-1", "subject": portaltest.App888, "addresses": []string{"192.0.2.7"}}}},
		"putRolloutWaves": map[string]any{"action": "pause", "reason": "r"}, "putClassWaves": map[string]any{"action": "pause", "reason": "r"},
		"putTemporaryAudit": map[string]any{"reason": "r", "until": x.now().Add(time.Hour)}, "putRolloutGuard": map[string]any{"reason": "r", "enabled": false},
		"endTemporaryAudit": map[string]any{"reason": "r"}, "putProposalReview": map[string]any{"reviewed": true},
		"announceRollout":  map[string]any{"resources": []string{"bobs-cluster"}, "message": "m"},
		"advanceRollout":   map[string]any{"resources": []string{"bobs-cluster"}, "stage": "observe", "reason": "r"},
		"createDelegation": map[string]any{"to": "bob", "start": x.now(), "end": x.now().Add(time.Hour), "reason": "r"},
		"saveView":         map[string]any{"page": "flows", "name": "n", "query": "q=r"},
	}
	policyTicket := map[string]any{"kind": "approval-policy", "reason": "work", "items": []any{map[string]any{"object": map[string]any{
		"kind": "ApprovalPolicy", "name": "more", "verb": "create",
		"spec": "organization: payments\npriority: 1\nsteps: [{name: more, approvers: ['person:olga']}]"}}}}
	var out, last []attempt
	for _, r := range routes {
		a := attempt{
			name:   r.Operation,
			method: r.Method,
			path:   strings.NewReplacer(samples...).Replace(r.Path) + queries[r.Operation],
			body:   bodies[r.Operation],
		}
		if strings.Contains(a.path, ":") {
			t.Fatalf("%s has a parameter without a sample", r.Path)
		}
		if a.body == nil && r.Method != http.MethodGet && r.Method != http.MethodDelete {
			a.body = map[string]any{}
		}
		switch r.Operation {
		case "logout", "streamEvents": // ends the session; does not end
		case "decideTicket": // changes what the others are about
			last = append(last, a,
				attempt{name: a.name + " of a program", method: a.method, path: strings.Replace(a.path, "T-1", programTicket, 1), body: a.body})
		case "withdrawTicket", "decideMany", "decideReviewLines", "archivePackage", "deleteEntity", "commentTicket", "endDelegation", "deleteWorkload",
			"deleteSavedView": // as well
			last = append(last, a)
		case "createTicket", "previewTicket":
			out = append(out, a,
				attempt{name: a.name + " of a package", method: a.method, path: a.path, body: newPackage("packagers")},
				attempt{name: a.name + " of an approval policy", method: a.method, path: a.path, body: policyTicket})
		case "getTicket":
			out = append(out, a, attempt{name: a.name + " of a program", method: a.method, path: strings.Replace(a.path, "T-1", programTicket, 1)})
		case "listTickets":
			out = append(out, a, attempt{name: a.name + " of all", method: a.method, path: a.path + "?view=all"})
		case "listEntities":
			out = append(out, a, attempt{name: a.name + " of an organization", method: a.method, path: a.path + "?organization=payments"})
		default:
			out = append(out, a)
		}
	}
	return append(out, last...)
}

// unequal are operations whose bodies differ for each caller although the callers have the same rights: they contain random values, or
// everybody.
var unequal = map[string]bool{
	"saveView": true, "createDelegation": true, "listSessions": true, "startDevice": true, "login": true, "callback": true, "listPeople": true,
}

// requestID is the id of a request in a problem.
var requestID = regexp.MustCompile(`"requestId":"[A-Z0-9]+",?`)

// said returns the status and the body of an answer, without what differs for all callers.
func said(a portaltest.Answer, name, who string) (int, string) {
	if unequal[name] {
		return a.Status, ""
	}
	return a.Status, strings.ReplaceAll(requestID.ReplaceAllString(string(a.Body), ""), `"`+who+`"`, `"CALLER"`)
}

// TestCallersWithOneFunction walks all routes as each person who has exactly one function, and as somebody without any. What the function
// opens has a row with the status; everything else must be answered exactly as for the other person.
func TestCallersWithOneFunction(t *testing.T) {
	for who, more := range map[string]map[string]int{
		"rita": { // reviews accesses
			"getMe": 200, "listDelegations": 200, "listReviews": 200, "getReview": 200, "listReviewLines": 200, "listMyReviewLines": 200,
			"decideReviewLines": 200,
		},
		"pat": { // is in the team of a package
			"getMe": 200, "getHome": 200, "listDelegations": 200, "getPackage": 200, "archivePackage": 204, "createTicket of a package": 201,
			"previewTicket of a package": 200,
		},
		"olga": { // administers an organization
			"getMe": 200, "getHome": 200, "listDelegations": 200, "listOrganizations": 200, "getOrganization": 200, "getApprovalPolicy": 200,
			"listClasses":                     200,
			"listEntities of an organization": 200, "putEntity": 200, "deleteEntity": 204, "putClassWaves": 200,
			"createTicket of an approval policy": 201, "previewTicket of an approval policy": 200,
		},
		"omar": { // approves while on call
			"getMe": 200, "getHome": 200, "listDelegations": 200, "listTickets of all": 200, "getTicket": 200, "getTicket of a program": 200,
			"getTicketChange": 200, "listTicketLedger": 200, "getTicketImpact": 200, "listTicketFacts": 200, "commentTicket": 200,
			"withdrawTicket": 403, "revokeTicket": 409, "reviewTicket": 409, "decideTicket of a program": 403,
			"decideTicket": 200, "decideMany": 200,
		},
		"otto": { // approves, but is not on call
			"getMe": 200, "getHome": 200, "listTickets of all": 200, "getTicket": 200, "getTicket of a program": 200,
			"getTicketChange": 200, "listTicketLedger": 200, "getTicketImpact": 200, "listTicketFacts": 200, "commentTicket": 200,
			"withdrawTicket": 403, "revokeTicket": 409, "reviewTicket": 409, "decideTicket of a program": 403,
			"decideTicket": 403, "decideMany": 200,
		},
		"oona": {}, // is on call, but approves nothing
		"arne": {}, // wrote an AccessRequest, which is no right
		"dean": { // decides for others, and has none of their other functions
			"getMe": 200, "getHome": 200, "listDelegations": 200, "endDelegation": 204, "listTickets of all": 200, "getTicket": 200,
			"getTicket of a program": 200, "getTicketChange": 200, "listTicketLedger": 200, "getTicketImpact": 200, "listTicketFacts": 200,
			"commentTicket": 200, "withdrawTicket": 403, "revokeTicket": 409, "reviewTicket": 409, "decideTicket": 200, "decideTicket of a program": 403,
			"decideMany": 200, "listReviews": 200, "getReview": 200, "listReviewLines": 200, "listMyReviewLines": 200, "decideReviewLines": 200,
		},
	} {
		t.Run(who, func(t *testing.T) {
			x := newSiteOfFunctions(t)
			caller, stranger := x.as(who), x.as("stan")
			rows := x.attempts(t)
			for name := range more {
				if !slices.ContainsFunc(rows, func(a attempt) bool { return a.name == name }) {
					t.Errorf("no request is %s", name)
				}
			}
			at := x.now()
			for _, a := range rows {
				at = at.Add(time.Second) // fills the budgets; both are asked at the same time
				x.stopped.Store(new(at))
				h := http.Header{"X-Acp-Request": {"1"}}
				lessStatus, less := said(stranger.Call(a.method, a.path, a.body, h), a.name, "stan")
				status, got := said(caller.Call(a.method, a.path, a.body, h), a.name, who)
				want, differs := more[a.name]
				switch same := status == lessStatus && got == less; {
				case status >= http.StatusInternalServerError:
					t.Errorf("%s: %d %s", a.name, status, got)
				case same && differs:
					t.Errorf("%s: the function makes no difference: %d %s", a.name, status, got)
				case !same && !differs:
					t.Errorf("%s: the function makes a difference:\n%d %s\nof somebody without it:\n%d %s", a.name, status, got, lessStatus, less)
				case differs && status != want:
					t.Errorf("%s: %d, want %d: %s", a.name, status, want, got)
				}
			}
		})
	}
}

// TestProvisioningClientsReachNothingElse walks all routes with the token of a SCIM client, and without the rights of its owner.
func TestProvisioningClientsReachNothingElse(t *testing.T) {
	x := newSiteOfFunctions(t)
	reached := map[string]bool{
		"readSCIM": true, "createSCIM": true, "replaceSCIM": true, "patchSCIM": true, "deleteSCIM": true,
		"previewSync": true, "applySync": true, "putEntity": true, "deleteEntity": true, // the other ways to write the catalog
	}
	rows := x.attempts(t)
	walk := func(reason, secret string, check func(a attempt, r core.Route, status int, code string)) {
		t.Helper()
		program := x.as("")
		for _, a := range rows {
			i := slices.IndexFunc(routes, func(r core.Route) bool { return r.Operation == strings.Fields(a.name)[0] })
			x.advance(6 * time.Second) // wrong tokens have a small budget
			status, code := program.Begin(t.Context(), a.method, a.path, http.Header{"Authorization": {"Bearer " + secret}})
			if status >= http.StatusInternalServerError && status != http.StatusNotImplemented {
				t.Errorf("%s: %s: %d %s", reason, a.name, status, code)
			}
			check(a, routes[i], status, code)
		}
	}
	secret := x.token("dora", credential.ScopeCatalogWrite)
	walk("a client", secret, func(a attempt, r core.Route, status int, code string) {
		refused := status == http.StatusForbidden && code == "scope"
		if r.Who != core.Anyone && refused == reached[r.Operation] {
			t.Errorf("%s: %d %s", a.name, status, code)
		}
	})
	for op := range reached {
		if !slices.ContainsFunc(routes, func(r core.Route) bool { return r.Operation == op }) {
			t.Errorf("%s is no operation", op)
		}
	}
	closed := func(want int) func(attempt, core.Route, int, string) {
		return func(a attempt, r core.Route, status int, code string) {
			if r.Who != core.Anyone && status != want {
				t.Errorf("%s: %d %s, want %d", a.name, status, code, want)
			}
		}
	}
	walk("a token of somebody else", x.token("stan", credential.ScopeCatalogWrite), closed(http.StatusForbidden))
	walk(
		"a token of an administrator of an organization",
		x.token("olga", credential.ScopeCatalogWrite),
		func(a attempt, r core.Route, status int, code string) {
			if strings.HasSuffix(r.Operation, "SCIM") && status != http.StatusForbidden {
				t.Errorf("%s: %d %s", a.name, status, code)
			}
		},
	)
	x.leave(t, "dora")
	walk("a token of an administrator who has left", secret, closed(http.StatusUnauthorized))
}
