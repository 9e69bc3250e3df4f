package admission

import (
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestApprovalPolicy(t *testing.T) {
	with := func(match string) *v1alpha1.ApprovalPolicy {
		return &v1alpha1.ApprovalPolicy{Spec: v1alpha1.ApprovalPolicySpec{Match: match,
			Steps: []v1alpha1.ApprovalStep{{Name: "owner", Approvers: []v1alpha1.Approver{"resource.owner"}}}}}
	}
	for name, tc := range map[string]struct {
		reason       string
		old, now     *v1alpha1.ApprovalPolicy
		denial, odd  string
		wantNoDenial bool
	}{
		"fine":     {reason: "it compiles", now: with(`request.clients > 5`), wantNoDenial: true},
		"does not": {reason: "names the expression and where", now: with("request.clients > 'x'"), denial: "spec.match: line 1, column 17"},
		"did not": {
			reason: "what was wrong before is no reason to keep other changes out", old: with("("), now: with("("), odd: "spec.match",
			wantNoDenial: true,
		},
		"never matches": {reason: "legal and odd", now: with(`request.kind == "x"`), odd: "never counts", wantNoDenial: true},
		"nobody":        {reason: "legal and odd", now: with(`request.kind == "class"`), odd: "nobody can fill it", wantNoDenial: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := ApprovalPolicy(tc.old, tc.now)
			denials, warnings := strings.Join(v.Denials, "; "), strings.Join(v.Warnings, "; ")
			if (denials == "") != tc.wantNoDenial || !strings.Contains(denials, tc.denial) || !strings.Contains(warnings, tc.odd) ||
				tc.odd == "" && warnings != "" {
				t.Errorf("%s: denials %q, warnings %q", tc.reason, denials, warnings)
			}
		})
	}
}
