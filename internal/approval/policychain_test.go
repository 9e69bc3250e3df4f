package approval_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// TestAuditorsCannotDecideThroughDelegates checks that the delegate of a person who became an auditor cannot decide for them.
func TestAuditorsCannotDecideThroughDelegates(t *testing.T) {
	m := quiet(t)
	if _, err := m.svc.Delegate(t.Context(), m.actorOf("bob"), "dan", m.now, m.now.Add(24*time.Hour), "away"); err != nil {
		t.Fatal(err)
	}
	x := m.submit("alice", grant(0))
	m.approve(x.Number, "carol")
	company := strings.NewReplacer("SECURITY", "erin, frank", "OWNER", "user:bob").Replace(modelCompany)
	m.catalog = readCatalog(t, strings.Replace(company, "members: [otto]", "members: [otto, bob]", 1))
	_, err := m.svc.Decide(t.Context(), m.actorOf("dan"), x.Number, 0, m.version(x.Number), true, "")
	if steps := m.get(x.Number).Items[0].Steps; err == nil ||
		slices.ContainsFunc(steps, func(s approval.Step) bool { return s.Name == "owner" && len(s.Votes) > 0 }) {
		t.Errorf("dan decided for an auditor: %v, %+v", err, steps)
	}
}

func TestDelegation(t *testing.T) {
	m := quiet(t)
	day := 24 * time.Hour
	delegate := func(who, to string, from, till time.Duration) (approval.Delegation, error) {
		return m.svc.Delegate(t.Context(), m.actorOf(who), to, m.now.Add(from), m.now.Add(till), "away")
	}
	for reason, tc := range map[string]struct {
		who, to    string
		from, till time.Duration
	}{
		"to themselves": {"bob", "bob", 0, day}, "to nobody": {"bob", "nobody", 0, day},
		"no time": {"bob", "dan", day, day}, "over": {"bob", "dan", -2 * day, -day},
		"too long": {"bob", "dan", 0, 91 * day}, "an auditor": {"otto", "dan", 0, day},
	} {
		if _, err := delegate(tc.who, tc.to, tc.from, tc.till); err == nil {
			t.Errorf("%s: it was accepted", reason)
		}
	}
	for _, d := range [][2]string{{"bob", "dan"}, {"carol", "alice"}, {"alice", "zoe"}, {"erin", "dan"}, {"frank", "otto"}} {
		if _, err := delegate(d[0], d[1], time.Hour, day); err != nil {
			t.Fatal(err)
		}
	}
	x := m.submit("alice", grant(0))
	try := func(who string) approval.Code {
		_, err := m.svc.Decide(t.Context(), m.actorOf(who), x.Number, 0, m.version(x.Number), true, "")
		return approval.CodeOf(err)
	}
	m.approve(x.Number, "carol")
	if got := try("dan"); got != approval.CodeNotFound {
		t.Errorf("the delegate sees a ticket before the delegation begins: %s", got)
	}
	m.now = m.now.Add(2 * time.Hour)
	if got := try("alice"); got != approval.CodeForbidden {
		t.Errorf("a delegation lets a requester decide their own request: %s", got)
	}
	if got := try("zoe"); got != approval.CodeNotFound {
		t.Errorf("nor does one from the requester: %s", got)
	}
	m.approve(x.Number, "dan")
	if s := m.get(x.Number).Items[0].Steps[1]; s.Votes[0].OnBehalfOf != "bob" || s.State != approval.StepApproved {
		t.Errorf("it is said for whom: %+v", s)
	}
	if got := try("dan"); got != approval.CodeForbidden {
		t.Errorf("for erin, too, would be two steps of one person: %s", got)
	}
	if got := try("otto"); got != approval.CodeForbidden {
		t.Errorf("an auditor decides through a delegation: %s", got)
	}
	m.now = m.now.Add(day)
	m.approve(x.Number, "erin")

	y := m.submit("alice", approval.Request{Items: []approval.RequestItem{{Application: "a", Resource: "high", Actions: []string{"x:write"}}}})
	m.approve(y.Number, "carol")
	if _, err := m.svc.Decide(t.Context(), m.actorOf("dan"), y.Number, 0, m.version(y.Number), true, ""); err == nil {
		t.Error("the delegate decides after the end of the delegation")
	}
	d, err := delegate("bob", "dan", 0, day)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.svc.EndDelegation(t.Context(), m.actorOf("zoe"), d.ID); approval.CodeOf(err) != approval.CodeNotFound {
		t.Errorf("not hers: %v", err)
	}
	if _, err := m.svc.EndDelegation(t.Context(), m.actorOf("bob"), d.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := m.svc.Decide(t.Context(), m.actorOf("dan"), y.Number, 0, m.version(y.Number), true, ""); err == nil {
		t.Error("nor after it was ended")
	}
	if mine, err := m.svc.Delegations(t.Context(), m.actorOf("dan"), true, approval.DelegationFilter{}); err != nil || len(mine) != 3 {
		t.Errorf("one sees one's own: %v, %v", mine, err)
	}
	if all, err := m.svc.Delegations(t.Context(), m.actorOf("otto"), true, approval.DelegationFilter{}); err != nil || len(all) != 6 {
		t.Errorf("an auditor sees all: %v, %v", all, err)
	}
}

// TestGrowth checks that lines that were not shown are not approved.
func TestGrowth(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", grant(0))
	m.approve(x.Number, "carol")
	m.host.Grow("allow port 22")
	got, err := m.svc.Decide(t.Context(), m.actorOf("bob"), x.Number, 0, m.version(x.Number), true, "")
	if approval.CodeOf(err) != approval.CodeStale {
		t.Fatalf("the error does not require another review: %v", err)
	}
	if it := got.Items[0]; it.Current() != 0 || len(it.Steps[0].Votes) != 0 {
		t.Errorf("everybody is asked again: %+v", it.Steps)
	}
	if e := got.Events[len(got.Events)-1]; e.Kind != approval.EventVoided || e.Comment != "allow port 22" {
		t.Errorf("the difference is shown: %+v", e)
	}
	m.approve(x.Number, "carol", "bob")
	m.host.Shrink()
	m.approve(x.Number, "erin")
	m.host.Grow("allow port 22")
	m.settle()
	m.is(x.Number, approval.StateEffective) // that line was approved

	y := m.submit("alice", approval.Request{Items: []approval.RequestItem{{Application: "a", Resource: "high", Actions: []string{"x:write"}}}})
	m.approve(y.Number, "carol", "bob", "erin")
	m.host.Grow("allow port 23")
	m.settle()
	m.is(y.Number, approval.StatePending)
}

func TestDecideManyAndItems(t *testing.T) {
	m := quiet(t)
	two := approval.Request{
		Items: []approval.RequestItem{
			{Application: "a", Resource: "high", Actions: []string{"x:read"}},
			{Application: "a", Resource: "low", Actions: []string{"x:read"}},
		},
	}
	x := m.submit("alice", two)
	twice := approval.Request{Items: []approval.RequestItem{two.Items[0], two.Items[0]}}
	if p, err := m.svc.Plan(
		t.Context(), m.actorOf("alice"), twice,
	); err != nil || approval.CodeOf(p.Items[1].Err) != approval.CodeInvalid || p.Items[0].Duplicate != x.Number {
		t.Errorf("the same twice: %+v, %v", p, err)
	}
	m.approve(x.Number, "carol") // both items wait for her
	if got := m.get(x.Number); got.Items[0].Current() != 1 || got.Items[1].Current() != 1 {
		t.Fatalf("one decision for both: %+v", got.Items)
	}
	results, err := m.svc.DecideMany(
		t.Context(),
		m.actorOf("bob"),
		[]approval.Choice{{Ticket: x.Number, Item: approval.EveryItem, Version: m.version(x.Number)}, {Ticket: 99, Item: 0, Version: 1}},
		true,
		"",
	)
	if err != nil || results[0].Err != nil || approval.CodeOf(results[1].Err) != approval.CodeNotFound {
		t.Fatalf("each is a decision of its own: %+v, %v", results, err)
	}
	got := m.get(x.Number)
	if got.Items[0].State != approval.StatePending || got.Items[1].State != approval.StateApproved || got.State() != approval.StatePending {
		t.Errorf("each item has a state of its own: %s, %s", got.Items[0].State, got.Items[1].State)
	}
	if _, err := m.svc.Withdraw(t.Context(), m.actorOf("alice"), x.Number, "no need"); err != nil {
		t.Fatal(err)
	}
	m.settle()
	got = m.get(x.Number)
	if got.Items[0].State != approval.StateWithdrawn || got.Items[1].State != approval.StateEffective {
		t.Errorf("what waits is withdrawn, what was approved is not: %s, %s", got.Items[0].State, got.Items[1].State)
	}
	if _, err := m.svc.Revoke(t.Context(), m.actorOf("bob"), x.Number, 0, "r"); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("there is nothing to revoke of the first: %v", err)
	}
}

