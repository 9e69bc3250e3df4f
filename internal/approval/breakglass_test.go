package approval_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// breakGlassPolicy returns an approval policy by which these people may break glass for at most 4 h.
func breakGlassPolicy(people ...string) *v1alpha1.ApprovalPolicy {
	return &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "glass"}, Spec: v1alpha1.ApprovalPolicySpec{
		Steps: []v1alpha1.ApprovalStep{{Name: "s", Approvers: []v1alpha1.Approver{"group:security"}}},
		BreakGlass: &v1alpha1.BreakGlass{
			People:      people,
			MaxDuration: metav1.Duration{Duration: 4 * time.Hour},
			Reviewers:   []v1alpha1.Approver{"group:security"},
		},
	}}
}

func TestBreakGlass(t *testing.T) {
	ask := grant(2 * time.Hour)
	ask.BreakGlass, ask.Reason = true, "the shop is down"
	broken := breakGlassPolicy("alice")
	broken.Spec.Match = `request.actions[9] == ""`
	for name, tc := range map[string]struct {
		reason   string
		policies []*v1alpha1.ApprovalPolicy
		duration time.Duration
		code     approval.Code
	}{
		"in doubt":  {"it is unknown whether the policy matches", []*v1alpha1.ApprovalPolicy{broken}, time.Hour, approval.CodeNoApprover},
		"no policy": {"with nobody named, nobody can", nil, time.Hour, approval.CodeForbidden},
		"not named": {"others are", []*v1alpha1.ApprovalPolicy{breakGlassPolicy("bob")}, time.Hour, approval.CodeForbidden},
		"nobody":    {"an empty list names nobody", []*v1alpha1.ApprovalPolicy{breakGlassPolicy()}, time.Hour, approval.CodeForbidden},
		"too long":  {"at most some hours", []*v1alpha1.ApprovalPolicy{breakGlassPolicy("alice")}, 5 * time.Hour, approval.CodeInvalid},
		"for ever":  {"at most some hours", []*v1alpha1.ApprovalPolicy{breakGlassPolicy("alice")}, 0, approval.CodeInvalid},
	} {
		m := quiet(t, tc.policies...)
		ask.Items[0].Duration = tc.duration
		if _, err := m.svc.Submit(t.Context(), m.actorOf("alice"), ask); approval.CodeOf(err) != tc.code {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
	ask.Items[0].Duration = 2 * time.Hour
	for _, confirm := range []bool{true, false} {
		m := quiet(t, breakGlassPolicy("alice"))
		x := m.submit("alice", ask)
		m.settle()
		m.is(x.Number, approval.StateEffective)
		review := func(who, comment string) error {
			_, err := m.svc.Review(t.Context(), m.actorOf(who), x.Number, 0, confirm, comment)
			return err
		}
		if err := review("alice", "fine"); approval.CodeOf(err) != approval.CodeForbidden {
			t.Errorf("a requester reviewed their own access: %v", err)
		}
		if err := review("erin", ""); approval.CodeOf(err) != approval.CodeInvalid {
			t.Errorf("a review says what it found: %v", err)
		}
		if err := review("erin", "looked at it"); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.is(x.Number, map[bool]approval.State{true: approval.StateEffective, false: approval.StateRevoked}[confirm])
		if err := review("frank", "again"); approval.CodeOf(err) != approval.CodeConflict {
			t.Errorf("once: %v", err)
		}
	}
}
