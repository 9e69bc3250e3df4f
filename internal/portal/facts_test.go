package portal

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// factsAnswer is the part of the facts of a ticket that the tests read.
type factsAnswer struct {
	FlowsAvailable bool
	NextCursor     string
	Message        *struct{ Code string }
	Items          []struct {
		Position    int
		Sensitivity string
		Mode        string
		Owners      []struct{ ID string }
		Clients     *struct {
			Total int
			Items []struct{ ID string }
		}
		Observed *struct {
			Total int
			Items []struct {
				Subject        struct{ ID string }
				Count, Refused int
			}
			Watched struct{ Enough bool }
		}
		Reached *struct {
			Total int
			Items []struct {
				Resource    struct{ ID string }
				Sensitivity string
			}
		}
		Earlier *struct {
			Total int
			Items []struct {
				Ticket, Kind, State string
				CreatedAt           time.Time
				Deciders            []struct{ ID string }
			}
		}
		Use *struct {
			State          string
			Count, Refused int
			LastUsed       *time.Time
			From           []struct {
				From, To string
				Count    int
			}
		}
		Affected *struct{ Resources, Clients int }
		Hidden   []string
	}
}

// facts reads the facts of a ticket as a person.
func (x *site) facts(t *testing.T, who, path string) factsAnswer {
	t.Helper()
	var out factsAnswer
	a := x.as(who).Get("/api/v1/tickets/" + path)
	if a.Into(t, &out); a.Status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", who, path, a.Status, a.Body)
	}
	return out
}

func twoItems() map[string]any {
	r := newTicket("app-888", "bobs-cluster")
	r["items"] = []map[string]any{
		{"application": "app-888", "resource": "bobs-cluster", "actions": []string{"redis:connect"}, "durationSeconds": 3600},
		{"application": "app-888", "resource": "ledger-db-cache", "actions": []string{"redis:connect"}, "durationSeconds": 3600},
	}
	return r
}

// TestTicketFacts checks what each person sees of the facts of a ticket with two items: who decides an item sees all of it, a leader who owns
// nothing included; others see what the pages of the resource and the application show them.
func TestTicketFacts(t *testing.T) {
	x := newSite(t)
	if a := x.as("alice").Post("/api/v1/tickets", twoItems()); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for name, tc := range map[string]struct {
		reason string
		who    string
		hidden [2][]string
	}{
		"leader":                  {"the leader decides both items", "carol", [2][]string{nil, nil}},
		"owner of both resources": {"bob decides both items", "bob", [2][]string{nil, nil}},
		"owner of the other":      {"frank decides only the second item", "frank", [2][]string{{"clients", "reached", "earlier"}, nil}},
		"requester, who owns app": {"clients of the resource are its owner's to see", "alice", [2][]string{{"clients"}, {"clients"}}},
		"security team":           {"they see everything", "dora", [2][]string{nil, nil}},
		"auditor":                 {"they see everything", "grace", [2][]string{nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			got := x.facts(t, tc.who, "T-1/facts")
			if len(got.Items) != 2 || !got.FlowsAvailable {
				t.Fatalf("%+v", got)
			}
			for i, it := range got.Items {
				if !slices.Equal(it.Hidden, tc.hidden[i]) {
					t.Errorf("%s: item %d hides %v, not %v", tc.reason, i, it.Hidden, tc.hidden[i])
				}
				hides := func(part string) bool { return slices.Contains(tc.hidden[i], part) }
				if (it.Clients == nil) != hides("clients") || (it.Observed == nil) != hides("clients") || (it.Reached == nil) != hides("reached") ||
					(it.Earlier == nil) != hides("earlier") {
					t.Errorf("item %d contains what it hides, or lacks a part: %+v", i, it)
				}
			}
			if got.Items[0].Sensitivity != "medium" || got.Items[1].Sensitivity != "high" || got.Items[0].Mode != "Enforce" || got.Items[1].Mode != "" {
				t.Errorf("the properties of the resources: %+v", got.Items)
			}
		})
	}
	carol := x.facts(t, "carol", "T-1/facts").Items[0]
	if c := carol.Clients; c.Total != 2 || len(c.Items) != 2 || c.Items[0].ID != "app-888" || c.Items[1].ID != "app-889" {
		t.Errorf("the clients: %+v", c)
	}
	if o := carol.Observed; o.Total != 2 || o.Items[0].Subject.ID != "app-889" || o.Items[0].Refused != 5 || o.Items[1].Refused != 3 || o.Watched.Enough {
		t.Errorf("the observed clients: %+v", o)
	}
	if r := carol.Reached; r.Total != 1 || r.Items[0].Resource.ID != "bobs-cluster" || r.Items[0].Sensitivity != "medium" {
		t.Errorf("what the application reaches: %+v", r)
	}
	if carol.Use != nil {
		t.Errorf("a first grant has a use: %+v", carol.Use)
	}

	first := x.facts(t, "carol", "T-1/facts?limit=1")
	if len(first.Items) != 1 || first.Items[0].Position != 0 || first.NextCursor == "" {
		t.Fatalf("the first page: %+v", first)
	}
	second := x.facts(t, "carol", "T-1/facts?limit=1&cursor="+first.NextCursor)
	if len(second.Items) != 1 || second.Items[0].Position != 1 || second.NextCursor != "" {
		t.Errorf("the second page: %+v", second)
	}
	for _, bad := range []string{"limit=0", "limit=21", "cursor=x"} {
		if a := x.as("carol").Get("/api/v1/tickets/T-1/facts?" + bad); a.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, a.Status, a.Body)
		}
	}
	if a := x.as("erin").Get("/api/v1/tickets/T-1/facts"); a.Status != http.StatusNotFound {
		t.Errorf("a person whom the ticket does not concern: %d %s", a.Status, a.Body)
	}
}

