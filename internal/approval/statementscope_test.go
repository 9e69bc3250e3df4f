package approval_test

import (
	"errors"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
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
