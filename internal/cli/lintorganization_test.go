package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/manifest"
)

// TestLintFindsWhatIsOutOfBounds checks that classes and approval policies are compared with the organizations that were read.
func TestLintFindsWhatIsOutOfBounds(t *testing.T) {
	pay := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "pay"}, Spec: v1alpha1.OrganizationSpec{
		Teams: []v1alpha1.TeamName{"team"}, Bounds: v1alpha1.OrganizationBounds{Approvals: &v1alpha1.ApprovalBounds{}},
	}}
	policy := &v1alpha1.ApprovalPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "extra"}, Spec: v1alpha1.ApprovalPolicySpec{Organization: "pay", SamePersonManySteps: true},
	}
	set := &manifest.Set{Approvals: []*v1alpha1.ApprovalPolicy{policy}}
	for name, tc := range map[string]struct {
		reason        string
		organizations []*v1alpha1.Organization
		want          int
	}{
		"no organization": {"nothing is known about bounds", nil, 0},
		"organization":    {"the policy lets one person fill several steps", []*v1alpha1.Organization{pay}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			set.Organizations = tc.organizations
			found, err := lint(set, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != tc.want {
				t.Fatalf("%s: %+v", tc.reason, found)
			}
			for _, f := range found {
				if f.Severity != severityError || f.Kind != kindOutOfBounds || f.Object != "ApprovalPolicy/extra" ||
					f.Message.Code != "condition.policy-out-of-bounds" {
					t.Errorf("%s: %+v", tc.reason, f)
				}
			}
		})
	}
}