// TestTicketFactsEndWithTheDecision checks that an approver who owns nothing sees the facts of an item only until it is decided, and those of the
// items that are still undecided.
func TestTicketFactsEndWithTheDecision(t *testing.T) {
	x := newSite(t)
	if a := x.as("alice").Post("/api/v1/tickets", twoItems()); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	reject := func(item int, version int) {
		t.Helper()
		if a := x.as("carol").Post("/api/v1/tickets/T-1/decision",
			map[string]any{"decision": "reject", "comment": "not now", "version": version, "item": item}); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	reject(0, 1)
	got := x.facts(t, "carol", "T-1/facts")
	if got.Items[0].Clients != nil || got.Items[0].Reached != nil || got.Items[0].Earlier != nil || got.Items[1].Clients == nil {
		t.Errorf("after the decision about the first item: %+v", got.Items)
	}
	reject(1, 2)
	a := x.as("carol").Get("/api/v1/tickets/T-1/facts")
	if a.Status != http.StatusForbidden || strings.Contains(string(a.Body), "app-889") {
		t.Errorf("a former approver: %d %s", a.Status, a.Body)
	}
	if got := x.facts(t, "frank", "T-1/facts"); got.Items[0].Clients != nil || got.Items[1].Clients == nil || got.Items[1].Reached != nil {
		t.Errorf("the owner of the second resource: %+v", got.Items)
	}
}

// TestFactsOfEarlierTickets checks that an approver sees the states and dates of earlier tickets about the same application and resource, and
// of no others, and that a ticket is named only to those who may open it.
func TestFactsOfEarlierTickets(t *testing.T) {
	x := newSite(t)
	granted := x.grantAccess("alice", "app-888", portaltest.App888, "bobs-cluster", portaltest.BobsCluster, "the secret of the first")
	if _, err := x.Tickets.Apply(t.Context(), granted, func(t *approval.Ticket) error {
		t.Written(0, policy.PolicyNameFor(portaltest.BobsCluster), approval.Written{Generation: 1, UID: "u"}, x.now())
		it := &t.Items[0]
		it.State, it.Duration, it.ExpiresAt = approval.StateEffective, 24*time.Hour, x.now().Add(time.Hour)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	x.grantAccess("erin", "app-889", portaltest.App889, "bobs-cluster", portaltest.BobsCluster, "of another application")
	x.grantAccess("alice", "app-888", portaltest.App888, "ledger-db-cache", portaltest.LedgerCache, "of another resource")
	x.host.approvals = []*v1alpha1.ApprovalPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{{Name: "s", Approvers: []v1alpha1.Approver{"person:carol"}}}},
	}}
	extend := twoItems()
	extend["items"] = extend["items"].([]map[string]any)[:1] // the application has this access, so it becomes an extension
	a := x.as("alice").Post("/api/v1/tickets", extend)
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	var created struct{ ID string }
	a.Into(t, &created)
	if u := x.facts(t, "carol", created.ID+"/facts").Items[0].Use; u == nil || u.State != "unknown" || u.LastUsed != nil {
		t.Errorf("no connection was seen, and nobody watched: %+v", u)
	}
	now := time.Now().UTC()
	e := refused("m2", portaltest.App888)
	e.SourceCluster, e.Decision, e.Verdict = "m1", policy.Allowed, audit.VerdictForwarded
	e.Statement = policy.Ref{Policy: policy.PolicyNameFor(portaltest.BobsCluster), SID: approval.SID(1, 0)}
	x.flows.see(now, e, 7)
	before := e
	before.SourceCluster = "m9"
	x.flows.see(now.Add(-30*time.Minute), before, 100)

	carol := x.facts(t, "carol", created.ID+"/facts")
	if len(carol.Items) != 1 || carol.Items[0].Earlier == nil {
		t.Fatalf("%+v", carol)
	}
	if p := carol.Items[0].Earlier; p.Total != 1 || len(p.Items) != 1 || p.Items[0].Ticket != "" || p.Items[0].Deciders != nil ||
		p.Items[0].Kind != "grant" || p.Items[0].CreatedAt.IsZero() {
		t.Errorf("a leader who may not open the earlier ticket: %+v", p)
	}
	if u := carol.Items[0].Use; u == nil || u.State != "used" || u.Count != 7 || u.LastUsed == nil || len(u.From) != 1 || u.From[0].From != "m1" ||
		u.From[0].To != "m2" || u.From[0].Count != 7 {
		t.Errorf("the use since the grant: %+v", u)
	}
	if a := x.as("carol").Get("/api/v1/tickets/" + created.ID + "/facts"); strings.Contains(string(a.Body), "secret") {
		t.Errorf("the reason of an earlier ticket: %s", a.Body)
	}
	if p := x.facts(t, "bob", created.ID+"/facts").Items[0].Earlier; p.Items[0].Ticket != "T-1" || len(p.Items[0].Deciders) != 1 {
		t.Errorf("an owner, who may open the earlier ticket: %+v", p)
	}
	x.flows.err = errUnavailable
	if got := x.facts(t, "carol", created.ID+"/facts"); got.FlowsAvailable || got.Message == nil || got.Items[0].Observed != nil || got.Items[0].Use != nil ||
		got.Items[0].Clients == nil || got.Items[0].Earlier == nil {
		t.Errorf("without the flow store: %+v", got)
	}
}

