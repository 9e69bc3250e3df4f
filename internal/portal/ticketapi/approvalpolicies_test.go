package ticketapi

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
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
		got := policyView(&catalog.Catalog{}, approval.Actor{ID: "alice"}, p, false)
		if got.Accepted || (got.Message == nil) != (tc.want == nil) || got.Message != nil && *got.Message != *tc.want {
			t.Errorf("%s: %+v", tc.reason, got.Message)
		}
	}
}
