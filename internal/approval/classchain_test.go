package approval_test

import (
	"fmt"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// TestClassesAskTheOwners checks who decides about a change of a class, by the resources that it affects.
func TestClassesAskTheOwners(t *testing.T) {
	const high = "trnv1:rsc:o:redis:clusters:high"
	many := make([]string, 201)
	for i := range many {
		many[i] = fmt.Sprintf("trnv1:rsc:o:redis:clusters:%d", i)
	}
	request := objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbCreate, organizationClass(nil))
	for _, tc := range []struct {
		reason    string
		requester string
		affected  []string
		policy    *v1alpha1.ApprovalPolicy
		want      string
	}{
		{"nothing is affected", "erin", nil, nil, ": security(frank)"},
		{"one resource of a team", "erin", []string{lowResource}, nil, ": owner(alice bob carol dan), security(frank)"},
		{"two resources with a common owner, who decides once", "erin", []string{high, lowResource}, nil, ": owner(bob), security(frank)"},
		{"a resource that the catalog does not have", "erin", []string{"trnv1:rsc:o:redis:clusters:none"}, nil, ": security(frank)"},
		{"too many resources", "erin", many, nil, ": security(frank)"},
		{"an administrator requests it", "carol", []string{lowResource}, nil, ": owner(alice bob dan), administrator(dan erin frank)"},
		{"an administrator, of a resource that has no owner", "carol", []string{"trnv1:rsc:o:redis:clusters:none"}, nil,
			": administrator(dan erin frank), security(erin frank)"},
		{"a policy does not leave the owners out", "erin", []string{lowResource}, policyOf("lax", 1, "", asked("any", "person:zoe")),
			"lax: any(zoe), owner(alice bob carol dan)"},
		{"a policy does not leave out the security team where there is no owner", "erin", many, policyOf("lax", 1, "", asked("any", "person:zoe")),
			"lax: any(zoe), security(frank)"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := withOrganizations(t, payments(nil))
			m.host.Affects = map[string][]string{"ResourceClass/x": tc.affected}
			if tc.policy != nil {
				m.host.Policies = []*v1alpha1.ApprovalPolicy{tc.policy}
			}
			x := m.submit(tc.requester, request)
			if got := chainOf(x.Items[0]); got != tc.want {
				t.Errorf("the chain is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestClassesAskFurtherOwners checks that approvals are void if a change of a class affects a further owner before it is written.
func TestClassesAskFurtherOwners(t *testing.T) {
	m := withOrganizations(t, payments(nil))
	x := m.submit("erin", objectRequest(approval.KindClass, approval.ObjectResourceClass, approval.VerbCreate, organizationClass(nil)))
	m.host.Affects = map[string][]string{"ResourceClass/x": {lowResource}}
	if _, err := m.svc.Decide(t.Context(), m.actorOf("frank"), x.Number, 0, x.Version, true, ""); approval.CodeOf(err) != approval.CodeStale {
		t.Errorf("the vote of the security team is accepted although an owner has to decide: %v", err)
	}
	now, err := m.svc.Get(t.Context(), m.actorOf("erin"), x.Number)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := chainOf(now.Items[0]), ": owner(alice bob carol dan), security(frank)"; got != want {
		t.Errorf("the chain is %q, want %q", got, want)
	}
	m.approve(x.Number, "bob", "frank")
	m.settle()
	m.is(x.Number, approval.StateEffective)
}