// TestFactsOfAClass checks that an approver of a change of a class sees how many resources and clients it concerns, until the decision.
func TestFactsOfAClass(t *testing.T) {
	x := newSite(t)
	x.host.approvals = []*v1alpha1.ApprovalPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{{Name: "s", Approvers: []v1alpha1.Approver{"person:carol"}}}},
	}}
	object := map[string]any{
		"kind": "ResourceClass", "name": "redis", "verb": "create", "spec": "pattern: 'trnv1:rsc:trip-com:redis:clusters:*'\n" +
			"labelKey: com.trip/redis-cluster\nactions: [{name: 'redis:connect', ports: [{port: 6380, protocol: TCP}]}]\nplacement: {clusterSelector: {}}",
	}
	a := x.as("dave").Post("/api/v1/tickets", map[string]any{"kind": "class", "reason": "another port", "override": map[string]any{"reason": "a test"},
		"items": []map[string]any{{"object": object}}})
	if a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for _, who := range []string{"carol", "dave", "grace"} {
		if f := x.facts(t, who, "T-1/facts").Items[0]; f.Affected == nil || f.Affected.Resources != 1 || f.Affected.Clients != 2 || f.Hidden != nil {
			t.Errorf("%s: %+v", who, f)
		}
	}
	if a := x.as("bob").Get("/api/v1/tickets/T-1/facts"); a.Status != http.StatusNotFound {
		t.Errorf("an owner of a resource of the class, who may not see the ticket: %d %s", a.Status, a.Body)
	}
	if a := x.as("carol").Post("/api/v1/tickets/T-1/decision",
		map[string]any{"decision": "reject", "comment": "not now", "version": 1}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := x.as("carol").Get("/api/v1/tickets/T-1/facts"); a.Status != http.StatusForbidden {
		t.Errorf("a former approver: %d %s", a.Status, a.Body)
	}
}
