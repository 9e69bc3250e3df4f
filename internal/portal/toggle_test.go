package portal

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

type resourceView struct {
	Protection struct {
		ResourceVersion string
		CanToggle       bool
		TemporaryAudit  *struct {
			Until  time.Time
			Reason string
			By     struct{ ID string }
			Active bool
			Guard  bool
		}
	}
}

func put(b *portaltest.Browser, path string, body any) portaltest.Answer {
	return b.Call(http.MethodPut, "/api/v1"+path, body, http.Header{"X-Acp-Request": {"1"}})
}

func remove(b *portaltest.Browser, path string, body any) portaltest.Answer {
	return b.Call(http.MethodDelete, "/api/v1"+path, body, http.Header{"X-Acp-Request": {"1"}})
}

// TestTemporaryAuditOfAResource checks who may start, extend and end the temporary audit of a resource.
func TestTemporaryAuditOfAResource(t *testing.T) {
	x := newSite(t)
	bob, alice, dave := x.as("bob"), x.as("alice"), x.as("dave")
	const path = "/resources/bobs-cluster/temporary-audit"
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	var seen resourceView
	bob.Get("/api/v1/resources/bobs-cluster").Into(t, &seen)
	if !seen.Protection.CanToggle || seen.Protection.ResourceVersion == "" || seen.Protection.TemporaryAudit != nil {
		t.Fatalf("%+v", seen)
	}
	if a := put(alice, path, map[string]any{"until": until, "reason": "my checkout fails"}); a.Status != http.StatusForbidden {
		t.Errorf("an owner of a client: %d %s", a.Status, a.Body)
	}
	if a := put(bob, path, map[string]any{"until": until, "reason": "an outage", "resourceVersion": "0"}); a.Status != http.StatusConflict {
		t.Errorf("an outdated version: %d %s", a.Status, a.Body)
	}
	if a := put(
		bob,
		path,
		map[string]any{"until": until, "reason": "an outage", "resourceVersion": string(make([]byte, 65))},
	); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("an invalid version: %d %s", a.Status, a.Body)
	}
	var got resourceView
	a := put(bob, path, map[string]any{"until": until, "reason": "an outage", "resourceVersion": seen.Protection.ResourceVersion})
	if a.Into(
		t, &got,
	); a.Status != http.StatusOK || got.Protection.TemporaryAudit == nil || !got.Protection.TemporaryAudit.Active ||
		!got.Protection.TemporaryAudit.Until.Equal(until) || got.Protection.TemporaryAudit.By.ID != "bob" || got.Protection.TemporaryAudit.Guard {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := put(dave, path, map[string]any{"until": until.Add(time.Hour), "reason": "it lasts"}); a.Status != http.StatusOK {
		t.Errorf("an extension: %d %s", a.Status, a.Body)
	}
	if a := remove(alice, path, map[string]any{"reason": "no"}); a.Status != http.StatusForbidden {
		t.Errorf("another person: %d %s", a.Status, a.Body)
	}
	var ended resourceView
	if a := remove(bob, path, map[string]any{"reason": "it is over"}); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	} else if a.Into(t, &ended); ended.Protection.TemporaryAudit != nil {
		t.Errorf("the temporary audit has not ended: %s", a.Body)
	}
	if a := remove(bob, path, map[string]any{"reason": "again"}); a.Status != http.StatusConflict {
		t.Errorf("without a temporary audit: %d %s", a.Status, a.Body)
	}
	var lines struct {
		Items []struct{ Action string }
	}
	dave.Get("/api/v1/ledger?object=bobs-cluster").Into(t, &lines)
	if len(lines.Items) != 3 {
		t.Errorf("the lines of the ledger: %+v", lines)
	}
	for _, tok := range []string{"read", "tickets:write", "tickets:decide"} {
		secret := x.token("bob", scope(tok))
		if a := x.as("").
			Call(http.MethodPut, "/api/v1"+path, map[string]any{"until": until, "reason": "r"},
				http.Header{"Authorization": {"Bearer " + secret}}); a.Status != http.StatusForbidden {
			t.Errorf("a token for %s: %d", tok, a.Status)
		}
	}
}

