package portal

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// TestBreakGlassPeopleAreHidden checks who sees which people may use break-glass access: the security team and auditors see all
// of them, everybody else only themselves, in the list and on the page of a policy, and nobody else gets the policy's text.
func TestBreakGlassPeopleAreHidden(t *testing.T) {
	x := newSite(t)
	x.host.approvals = []*v1alpha1.ApprovalPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "glass"}, Spec: v1alpha1.ApprovalPolicySpec{
		Steps: []v1alpha1.ApprovalStep{{Name: "owner", Approvers: []v1alpha1.Approver{"resource.owner"}}},
		BreakGlass: &v1alpha1.BreakGlass{
			People:      []string{"alice", "carol"},
			MaxDuration: metav1.Duration{Duration: 4 * time.Hour},
			Reviewers:   []v1alpha1.Approver{"security"},
		},
	}}}
	for name, tc := range map[string]struct {
		who  string
		want []string
		text bool
	}{
		"SecurityTeam": {"dave", []string{"alice", "carol"}, true},
		"Auditor":      {"grace", []string{"alice", "carol"}, true},
		"Themselves":   {"alice", []string{"alice"}, false},
		"Owner":        {"bob", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			caller := x.as(tc.who)
			var list struct{ Items []openapi.ApprovalPolicy }
			caller.Get("/api/v1/approval-policies").Into(t, &list)
			var one openapi.ApprovalPolicy
			caller.Get("/api/v1/approval-policies/glass").Into(t, &one)
			if len(list.Items) == 0 {
				t.Fatal("the list is empty")
			}
			for place, p := range map[string]openapi.ApprovalPolicy{"list": list.Items[0], "page": one} {
				if p.Name != "glass" || p.BreakGlassPeople == nil {
					t.Fatalf("in the %s: %+v", place, p)
				}
				var got []string
				for _, person := range *p.BreakGlassPeople {
					got = append(got, person.Id)
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("in the %s, %s sees %v, want %v", place, tc.who, got, tc.want)
				}
			}
			if (one.Yaml != nil) != tc.text {
				t.Errorf("%s gets the text: %v", tc.who, one.Yaml != nil)
			}
		})
	}
}
