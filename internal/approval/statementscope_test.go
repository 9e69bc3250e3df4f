package approval_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
)

// statementOn requests a statement about the highly sensitive resource of the model.
func statementOn(effect v1alpha1.Effect, d time.Duration, subjects ...string) approval.Request {
	return approval.Request{Kind: approval.KindStatement, Items: []approval.RequestItem{{Actions: []string{"x:read"}, Duration: d,
		Scope: &approval.StatementScope{Effect: effect, Subjects: subjects, Resources: []string{"high"}}}}}
}

// approveAll lets the approvers of each step approve, whoever comes first.
func (m *model) approveAll(n int64) {
	m.t.Helper()
	for range 10 {
		x := m.get(n)
		at := x.Items[0].Current()
		if at < 0 {
			return
		}
		who := x.Items[0].RemainingApprovers(&x.Items[0].Steps[at])
		if len(who) == 0 {
			m.t.Fatalf("nobody can decide %+v", x.Items[0].Steps[at])
		}
		m.approve(n, who[0])
	}
}

func (m *model) statements() int {
	m.t.Helper()
	p, ok := m.host.Cached(policy.StatementsPolicy)
	if !ok {
		return 0
	}
	return len(p.Spec.Statements)
}

func TestStatementIsRequestedAndRevoked(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", statementOn(v1alpha1.EffectAllow, 100*time.Hour, "trnv1:rsc:org:net:cidr:10.0.0.0/8", "a"))
	var names []string
	for _, s := range x.Items[0].Steps {
		names = append(names, s.Name)
	}
	if len(names) != 3 || names[0] != approval.StepLeader || names[1] != approval.StepOwner || names[2] != approval.StepSecurity {
		t.Fatalf("the chain is %v", names)
	}
	m.settle()
	if n := m.statements(); n != 0 {
		t.Fatalf("%d statements are written before the approval", n)
	}
	m.approveAll(x.Number)
	m.settle()
	if n := m.statements(); n != 1 {
		t.Fatalf("%d statements are written: %s", n, m.get(x.Number).Items[0].Message)
	}
	if _, err := m.svc.Revoke(t.Context(), m.actorOf("bob"), x.Number, approval.EveryItem, "enough"); err != nil {
		t.Fatal(err)
	}
	m.settle()
	if n := m.statements(); n != 0 {
		t.Fatalf("%d statements are left", n)
	}
}

func TestStatementExpires(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", statementOn(v1alpha1.EffectAllow, 10*time.Hour, "*", "a"))
	m.approveAll(x.Number)
	m.settle()
	p, _ := m.host.Cached(policy.StatementsPolicy)
	if len(p.Spec.Statements) != 1 || p.Spec.Statements[0].NotAfter == nil {
		t.Fatalf("the statement has no end: %+v", p.Spec.Statements)
	}
	m.now = m.now.Add(11 * time.Hour)
	m.settle()
	if n := m.statements(); n != 0 {
		t.Fatalf("%d statements are left after the end", n)
	}
}

func TestEndOfADenyIsRequested(t *testing.T) {
	m := quiet(t)
	x := m.submit("bob", statementOn(v1alpha1.EffectDeny, 0, "a"))
	m.approveAll(x.Number)
	m.settle()
	if n := m.statements(); n != 1 {
		t.Fatalf("%d statements are written: %s", n, m.get(x.Number).Items[0].Message)
	}
	for _, who := range []string{"bob", "erin"} {
		if _, err := m.svc.Revoke(t.Context(), m.actorOf(who), x.Number, approval.EveryItem, "enough"); approval.CodeOf(err) != approval.CodeForbidden {
			t.Errorf("%s ends the deny alone: %v", who, err)
		}
	}
	end := m.submit("bob", approval.Request{Kind: approval.KindRevoke, Items: []approval.RequestItem{{Target: &approval.Target{Ticket: x.Number}}}})
	m.settle()
	if n := m.statements(); n != 1 {
		t.Fatal("the deny ended before the approval")
	}
	m.approveAll(end.Number)
	m.settle()
	if n := m.statements(); n != 0 {
		t.Fatalf("%d statements are left", n)
	}
}

