package ticketapi

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
)

// TestPolicyMessages checks that the reason why a policy is not accepted has a code, and that a text of another version is shown as it is.
func TestPolicyMessages(t *testing.T) {
	p := &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ApprovalPolicySpec{Match: "request.kind =="}}
	accepted, reason := rules.Acceptance(p)
	if accepted || reason.Code != message.ConditionApprovalPolicyInvalid(nil).Code {
		t.Fatalf("the policy is accepted: %t, %+v", accepted, reason)
	}
	for _, tc := range []struct {
		reason, text string
		want         *message.Message
	}{
		{"the text of this version", reason.Text, &reason},
		{"a text of another version", "it is wrong", new(message.OfText("it is wrong"))},
		{"no text", "", nil},
	} {
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Message: tc.text}}
		got := policyView(&catalog.Catalog{}, approval.Actor{ID: "alice"}, p, organization.NewIndex(nil), false)
		if got.Accepted || (got.Message == nil) != (tc.want == nil) || got.Message != nil && *got.Message != *tc.want {
			t.Errorf("%s: %+v", tc.reason, got.Message)
		}
	}
}

// TestBuiltinPolicyHasTimeouts checks that the page of approval policies shows the timeouts of the built-in chain.
func TestBuiltinPolicyHasTimeouts(t *testing.T) {
	denies, reminds := new(message.PolicyStepDenies("1h")), new(message.PolicyStepReminds("1h"))
	for name, tc := range map[string]struct {
		builtin  approval.BuiltinTimeout
		leader   *message.Message
		security *message.Message
		reminds  bool
	}{
		"none": {approval.BuiltinTimeout{}, nil, nil, false},
		"escalate": {approval.BuiltinTimeout{RemindEvery: 24 * time.Hour, After: 72 * time.Hour, Action: v1alpha1.TimeoutEscalate},
			new(message.PolicyStepEscalatesUp("72h")), nil, true},
		"deny":   {approval.BuiltinTimeout{After: time.Hour, Action: v1alpha1.TimeoutDeny}, denies, denies, false},
		"remind": {approval.BuiltinTimeout{After: time.Hour, Action: v1alpha1.TimeoutRemind}, reminds, reminds, false},
	} {
		p := builtinView(tc.builtin)
		for i, want := range map[int]*message.Message{0: tc.leader, 2: tc.security} {
			got := p.Steps[i]
			if (got.Timeout == nil) != (want == nil) || want != nil && *got.Timeout != *want || (got.RemindSeconds != nil) != tc.reminds {
				t.Errorf("%s: %s: %+v, %v", name, got.Name, got.Timeout, got.RemindSeconds)
			}
		}
	}
}

// TestPolicyViewHasLimitsAndDenies checks that the page of approval policies shows who is left of the approvers, and the denies.
func TestPolicyViewHasLimitsAndDenies(t *testing.T) {
	p := &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ApprovalPolicySpec{DenyAutoApprove: []string{"request.permanent"},
		Steps: []v1alpha1.ApprovalStep{{Name: "s", Approvers: []v1alpha1.Approver{"resource.owner"}, LimitTo: `onCall("shop", 1)`}}}}
	got := policyView(&catalog.Catalog{}, approval.Actor{ID: "alice"}, p, organization.NewIndex(nil), false)
	if s := got.Steps[0]; s.LimitTo == nil || *s.LimitTo != `onCall("shop", 1)` || *s.LimitFallback != "Wait" || got.DenyAutoApprove == nil ||
		len(*got.DenyAutoApprove) != 1 {
		t.Errorf("got %+v", got)
	}
}
