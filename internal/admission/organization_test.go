package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/organization"
)

// TestOrganizations checks that a change may not exceed a bound, and that a bound that is exceeded already is a warning.
func TestOrganizations(t *testing.T) {
	bounds := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "pay"}, Spec: v1alpha1.OrganizationSpec{
		Teams: []v1alpha1.TeamName{"team"}, Bounds: v1alpha1.OrganizationBounds{Approvals: &v1alpha1.ApprovalBounds{}},
	}}
	x := organization.NewIndex([]*v1alpha1.Organization{bounds})
	class := &v1alpha1.ResourceClass{Spec: v1alpha1.ResourceClassSpec{Organization: "pay"}}
	policy := func(auto string) *v1alpha1.ApprovalPolicy {
		return &v1alpha1.ApprovalPolicy{Spec: v1alpha1.ApprovalPolicySpec{Organization: "pay", Steps: []v1alpha1.ApprovalStep{{AutoApprove: auto}}}}
	}
	other := bounds.DeepCopy()
	other.Name = "other"
	for name, tc := range map[string]struct {
		verdict       Verdict
		denies, warns string
	}{
		"new class":       {OrganizationClass(nil, class, x), "bounds.classes", ""},
		"old class":       {OrganizationClass(class, class, x), "", "bounds.classes"},
		"no organization": {OrganizationClass(nil, &v1alpha1.ResourceClass{}, x), "", ""},
		"policy":          {OrganizationPolicy(nil, policy(""), x), "", ""},
		"wider policy":    {OrganizationPolicy(policy(""), policy("true"), x), "allowAutoApprove", ""},
		"old policy":      {OrganizationPolicy(policy("true"), policy("true"), x), "", "allowAutoApprove"},
		"conflict":        {Organization(other, x), "", "pay names them"},
		"no conflict":     {Organization(bounds, x), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			denials, warnings := strings.Join(tc.verdict.Denials, " "), strings.Join(tc.verdict.Warnings, " ")
			if !strings.Contains(denials, tc.denies) || (denials == "") != (tc.denies == "") ||
				!strings.Contains(warnings, tc.warns) || (warnings == "") != (tc.warns == "") {
				t.Errorf("denials %q, warnings %q", denials, warnings)
			}
		})
	}
}