func TestStatementsThatAreRefused(t *testing.T) {
	m := quiet(t)
	for reason, c := range map[string]struct {
		who  string
		r    approval.Request
		code approval.Code
	}{
		"a pair of entities":      {"alice", statementOn(v1alpha1.EffectAllow, 0, "a"), approval.CodeInvalid},
		"an unknown effect":       {"alice", statementOn("Maybe", 0, "a"), approval.CodeInvalid},
		"no subject":              {"alice", statementOn(v1alpha1.EffectDeny, 0), approval.CodeInvalid},
		"host bits":               {"alice", statementOn(v1alpha1.EffectAllow, 0, "trnv1:rsc:org:net:cidr:10.0.0.1/8", "a"), approval.CodeInvalid},
		"an owner of neither":     {"zoe", statementOn(v1alpha1.EffectDeny, 0, "a"), approval.CodeForbidden},
		"an unknown application":  {"alice", statementOn(v1alpha1.EffectDeny, 0, "nobody"), approval.CodeInvalid},
		"too short":               {"alice", statementOn(v1alpha1.EffectDeny, time.Second, "a"), approval.CodeInvalid},
		"nothing in the contents": {"alice", approval.Request{Kind: approval.KindStatement, Items: []approval.RequestItem{{}}}, approval.CodeInvalid},
	} {
		c.r.Reason = "work"
		if _, err := m.svc.Submit(t.Context(), m.actorOf(c.who), c.r); approval.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", reason, err, c.code)
		}
	}
}

// TestRequestsForRevocationAreNotRevoked checks that a request to end a statement cannot be revoked itself, although it names the statement.
func TestRequestsForRevocationAreNotRevoked(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", statementOn(v1alpha1.EffectAllow, 100*time.Hour, "trnv1:rsc:org:net:cidr:10.0.0.0/8", "a"))
	m.approveAll(x.Number)
	m.settle()
	of := m.get(x.Number)
	end := &approval.Ticket{Number: x.Number + 1, Kind: approval.KindRevoke, Requester: "alice",
		Items: []approval.Item{{State: approval.StateEffective, Scope: of.Items[0].Scope, Target: &approval.Target{Ticket: x.Number}}}}
	for _, who := range []string{"bob", "erin"} { // the owner of the resource, and the security team
		if !approval.MayDoItem(m.catalog, m.actorOf(who), of, 0).Revoke {
			t.Errorf("%s may not revoke the statement", who)
		}
		if approval.MayDoItem(m.catalog, m.actorOf(who), end, 0).Revoke {
			t.Errorf("%s is offered to revoke the request for its end", who)
		}
	}
}

// TestUnknownIDsOfStatements checks that an id which the catalog does not have is reported as such, and not as a malformed name.
func TestUnknownIDsOfStatements(t *testing.T) {
	m := quiet(t)
	for what, r := range map[string]*approval.StatementScope{
		"a subject":  {Effect: v1alpha1.EffectDeny, Subjects: []string{"nobody"}, Resources: []string{"high"}},
		"a resource": {Effect: v1alpha1.EffectDeny, Subjects: []string{"a"}, Resources: []string{"nothing"}},
	} {
		p, err := m.svc.Plan(t.Context(), m.actorOf("erin"), approval.Request{Kind: approval.KindStatement, Reason: "r",
			Items: []approval.RequestItem{{Actions: []string{"x:read"}, Duration: time.Hour, Scope: r}}})
		if err != nil {
			t.Fatal(err)
		}
		var ours *approval.Error
		if !errors.As(p.Items[0].Err, &ours) || len(ours.Fields) != 1 || ours.Fields[0].Message.Code != "request.statement-unknown" {
			t.Errorf("%s: %v", what, p.Items[0].Err)
		}
	}
}