func TestComments(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", grant(0))
	for who, code := range map[string]approval.Code{"bob": "", "alice": "", "otto": approval.CodeForbidden, "zoe": approval.CodeNotFound} {
		if _, err := m.svc.Comment(t.Context(), m.actorOf(who), x.Number, " hello "); approval.CodeOf(err) != code {
			t.Errorf("%s: %v", who, err)
		}
	}
	if _, err := m.svc.Comment(t.Context(), m.actorOf("bob"), x.Number, strings.Repeat("x", approval.MaxText+1)); approval.CodeOf(err) != approval.CodeInvalid {
		t.Errorf("too long: %v", err)
	}
}

// TestCommentsAreBounded checks that a ticket takes no more than MaxComments comments, of all people together, because every reader of the ticket
// reads them.
func TestCommentsAreBounded(t *testing.T) {
	m := quiet(t)
	x := m.submit("alice", grant(0))
	for i := range approval.MaxComments {
		if _, err := m.svc.Comment(t.Context(), m.actorOf("alice"), x.Number, "more"); err != nil {
			t.Fatalf("comment %d: %v", i+1, err)
		}
	}
	for _, who := range []string{"alice", "bob"} {
		if _, err := m.svc.Comment(t.Context(), m.actorOf(who), x.Number, "and more"); approval.CodeOf(err) != approval.CodeConflict {
			t.Errorf("%s: %v", who, err)
		}
	}
	m.approve(x.Number, "carol") // what else happens to the ticket is still recorded
}

// cancelingHost cancels a context while it compiles the first item.
type cancelingHost struct {
	approval.Host
	cancel   func()
	compiled int
}

func (h *cancelingHost) Compiled(it approval.Item) ([]string, error) {
	h.compiled++
	h.cancel()
	return h.Host.Compiled(it)
}

// TestPlanEndsWithItsCaller checks that the items of a request are not compiled any more when the caller has disconnected.
func TestPlanEndsWithItsCaller(t *testing.T) {
	m := quiet(t)
	ctx, cancel := context.WithCancel(t.Context())
	h := &cancelingHost{Host: m.svc.Host, cancel: cancel}
	m.svc.Host = h
	r := grant(0)
	r.Items = append(r.Items, r.Items[0])
	r.Items[1].Resource = "low"
	if _, err := m.svc.Plan(ctx, m.actorOf("alice"), r); !errors.Is(err, context.Canceled) || h.compiled != 1 {
		t.Errorf("%d items were compiled: %v", h.compiled, err)
	}
}
