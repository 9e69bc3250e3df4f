package portal

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// paymentsOrganization is an organization that bob and grace, who is an auditor, administer.
func paymentsOrganization() *v1alpha1.Organization {
	return &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "payments"}, Spec: v1alpha1.OrganizationSpec{
		Teams:          []v1alpha1.TeamName{"team"},
		Administrators: []v1alpha1.OrganizationAdministrator{"person:bob", "person:grace"},
		Bounds:         v1alpha1.OrganizationBounds{Approvals: &v1alpha1.ApprovalBounds{}},
	}}
}

func policyOfPayments(steps ...v1alpha1.ApprovalStep) *v1alpha1.ApprovalPolicy {
	return &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "extra"}, Spec: v1alpha1.ApprovalPolicySpec{Organization: "payments", Steps: steps}}
}

// TestOrganizationsAreHidden checks who sees organizations, and the text of their approval policies: their administrators, the security
// team and auditors.
func TestOrganizationsAreHidden(t *testing.T) {
	x := newSite(t)
	x.host.organizations = []*v1alpha1.Organization{paymentsOrganization()}
	x.host.approvals = []*v1alpha1.ApprovalPolicy{
		policyOfPayments(v1alpha1.ApprovalStep{Name: "more", Approvers: []v1alpha1.Approver{"person:bob"}, AutoApprove: "true"}),
		{ObjectMeta: metav1.ObjectMeta{Name: "global"}, Spec: v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{{Name: "s"}}}},
	}
	for who, tc := range map[string]struct{ sees, mine, global bool }{
		"dave": {true, false, true}, "grace": {true, false, true}, "bob": {true, true, false}, "alice": {}, "carol": {}, "erin": {},
	} {
		t.Run(who, func(t *testing.T) {
			caller := x.as(who)
			var list openapi.OrganizationList
			caller.Get("/api/v1/organizations").Into(t, &list)
			if (len(list.Items) == 1) != tc.sees {
				t.Errorf("the list is %+v", list.Items)
			}
			a := caller.Get("/api/v1/organizations/payments")
			if none := caller.Get("/api/v1/organizations/none"); (a.Status == http.StatusOK) != tc.sees || none.Status != http.StatusNotFound {
				t.Errorf("the page: %d %s, and one that does not exist: %d", a.Status, a.Body, none.Status)
			}
			if tc.sees {
				var o openapi.Organization
				a.Into(t, &o)
				if o.Mine != tc.mine || len(o.Policies) != 1 || o.Policies[0].Accepted || o.Policies[0].Message == nil ||
					!strings.Contains(o.Policies[0].Message.Text, "allowAutoApprove") || o.ClassBounds != nil || o.Yaml == nil {
					t.Errorf("the organization is %+v", o)
				}
			}
			var me openapi.Me
			caller.Get("/api/v1/me").Into(t, &me)
			if (me.Organizations != nil) != tc.mine {
				t.Errorf("administers %v", me.Organizations)
			}
			for name, sees := range map[string]bool{"extra": tc.sees, "global": tc.global} {
				var p openapi.ApprovalPolicy
				caller.Get("/api/v1/approval-policies/"+name).Into(t, &p)
				if (p.Yaml != nil) != sees {
					t.Errorf("the text of %s is visible: %t", name, p.Yaml != nil)
				}
			}
		})
	}
}

// TestAdministratorsOverHTTP checks which changes an administrator may request.
func TestAdministratorsOverHTTP(t *testing.T) {
	x := newSite(t)
	x.host.organizations = []*v1alpha1.Organization{paymentsOrganization()}
	request := func(kind, object, spec string) map[string]any {
		return map[string]any{"kind": kind, "reason": "work", "items": []map[string]any{
			{"object": map[string]any{"kind": object, "name": "extra", "verb": "create", "spec": spec}},
		}}
	}
	const steps = "\nsteps: [{name: more, approvers: ['person:bob']}]\npriority: 1"
	for name, tc := range map[string]struct {
		who  string
		body map[string]any
		want int
		says string
	}{
		"own policy":           {"bob", request("approval-policy", "ApprovalPolicy", "organization: payments"+steps), http.StatusOK, "administrator"},
		"policy of everybody":  {"bob", request("approval-policy", "ApprovalPolicy", steps), http.StatusOK, "belong to it"},
		"not an administrator": {"alice", request("approval-policy", "ApprovalPolicy", "organization: payments"+steps), http.StatusForbidden, "security team"},
		"outside of the bounds": {"bob", request("approval-policy", "ApprovalPolicy", "organization: payments\nreplaceOwners: true"+steps), http.StatusOK,
			"bounds.approvals.allowReplaceOwners"},
		"no class bounds": {"bob", request("class", "ResourceClass",
			"organization: payments\npattern: 'trnv1:rsc:o:redis:pay:*'\nlabelKey: a/b\nactions: []\nplacement: {clusters: []}"),
			http.StatusOK, "bounds.classes"},
		"the organization": {"bob", request("approval-policy", "Organization", "teams: [a]\nadministrators: ['person:bob']"), http.StatusOK, "belong to it"},
		"an auditor":       {"grace", request("approval-policy", "ApprovalPolicy", "organization: payments"+steps), http.StatusForbidden, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := x.as(tc.who).Post("/api/v1/tickets/preview", tc.body)
			if a.Status != tc.want || !strings.Contains(string(a.Body), tc.says) {
				t.Errorf("%d %s, want %d %q", a.Status, a.Body, tc.want, tc.says)
			}
		})
	}
}

// TestClassChangesHideClients checks that an administrator who requests a change of a class does not see the clients of its resources, whose
// owners may be others.
func TestClassChangesHideClients(t *testing.T) {
	x := newSite(t)
	o := paymentsOrganization()
	o.Spec.Bounds.Classes = &v1alpha1.ClassBounds{
		Patterns: []v1alpha1.NamePattern{"trnv1:rsc:trip-com:redis:clusters:*"}, LabelKeys: []v1alpha1.LabelKey{"com.trip/redis-cluster"},
		Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}, Sensitivities: []v1alpha1.Sensitivity{"low"},
	}
	x.host.organizations = []*v1alpha1.Organization{o}
	body := map[string]any{"kind": "class", "reason": "work", "items": []map[string]any{{"object": map[string]any{
		"kind": "ResourceClass", "name": "new", "verb": "create", "spec": "organization: payments\npattern: 'trnv1:rsc:trip-com:redis:clusters:none-*'\n" +
			"labelKey: com.trip/redis-cluster\nactions: [{name: 'redis:connect', ports: [{port: 6379}]}]\nplacement: {clusterSelector: {}}",
	}}}}
	for who, hidden := range map[string]bool{"bob": true, "dave": false} {
		a := x.as(who).Post("/api/v1/tickets/preview", body)
		if a.Status != http.StatusOK || strings.Contains(string(a.Body), "What others may do there is left out") != hidden {
			t.Errorf("%s: %d %s", who, a.Status, a.Body)
		}
	}
}