// audited puts the resource into Audit, with flows of a client that a statement allows and of one that no statement allows.
func (x *site) audited() {
	x.host.mu.Lock()
	defer x.host.mu.Unlock()
	r := x.host.input.Resources[0].DeepCopy()
	r.Spec.Mode = v1alpha1.ModeAudit
	r.Status.Clusters = []v1alpha1.ClusterState{
		{Name: "m1", Mode: v1alpha1.ModeAudit, State: v1alpha1.MemberRealized},
		{Name: "m2", Mode: v1alpha1.ModeAudit, State: v1alpha1.MemberRealized},
	}
	x.host.input.Resources = []*v1alpha1.ProtectedResource{r}
	p := x.host.input.Policies[0].DeepCopy()
	p.Spec.Statements = p.Spec.Statements[:1]
	x.host.input.Policies = []*v1alpha1.AccessControlPolicy{p}
	at := time.Now().Add(-2 * time.Hour)
	for subject, word := range map[string]policy.Verdict{portaltest.App888: policy.Allowed, portaltest.App889: policy.Audited} {
		e := refused("m1", subject)
		e.Decision, e.Verdict = word, "forwarded"
		x.flows.see(at, e, 10)
	}
}

// TestProposalAndAdoption checks who sees the proposed policy of a resource, and who may request access for its clients.
func TestProposalAndAdoption(t *testing.T) {
	x := newSite(t)
	x.audited()
	for who, want := range map[string]int{"bob": 200, "dave": 200, "grace": 200, "alice": 403, "erin": 403, "carol": 403} {
		for _, path := range []string{
			"/resources/bobs-cluster/proposal", "/resources/bobs-cluster/evidence",
			"/resources/bobs-cluster/unused", "/rollout/bobs-cluster",
		} {
			if a := x.as(who).Get("/api/v1" + path); a.Status != want {
				t.Errorf("%s %s: %d %s", who, path, a.Status, a.Body)
			}
		}
	}
	var p struct {
		Lines []struct {
			Subject   struct{ ID string }
			State     string
			Grantable bool
			Evidence  struct{ Count int }
		}
		Yaml     string
		CanAdopt bool
	}
	x.as("bob").Get("/api/v1/resources/bobs-cluster/proposal").Into(t, &p)
	states := map[string]string{}
	for _, l := range p.Lines {
		states[l.Subject.ID] = l.State
		if l.Grantable != (l.State == "audited") {
			t.Errorf("a grant is proposed for an allowed client: %+v", l)
		}
	}
	if states["app-888"] != "covered" || states["app-889"] != "audited" || p.Yaml == "" || !p.CanAdopt {
		t.Errorf("%+v", p)
	}
	adopt := newTicket("app-889", "bobs-cluster")
	adopt["adopt"] = true
	if a := x.as("alice").Post("/api/v1/tickets", adopt); a.Status != http.StatusForbidden {
		t.Errorf("adopting by the owner of the application: %d %s", a.Status, a.Body)
	}
	var made struct {
		ID    string
		Adopt bool
		Items []struct {
			Steps []struct{ Approvers []struct{ ID string } }
		}
	}
	a := x.as("bob").Post("/api/v1/tickets", adopt)
	if a.Into(t, &made); a.Status != http.StatusCreated || !made.Adopt {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for _, s := range made.Items[0].Steps {
		for _, p := range s.Approvers {
			if p.ID == "bob" {
				t.Errorf("the requester is an approver: %s", a.Body)
			}
		}
	}
	if a := x.as("bob").Post("/api/v1/tickets/"+made.ID+"/decision", map[string]any{"decision": "approve", "version": 1}); a.Status != http.StatusForbidden {
		t.Errorf("the requester approved the ticket: %d", a.Status)
	}
	if a := x.as("erin").Get("/api/v1/tickets/" + made.ID); a.Status != http.StatusOK {
		t.Errorf("the owner of the application does not see the ticket: %d", a.Status)
	}
	var card struct{ Ticket string }
	a = x.as("bob").Get("/api/v1/rollout/bobs-cluster")
	if a.Into(t, &card); a.Status != http.StatusOK || card.Ticket != made.ID {
		t.Errorf("the proposal lacks the pending ticket: %d %s", a.Status, a.Body)
	}
	unseen := newTicket("app-888", "ledger-db-cache")
	unseen["adopt"] = true
	if a := x.as("frank").Post("/api/v1/tickets", unseen); a.Status != http.StatusConflict {
		t.Errorf("adopting a client that was not seen: %d %s", a.Status, a.Body)
	}
}

// TestEnforceWithoutEvidence checks that only security administrators can request Enforce without evidence, and who sees the impact.
func TestEnforceWithoutEvidence(t *testing.T) {
	x := newSite(t)
	x.audited()
	enforce := func(override bool) map[string]any {
		b := map[string]any{"resources": []string{"bobs-cluster"}, "stage": "enforce", "reason": "it is time", "clusters": []string{"m1"}}
		if override {
			b["override"] = map[string]any{"reason": "an incident"}
		}
		return b
	}
	type results struct {
		Items []struct {
			OK      bool
			Ticket  string
			Problem *problemBody
		}
	}
	advance := func(who string, override bool) (r results) {
		t.Helper()
		a := x.as(who).Post("/api/v1/rollout/advance", enforce(override))
		if a.Into(t, &r); a.Status != http.StatusOK || len(r.Items) != 1 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		return r
	}
	if r := advance("bob", false); r.Items[0].OK || r.Items[0].Problem.Code != "evidence" || len(r.Items[0].Problem.Fields) == 0 {
		t.Errorf("the problem of an owner: %+v", r)
	}
	if r := advance("bob", true); r.Items[0].OK || r.Items[0].Problem.Code != "evidence" {
		t.Errorf("the override of an owner: %+v", r)
	}
	if r := advance("erin", false); r.Items[0].OK || r.Items[0].Problem.Code != "forbidden" {
		t.Errorf("another person: %+v", r)
	}
	r := advance("dave", true)
	if !r.Items[0].OK || r.Items[0].Ticket != "T-1" {
		t.Fatalf("a security administrator with a reason was refused: %+v", r.Items[0].Problem)
	}
	var ticket struct {
		Override struct{ Reason string }
		Items    []struct{ Steps []struct{ Name string } }
	}
	x.as("dave").Get("/api/v1/tickets/T-1").Into(t, &ticket)
	if ticket.Override.Reason != "an incident" || len(ticket.Items[0].Steps) == 0 {
		t.Errorf("the chain of the ticket: %+v", ticket)
	}
	// The approver sees the clients that would be refused, and the evidence.
	var impact struct {
		Available   bool
		NewlyDenied []struct {
			Subject       struct{ ID string }
			Before, After string
			Count         int
		}
		Denied   struct{ Connections, Clients int }
		Evidence []struct{ Score struct{ Enough bool } }
	}
	a := x.as("bob").Get("/api/v1/tickets/T-1/impact")
	if a.Into(t, &impact); a.Status != http.StatusOK || !impact.Available || impact.Denied.Clients != 1 || len(impact.NewlyDenied) != 1 ||
		impact.NewlyDenied[0].Subject.ID != "app-889" || impact.NewlyDenied[0].After != "default-denied" ||
		impact.Denied.Connections != 10 || len(impact.Evidence) != 1 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	// A delegate of the approver sees the same until the decision.
	if a := x.as("bob").
		Post("/api/v1/delegations", map[string]any{
			"to": "carol", "start": time.Now().UTC(), "end": time.Now().Add(time.Hour).UTC(), "reason": "away",
		}); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	a = x.as("carol").Get("/api/v1/tickets/T-1/impact")
	if a.Into(t, &impact); a.Status != http.StatusOK || len(impact.NewlyDenied) != 1 || len(impact.Evidence) != 1 {
		t.Errorf("a delegate: %d %s", a.Status, a.Body)
	}
	if a := x.as("bob").
		Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "reject", "comment": "not yet", "version": 1}); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	impact.Evidence = nil
	a = x.as("carol").Get("/api/v1/tickets/T-1/impact")
	if a.Into(t, &impact); a.Status == http.StatusOK && (len(impact.NewlyDenied) > 0 || impact.Denied.Clients > 0 || len(impact.Evidence) > 0) {
		t.Errorf("a former approver sees the clients: %s", a.Body)
	}
	mode := map[string]any{"kind": "mode", "reason": "r", "items": []map[string]any{{"resource": "bobs-cluster", "mode": "Enforce"}}}
	a = x.as("bob").Post("/api/v1/tickets/impact", mode)
	if a.Into(t, &impact); a.Status != http.StatusOK || impact.Denied.Clients != 1 {
		t.Errorf("the preview lacks the reason: %d %s", a.Status, a.Body)
	}
	a = x.as("erin").Post("/api/v1/tickets/impact", mode)
	if a.Into(t, &impact); a.Status != http.StatusOK || len(impact.NewlyDenied) > 0 || impact.Denied.Clients > 0 {
		t.Errorf("the preview of another person: %d %s", a.Status, a.Body)
	}
}

