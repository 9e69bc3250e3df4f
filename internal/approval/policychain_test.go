package approval_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

func asked(name string, who ...v1alpha1.Approver) v1alpha1.ApprovalStep {
	return v1alpha1.ApprovalStep{Name: name, Approvers: who}
}

func needing(n int32, s v1alpha1.ApprovalStep) v1alpha1.ApprovalStep {
	s.Quorum, s.Count = "Count", &n
	return s
}

func policyOf(name string, priority int32, match string, steps ...v1alpha1.ApprovalStep) *v1alpha1.ApprovalPolicy {
	return &v1alpha1.ApprovalPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ApprovalPolicySpec{Priority: priority, Match: match, Steps: steps},
	}
}

// chainOf says a chain as "policy: step(people)/quorum, ...".
func chainOf(it approval.Item) string {
	var steps []string
	for _, s := range it.Steps {
		text := fmt.Sprintf("%s(%s)", s.Name, strings.Join(s.Approvers, " "))
		if s.Quorum > 1 {
			text += fmt.Sprint("/", s.Quorum)
		}
		if s.Auto {
			text += " auto"
		}
		steps = append(steps, text)
	}
	return it.Approval + ": " + strings.Join(steps, ", ")
}

// TestPolicyChains: alice asks for her application on high (bob's) or low (the team's); carol leads the team, zoe leads
// carol; erin and frank are the security team.
func TestPolicyChains(t *testing.T) {
	all := func(s v1alpha1.ApprovalStep) v1alpha1.ApprovalStep { s.Quorum = "All"; return s }
	when := func(c string, s v1alpha1.ApprovalStep) v1alpha1.ApprovalStep { s.Condition = c; return s }
	auto := func(c string, s v1alpha1.ApprovalStep) v1alpha1.ApprovalStep { s.AutoApprove = c; return s }
	capped := policyOf("capped", 1, "", asked("owner", "resource.owner"))
	capped.Spec.MaxDuration = &metav1.Duration{Duration: 24*time.Hour + 30*time.Minute}
	denies := func(name, match string, conditions ...string) *v1alpha1.ApprovalPolicy {
		p := policyOf(name, 9, match, asked("x", "group:security"))
		p.Spec.DenyAutoApprove = conditions
		return p
	}
	easy := policyOf("easy", 1, "", auto("true", asked("leader", "requester.leader")), auto("true", asked("owner", "resource.owner")))
	many := policyOf("many", 1, "", all(asked("a", "group:security")), all(asked("b", "group:security")))
	many.Spec.SamePersonManySteps = true
	for name, tc := range map[string]struct {
		reason   string
		policies []*v1alpha1.ApprovalPolicy
		resource string
		want     string
		refused  approval.Code
		says     string
	}{
		"built in": {
			reason:   "nothing matches",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("p", 1, "request.clients > 5", asked("x", "group:security"))},
			want:     ": leader(carol), owner(bob), security(erin frank)",
		},
		"priority": {
			reason:   "the lowest number",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("b", 2, "", asked("b", "person:bob")), policyOf("a", 1, "", asked("a", "person:bob"))},
			want:     "a: a(bob)",
		},
		"name": {
			reason:   "then the name",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("b", 1, "", asked("b", "person:bob")), policyOf("a", 1, "", asked("a", "person:bob"))},
			want:     "a: a(bob)",
		},
		"first match": {
			reason: "the first does not",
			policies: []*v1alpha1.ApprovalPolicy{
				policyOf("a", 1, `request.kind == "mode"`, asked("a", "person:bob")), policyOf("b", 2, "", asked("b", "person:bob")),
			},
			want: "b: b(bob)",
		},
		"broken match": {
			reason: "the lax one may not hide the strict one",
			policies: []*v1alpha1.ApprovalPolicy{
				policyOf("a", 1, `request.actions[9] == ""`, asked("a", "person:bob")), policyOf("b", 2, "", asked("b", "group:security")),
			},
			refused: approval.CodeNoApprover, says: "match of the approval policy a cannot be evaluated",
		},
		"match before": {
			reason:   "what is behind does not matter",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", asked("a", "person:bob")), policyOf("b", 2, "(", asked("b", "group:security"))},
			want:     "a: a(bob)",
		},
		"no CEL": {
			reason:   "nor what does not compile",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, `(`, asked("a", "person:bob")), policyOf("b", 2, "", asked("b", "group:security"))},
			refused:  approval.CodeNoApprover, says: "match of the approval policy a cannot be evaluated",
		},
		"no CEL beside": {
			reason:   "a condition that does not compile counts",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", when(")", asked("a", "group:security")))},
			want:     "a: a(erin frank)",
		},
		"condition": {
			reason: "a step that is not needed",
			policies: []*v1alpha1.ApprovalPolicy{
				policyOf("a", 1, "", asked("owner", "resource.owner"), when(`request.permanent`, asked("security", "group:security"))),
			},
			want: "a: owner(bob)",
		},
		"no step left": {
			reason:   "nothing is granted without approval",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", when("false", asked("x", "resource.owner")))},
			refused:  approval.CodeNoApprover, says: "requires no approval",
		},
		"auto": {
			reason: "shown as such",
			policies: []*v1alpha1.ApprovalPolicy{
				policyOf("a", 1, "", auto(`request.duration < duration("10h")`, asked("leader", "requester.leader")), asked("owner", "resource.owner")),
			},
			want: "a: leader(carol) auto, owner(bob)",
		},
		"auto fails": {
			reason:   "then somebody is asked",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", auto(`request.actions[9] == ""`, asked("owner", "resource.owner")))},
			want:     "a: owner(bob)",
		},
		"deny wins": {
			reason:   "a policy that does not define the steps forbids it",
			policies: []*v1alpha1.ApprovalPolicy{easy, denies("strict", "", "false", `request.resource.sensitivity == "high"`)},
			want:     "easy: leader(carol), owner(bob)",
		},
		"deny of another resource": {
			reason:   "no condition is true",
			policies: []*v1alpha1.ApprovalPolicy{easy, denies("strict", "", `request.resource.sensitivity == "low"`)},
			want:     "easy: leader(carol) auto, owner(bob) auto",
		},
		"deny of other requests": {
			reason:   "the policy does not apply",
			policies: []*v1alpha1.ApprovalPolicy{easy, denies("strict", `request.kind == "mode"`, "true")},
			want:     "easy: leader(carol) auto, owner(bob) auto",
		},
		"deny unclear": {
			reason:   "a condition that cannot be evaluated counts",
			policies: []*v1alpha1.ApprovalPolicy{easy, denies("strict", "", `request.actions[9] == ""`)},
			want:     "easy: leader(carol), owner(bob)",
		},
		"deny that may apply": {
			reason:   "a match that cannot be evaluated may be true",
			policies: []*v1alpha1.ApprovalPolicy{easy, denies("strict", `request.actions[9] == ""`, "true")},
			want:     "easy: leader(carol), owner(bob)",
		},
		"deny without CEL": {
			reason:   "nor does one that does not compile, or is empty",
			policies: []*v1alpha1.ApprovalPolicy{easy, denies("strict", "", "(")},
			want:     "easy: leader(carol), owner(bob)",
		},
		"deny that is empty": {
			reason:   "it is not known what was meant",
			policies: []*v1alpha1.ApprovalPolicy{easy, denies("strict", "", "")},
			want:     "easy: leader(carol), owner(bob)",
		},
		"count": {
			reason:   "two of three",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", needing(2, asked("x", "group:security", "resource.owner")))},
			want:     "a: x(bob erin frank)/2",
		},
		"all": {reason: "everybody", policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", all(asked("x", "group:team")))}, want: "a: x(bob carol dan)/3"},
		"too many": {
			reason: "said at once", policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", needing(3, asked("x", "group:security")))},
			refused: approval.CodeNoApprover, says: "needs 3 approvals, and 2 people",
		},
		"nobody": {
			reason:   "said at once",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", asked("x", "person:alice", "person:otto", "person:gone", "group:gone"))},
			refused:  approval.CodeNoApprover, says: `The step "x"`,
		},
		"quorum matches": {
			reason:   "two and one of three, all different",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", needing(2, asked("x", "group:security", "person:bob")), asked("y", "person:bob"))},
			want:     "a: x(bob erin frank)/2, y(bob)",
		},
		"quorum cannot": {
			reason:   "three places, two people",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", all(asked("x", "group:security")), asked("y", "person:erin"))},
			refused:  approval.CodeNoApprover, says: "more different people",
		},
		"many steps": {reason: "the policy says so", policies: []*v1alpha1.ApprovalPolicy{many}, want: "many: a(erin frank)/2, b(erin frank)/2"},
		"leader goes up": {
			reason:   "carol is needed for the other step",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", asked("x", "requester.leader"), asked("y", "person:carol"))},
			want:     "a: x(zoe), y(carol)",
		},
		"own resource": {
			reason:   "another owner",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", asked("x", "resource.owner"))}, resource: "low",
			want: "a: x(bob carol dan)",
		},
		"only owner": {
			reason:   "alice owns the application: the security team decides",
			policies: []*v1alpha1.ApprovalPolicy{policyOf("a", 1, "", asked("x", "application.owner"))},
			want:     "a: x(erin frank)",
		},
		"cap": {
			reason: "no longer than the policy allows", policies: []*v1alpha1.ApprovalPolicy{capped},
			refused: approval.CodeInvalid, says: "at most 1d 30m:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t, tc.policies...)
			r := grant(8 * time.Hour)
			if tc.refused == approval.CodeInvalid {
				r = grant(25 * time.Hour)
			}
			if tc.resource != "" {
				r.Items[0].Resource = tc.resource
			}
			p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), r)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Items[0]; tc.refused != "" {
				if approval.CodeOf(got.Err) != tc.refused || !strings.Contains(got.Err.Error(), tc.says) {
					t.Errorf("%s: %v", tc.reason, got.Err)
				}
				return
			}
			if p.Items[0].Err != nil {
				t.Fatal(p.Items[0].Err)
			}
			if d := cmp.Diff(tc.want, chainOf(p.Items[0].Item)); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
		})
	}
}

func TestWhatIf(t *testing.T) {
	m := quiet(t)
	p, err := m.svc.WhatIf(t.Context(), m.actorOf("otto"), grant(0), "alice")
	if err != nil || chainOf(p.Items[0].Item) != ": leader(carol), owner(bob), security(erin frank)" {
		t.Errorf("an auditor may ask: %+v, %v", p, err)
	}
	for reason, tc := range map[string]struct {
		who, as string
		code    approval.Code
	}{
		"not everybody":  {"alice", "bob", approval.CodeForbidden},
		"nobody of that": {"erin", "nobody", approval.CodeInvalid},
		"auditors":       {"erin", "otto", approval.CodeForbidden},
	} {
		if _, err := m.svc.WhatIf(t.Context(), m.actorOf(tc.who), grant(0), tc.as); approval.CodeOf(err) != tc.code {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if len(m.tickets()) != 0 {
		t.Error("it only asks")
	}
}