// TestStatementIsExtended checks that a later end is requested like the statement, and that the earlier one keeps its own end.
func TestStatementIsExtended(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", statementOn(v1alpha1.EffectAllow, 10*time.Hour, "trnv1:rsc:org:net:cidr:10.0.0.0/8", "a"))
	m.approveAll(x.Number)
	m.settle()
	m.now = m.now.Add(5 * time.Hour)
	extend := approval.Request{Kind: approval.KindExtend, Reason: "r", Items: []approval.RequestItem{
		{Target: &approval.Target{Ticket: x.Number}, Duration: 100 * time.Hour}}}
	if _, err := m.svc.Submit(t.Context(), m.actorOf("alice"), extend); approval.CodeOf(err) != approval.CodeInvalid {
		t.Errorf("an extension that lasts longer than the statement: %v", err)
	}
	extend.Items[0].Duration = 10 * time.Hour
	later := m.submit("alice", extend)
	if later.Kind != approval.KindStatement || chainOf(later.Items[0]) != chainOf(x.Items[0]) {
		t.Errorf("the extension is a %s with the chain %s, that of the statement is %s", later.Kind, chainOf(later.Items[0]), chainOf(x.Items[0]))
	}
	m.settle()
	if n := m.statements(); n != 1 {
		t.Fatalf("%d statements are written before the approval", n)
	}
	m.approveAll(later.Number)
	m.settle()
	m.is(later.Number, approval.StateEffective)
	m.now = m.now.Add(6 * time.Hour)
	m.settle()
	m.is(x.Number, approval.StateExpired)
	if n := m.statements(); n != 1 {
		t.Fatalf("%d statements are left after the first end", n)
	}
	m.now = m.now.Add(10 * time.Hour)
	m.settle()
	m.is(later.Number, approval.StateExpired)
	if n := m.statements(); n != 0 {
		t.Fatalf("%d statements are left after the second end", n)
	}
	for reason, r := range map[string]approval.RequestItem{
		"a statement that has ended": {Target: &approval.Target{Ticket: x.Number}, Duration: time.Hour},
		"no such statement":          {Target: &approval.Target{Ticket: 99}, Duration: time.Hour},
	} {
		if _, err := m.svc.Submit(t.Context(), m.actorOf("alice"), approval.Request{Kind: approval.KindStatement, Reason: "r",
			Items: []approval.RequestItem{r}}); err == nil {
			t.Errorf("%s is extended", reason)
		}
	}
}

// redisPrefix covers both resources of the model, and those that are added.
const redisPrefix = "trnv1:rsc:o:redis:clusters:*"

// added is the company of the model with another resource, which zoe owns.
func added(t *testing.T) *catalog.Catalog {
	t.Helper()
	return readCatalog(t, strings.NewReplacer("SECURITY", "erin, frank", "OWNER", "user:bob").Replace(modelCompany)+`
---
{kind: Resource, metadata: {name: late, annotations: {acp.io/resource-name: "trnv1:rsc:o:redis:clusters:late"}}, spec: {owner: "user:zoe"}}
`)
}

// TestStatementIsVoidedByAResource checks that a resource which a prefix covers later makes the approvals void until its owner approves.
func TestStatementIsVoidedByAResource(t *testing.T) {
	m := quiet(t)
	r := statementOn(v1alpha1.EffectAllow, 100*time.Hour, "a")
	r.Items[0].Scope.Resources = []string{redisPrefix}
	x := m.submit("alice", r)
	first := m.get(x.Number).Items[0]
	m.approve(x.Number, first.RemainingApprovers(&first.Steps[first.Current()])[0])
	m.catalog = added(t)
	second := m.get(x.Number).Items[0]
	who := second.RemainingApprovers(&second.Steps[second.Current()])[0]
	_, err := m.svc.Decide(t.Context(), m.actorOf(who), x.Number, approval.EveryItem, m.version(x.Number), true, "")
	now := m.get(x.Number)
	if !slices.ContainsFunc(now.Events, func(e approval.Event) bool { return e.Kind == approval.EventVoided }) {
		t.Fatalf("the approvals are not void (%v): %s", err, chainOf(now.Items[0]))
	}
	if s := now.Items[0].Steps[now.Items[0].Current()]; len(s.Votes) > 0 || s.Name != approval.StepLeader {
		t.Errorf("the chain did not begin again: %+v", s)
	}
	m.approveAll(x.Number)
	m.settle()
	m.is(x.Number, approval.StateEffective)
	if !slices.ContainsFunc(m.get(x.Number).Items[0].Steps, func(s approval.Step) bool {
		return slices.ContainsFunc(s.Votes, func(v approval.Vote) bool { return v.Person == "zoe" }) && s.Name != approval.StepLeader
	}) {
		t.Errorf("the owner of the added resource did not decide: %s", chainOf(m.get(x.Number).Items[0]))
	}
}