// TestImpactOfAGrant checks that the owner of a client sees the impact of a change on the client's own connections only.
// TestRolloutBoard checks the rollout page for each role, announcements, stages and the guard.
func TestRolloutBoard(t *testing.T) {
	x := newSite(t)
	x.audited()
	type board struct {
		Items []struct {
			Resource  struct{ ID string }
			Stage     string
			Newcomers int
			Hint      struct{ Code string }
			Can       struct{ Advance, Announce, Override, Toggle bool }
		}
		Stages         map[string]int
		FlowsAvailable bool
	}
	look := func(who, query string) (b board) {
		t.Helper()
		a := x.as(who).Get("/api/v1/rollout?" + query)
		if a.Into(t, &b); a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		return b
	}
	all := look("dave", "")
	if len(all.Items) != 2 || all.Stages["initial"] != 1 || all.Stages["observe"] != 1 || !all.FlowsAvailable {
		t.Errorf("resources with a class are missing: %+v", all)
	}
	if b := look("dave", "sort=-stage&limit=1"); len(b.Items) != 1 || b.Items[0].Stage != "initial" || b.Stages["observe"] != 1 {
		t.Errorf("the most advanced resource: %+v", b)
	}
	if stages := pages(t, x, "dave", "/rollout?sort=-stage", "stage"); !slices.Equal(stages, []string{"initial", "observe"}) {
		t.Errorf("in the order of the stages: %v", stages)
	}
	bobs := look("bob", "stage=initial")
	if len(bobs.Items) != 1 || bobs.Items[0].Resource.ID != "bobs-cluster" || bobs.Items[0].Newcomers != 1 || bobs.Items[0].Hint.Code != "review" ||
		!bobs.Items[0].Can.Advance ||
		bobs.Items[0].Can.Override {
		t.Errorf("%+v", bobs)
	}
	if b := look("erin", ""); len(b.Items) != 0 || b.Stages["initial"] != 0 {
		t.Errorf("the page of another person: %+v", b)
	}
	if b := look("grace", ""); len(b.Items) != 2 || b.Items[0].Can.Advance || b.Items[0].Can.Toggle {
		t.Errorf("the page of an auditor: %+v", b)
	}
	if a := x.as("dave").Get("/api/v1/rollout?stage=done"); a.Status != http.StatusBadRequest {
		t.Errorf("an unknown stage: %d", a.Status)
	}
	var announced struct {
		Items []struct {
			Resource   string
			OK         bool
			Recipients int
			Problem    *problemBody
		}
	}
	a := x.as("bob").Post("/api/v1/rollout/announce", map[string]any{"resources": []string{"bobs-cluster", "ledger-db-cache", "none"}, "message": "on Monday"})
	a.Into(t, &announced)
	if a.Status != http.StatusOK || len(announced.Items) != 3 || !announced.Items[0].OK || announced.Items[0].Recipients != 2 ||
		announced.Items[1].OK || announced.Items[2].Problem.Code != "not-found" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if b := look("bob", "stage=announced"); len(b.Items) != 1 {
		t.Errorf("%+v", b)
	}
	if a := x.as("erin").
		Post("/api/v1/rollout/announce", map[string]any{"resources": []string{"bobs-cluster"}, "message": "on Monday"}); a.Status != http.StatusOK {
		t.Errorf("%d", a.Status)
	} else if a.Into(t, &announced); announced.Items[0].OK || announced.Items[0].Problem.Code != "forbidden" {
		t.Errorf("another person announced: %s", a.Body)
	}
	for reason, b := range map[string]map[string]any{
		"none": {"resources": []string{}, "message": "m"}, "twice": {"resources": []string{"a", "a"}, "message": "m"},
	} {
		if a := x.as("bob").Post("/api/v1/rollout/announce", b); a.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", reason, a.Status, a.Body)
		}
	}
	for reason, b := range map[string]map[string]any{"no such stage": {"resources": []string{"bobs-cluster"}, "stage": "refine", "reason": "r"},
		"no member": {"resources": []string{"bobs-cluster"}, "stage": "observe", "reason": "r", "clusters": []string{}}} {
		if a := x.as("bob").Post("/api/v1/rollout/advance", b); a.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", reason, a.Status, a.Body)
		}
	}
	if a := put(x.as("erin"), "/rollout/bobs-cluster/guard", map[string]any{"limit": 3, "reason": "r"}); a.Status != http.StatusForbidden {
		t.Errorf("another person: %d", a.Status)
	}
	var guard struct {
		Limit   int
		Enabled bool
	}
	if put(x.as("bob"), "/rollout/bobs-cluster/guard", map[string]any{"limit": 3, "reason": "r"}).Into(t, &guard); guard.Limit != 3 || !guard.Enabled {
		t.Errorf("%+v", guard)
	}
	if a := put(
		x.as("bob"),
		"/rollout/bobs-cluster/guard",
		map[string]any{"windowSeconds": int64(1) << 60, "reason": "r"},
	); a.Status != http.StatusUnprocessableEntity {
		t.Errorf("a window that is too long: %d %s", a.Status, a.Body)
	}
	x.flows.err = errUnavailable
	x.advance(time.Minute)
	if b := look("bob", ""); b.FlowsAvailable || len(b.Items) == 0 {
		t.Errorf("the page without flows: %+v", b)
	}
}

// TestRolloutWaves checks who sees the waves of a resource, and who may do what with them.
// TestClassWaves checks who sees what they may do with the waves of a change of a class, and who may do it.
// TestImpactOfADraft checks what a drafted policy and the enforcement of a resource would do, who sees which part of it, and which drafts are
// refused.
