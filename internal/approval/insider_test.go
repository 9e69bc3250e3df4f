package approval_test

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// TestReviewEndsWhatExtends checks that a second use of break-glass does not preserve what the review of the first
// one took away.
func TestReviewEndsWhatExtends(t *testing.T) {
	m := quiet(t, breakGlassPolicy("alice"))
	ask := grant(time.Hour)
	ask.BreakGlass, ask.Reason = true, "the shop is down"
	first := m.submit("alice", ask)
	m.settle()
	ask.Items[0].Duration = 3 * time.Hour
	again := m.submit("alice", ask)
	m.settle()
	m.is(first.Number, approval.StateEffective)
	m.is(again.Number, approval.StateEffective)
	if target := again.Items[0].Target; target == nil || target.Ticket != first.Number {
		t.Fatalf("the second extends the first: %+v", target)
	}
	for name, tc := range map[string]struct{ reason, who, comment string }{
		"requester":  {"requesters do not review their own access", "alice", "fine"},
		"stranger":   {"dan is no reviewer", "dan", "no"},
		"auditor":    {"auditors only read", "otto", "no"},
		"no comment": {"a review says what it found", "erin", " "},
	} {
		if _, err := m.svc.Review(t.Context(), m.actorOf(tc.who), first.Number, 0, false, tc.comment); err == nil {
			t.Errorf("%s: %s", name, tc.reason)
		}
		m.is(again.Number, approval.StateEffective)
	}
	if _, err := m.svc.Review(t.Context(), m.actorOf("erin"), first.Number, 0, false, "the shop was not down"); err != nil {
		t.Fatal(err)
	}
	m.settle()
	m.is(first.Number, approval.StateRevoked)
	m.is(again.Number, approval.StateRevoked)
}

// TestEscalationIsNotTheSecurityTeam: a policy for everything whose security step is handed on must not let others
// change who has to agree.
func TestEscalationIsNotTheSecurityTeam(t *testing.T) {
	handed := asked("security", "group:security")
	handed.Timeout = &v1alpha1.StepTimeout{
		After:      metav1.Duration{Duration: time.Hour},
		Action:     v1alpha1.TimeoutEscalate,
		EscalateTo: []v1alpha1.Approver{"person:dan"},
	}
	m := quiet(t, policyOf("everything", 1, "", handed))
	spec, err := json.Marshal(v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{asked("mine", "person:dan")}})
	if err != nil {
		t.Fatal(err)
	}
	n := m.submit("erin", approval.Request{Kind: approval.KindApprovalPolicy, Items: []approval.RequestItem{{Object: &approval.ObjectChange{
		Kind: approval.ObjectApprovalPolicy, Name: "mine", Verb: approval.VerbCreate, Spec: spec}}}}).Number
	m.now = m.now.Add(2 * time.Hour)
	m.settle()
	if _, err := m.svc.Decide(t.Context(), m.actorOf("dan"), n, 0, m.version(n), true, ""); err == nil {
		t.Error("dan is not of the security team")
	}
	m.approve(n, "frank")
	m.settle()
	m.is(n, approval.StateEffective)
}