// TestStatementWithinAnOrganization checks that the policies of an organization which owns a covered resource limit a statement.
func TestStatementWithinAnOrganization(t *testing.T) {
	for _, resources := range [][]string{{"low"}, {redisPrefix}} {
		m := withOrganizations(t, payments(nil))
		p := &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "extra"}, Spec: v1alpha1.ApprovalPolicySpec{
			Organization: "payments", Steps: []v1alpha1.ApprovalStep{asked("more", "person:dan")},
			MaxDuration: &metav1.Duration{Duration: 20 * time.Hour}}}
		m.host.Policies = []*v1alpha1.ApprovalPolicy{p}
		about := func(d time.Duration) approval.Request {
			r := statementOn(v1alpha1.EffectAllow, d, "trnv1:rsc:org:net:cidr:10.0.0.0/8", "a")
			r.Items[0].Scope.Resources, r.Reason = resources, "work"
			return r
		}
		for _, d := range []time.Duration{0, 100 * time.Hour} {
			if x, err := m.svc.Submit(t.Context(), m.actorOf("alice"), about(d)); approval.CodeOf(err) != approval.CodeInvalid {
				t.Errorf("%v for %v: %v, %v", resources, d, x, err)
			}
		}
		x := m.submit("alice", about(10*time.Hour))
		if !strings.Contains(chainOf(x.Items[0]), "more(dan)") {
			t.Errorf("%v: the chain is %s", resources, chainOf(x.Items[0]))
		}
		high := m.submit("alice", statementOn(v1alpha1.EffectAllow, 100*time.Hour, "trnv1:rsc:org:net:cidr:10.1.0.0/16", "a"))
		if strings.Contains(chainOf(high.Items[0]), "more") {
			t.Errorf("a resource of others: the chain is %s", chainOf(high.Items[0]))
		}
	}
}

// TestOwnersSeeStatementsThatTheSecurityTeamDecides checks that owners whose place the security team takes see the ticket and have it in their
// lists while it is requested or in force, and that the owner of all resources can end it.
func TestOwnersSeeStatementsThatTheSecurityTeamDecides(t *testing.T) {
	const many = 210 // more than have steps of their owners
	company := strings.NewReplacer("SECURITY", "erin, frank", "OWNER", "user:bob").Replace(modelCompany)
	for i := range many {
		owner := "bob"
		if i == 7 {
			owner = "dan"
		}
		company += fmt.Sprintf(
			"---\n{kind: Resource, metadata: {name: q%d, annotations: {acp.io/resource-name: \"trnv1:rsc:o:mq:topics:%d\"}}, spec: {owner: \"user:%s\"}}\n",
			i,
			i,
			owner,
		)
	}
	m := quiet(t)
	m.catalog = readCatalog(t, company)
	request := func(prefix string) *approval.Ticket {
		r := statementOn(v1alpha1.EffectAllow, 100*time.Hour, "a", "trnv1:rsc:org:net:cidr:10.0.0.0/8")
		r.Items[0].Scope.Resources = []string{prefix}
		return m.submit("alice", r)
	}
	x := request("trnv1:rsc:o:mq:topics:*")
	if c := chainOf(x.Items[0]); strings.Contains(c, "bob") || strings.Contains(c, "dan") {
		t.Fatalf("the owners decide: %s", c)
	}
	seen := func(state string, want map[string]bool) {
		t.Helper()
		for who, sees := range want {
			actor := m.actorOf(who)
			v, err := m.svc.VisibleTo(t.Context(), actor)
			if err != nil {
				t.Fatal(err)
			}
			list, err := m.store.List(t.Context(), approval.Filter{Numbers: []int64{x.Number}, VisibleTo: v})
			if err != nil {
				t.Fatal(err)
			}
			if may := approval.MayDo(m.catalog, actor, m.get(x.Number)); may.See != sees || (len(list) == 1) != sees || may.Approve && !actor.Security {
				t.Errorf("%s: %s may %+v, and the list has %d", state, who, may, len(list))
			}
		}
	}
	everybody := map[string]bool{"alice": true, "bob": true, "dan": true, "erin": true, "otto": true, "zoe": false}
	seen("requested", everybody)
	m.approveAll(x.Number)
	m.settle()
	seen("in force", everybody)
	if approval.MayDo(m.catalog, m.actorOf("dan"), m.get(x.Number)).Revoke {
		t.Error("an owner of one of many resources ends the statement")
	}
	if !approval.MayDo(m.catalog, m.actorOf("alice"), m.get(x.Number)).See {
		t.Error("the requester does not see it")
	}
	m.catalog = readCatalog(t, strings.ReplaceAll(company, "user:dan", "user:bob"))
	if !approval.MayDo(m.catalog, m.actorOf("bob"), m.get(x.Number)).Revoke {
		t.Error("the owner of all resources may not end the statement")
	}
	if _, err := m.svc.Revoke(t.Context(), m.actorOf("bob"), x.Number, approval.EveryItem, "enough"); err != nil {
		t.Fatal(err)
	}
	m.settle()
	m.catalog = readCatalog(t, company)
	seen("revoked", map[string]bool{"alice": true, "dan": false, "erin": true, "zoe": false})
}
