package portal

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// TestPreviewOfBreakGlass checks that the preview of a break-glass request shows its reviewers instead of approvers.
func TestPreviewOfBreakGlass(t *testing.T) {
	x := newSite(t)
	cap90 := metav1.Duration{Duration: 90 * 24 * time.Hour}
	x.host.approvals = []*v1alpha1.ApprovalPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "glass"}, Spec: v1alpha1.ApprovalPolicySpec{
		MaxDuration: &cap90,
		Steps:       []v1alpha1.ApprovalStep{{Name: "owner", Approvers: []v1alpha1.Approver{"resource.owner"}}},
		BreakGlass: &v1alpha1.BreakGlass{
			People:      []string{"alice"},
			MaxDuration: metav1.Duration{Duration: 4 * time.Hour},
			Reviewers:   []v1alpha1.Approver{"person:dave"},
		},
	}}}
	alice := x.as("alice")
	for name, tc := range map[string]struct {
		breakGlass     bool
		seconds        int
		steps, reviews int
		longest        int64
	}{
		"Asked":  {false, 3600, 1, 0, int64(cap90.Seconds())},
		"Long":   {false, 91 * 24 * 3600, 0, 0, int64(cap90.Seconds())},
		"Broken": {true, 3600, 0, 1, int64((4 * time.Hour).Seconds())},
	} {
		t.Run(name, func(t *testing.T) {
			body := newTicket("app-888", "bobs-cluster")
			body["durationSeconds"] = tc.seconds
			body["breakGlass"] = tc.breakGlass
			var got openapi.TicketPreview
			alice.Post("/api/v1/tickets/preview", body).Into(t, &got)
			if len(got.Items) != 1 {
				t.Fatalf("%+v", got)
			}
			it := got.Items[0]
			if len(it.Steps) != tc.steps || (it.Review != nil) != (tc.reviews > 0) || got.MaxDurationSeconds == nil || *got.MaxDurationSeconds != tc.longest {
				t.Errorf("%+v, at most %v s", it, got.MaxDurationSeconds)
			}
			if it.Review != nil && (len(it.Review.Approvers) != 1 || it.Review.Approvers[0].Id != "dave") {
				t.Errorf("the reviewers are %+v, want dave", it.Review)
			}
		})
	}
}
