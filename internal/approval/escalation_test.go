package approval_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

func escalatingTo(s v1alpha1.ApprovalStep, who ...v1alpha1.Approver) v1alpha1.ApprovalStep {
	s.Timeout = &v1alpha1.StepTimeout{After: metav1.Duration{Duration: time.Hour}, Action: v1alpha1.TimeoutEscalate, EscalateTo: who}
	return s
}

// TestEscalationShowsTheTicketLater: a request and the other clients of its resource are no concern of the people to whom a step may be
// escalated, nor of their delegates, before the escalation.
func TestEscalationShowsTheTicketLater(t *testing.T) {
	m := quiet(t, policyOf("p", 1, "", escalatingTo(asked("team", "group:team"), "person:zoe")))
	x := m.submit("alice", grant(0))
	if _, err := m.svc.Delegate(t.Context(), m.actorOf("zoe"), "frank", m.now, m.now.Add(24*time.Hour), "away"); err != nil {
		t.Fatal(err)
	}
	delegate := approval.Actor{ID: "frank", StandsFor: []string{"zoe"}} // without the roles of the security team
	for _, after := range []bool{false, true} {
		if after {
			m.now = m.now.Add(2 * time.Hour)
			m.settle()
		}
		for _, a := range []approval.Actor{m.actorOf("zoe"), delegate} {
			x = m.get(x.Number)
			if may := approval.MayDo(m.catalog, a, x); may.See != after || may.Comment != after {
				t.Errorf("%s, escalated %v: %+v", a.ID, after, may)
			}
			if approval.DecidesItem(a, x, 0) != after {
				t.Errorf("%s, escalated %v: decides %v", a.ID, after, !after)
			}
		}
	}
	m.approve(x.Number, "zoe")
}

// TestVoidEndsTheEscalation: the escalation was of the smaller request. The larger one waits for its approvers first, and only for them.
func TestVoidEndsTheEscalation(t *testing.T) {
	// carol is an approver of the step in any case.
	m := quiet(t, policyOf("p", 1, "", escalatingTo(onCallStep(""), "person:zoe", "person:carol")))
	m.onCall = shift("bob")
	x := m.submit("alice", grant(0))
	escalate := func() {
		t.Helper()
		m.now = m.now.Add(2 * time.Hour)
		m.settle()
		if s := m.get(x.Number).Items[0].Steps[0]; !s.Escalated || !slices.Contains(s.Approvers, "zoe") {
			t.Fatalf("not escalated: %+v", s)
		}
	}
	decide := func(who string) error {
		_, err := m.svc.Decide(t.Context(), m.actorOf(who), x.Number, 0, m.version(x.Number), true, "")
		return err
	}
	escalate()
	m.host.Grow("tcp:6380")
	if err := decide("bob"); approval.CodeOf(err) != approval.CodeStale {
		t.Fatalf("the request grants more: %v", err)
	}
	s := m.get(x.Number).Items[0].Steps[0]
	if d := cmp.Diff([]string{"bob", "carol", "dan"}, s.Approvers); s.Escalated || d != "" || s.Deadline.IsZero() {
		t.Errorf("the step is not as at its beginning: %+v", s)
	}
	for _, who := range []string{"zoe", "carol"} {
		if decide(who) == nil {
			t.Fatalf("%s decides the larger request by the escalation of the smaller one", who)
		}
	}
	escalate()
	if err := decide("carol"); err != nil {
		t.Errorf("after its own escalation: %v", err)
	}
}

// TestSecurityInPlaceOfOwners: the schedule of the owners says nothing about the security team, so it does not limit the team.
func TestSecurityInPlaceOfOwners(t *testing.T) {
	owner := asked("owner", "resource.owner")
	owner.LimitTo = `onCall("shop", 1)`
	m := quiet(t, policyOf("p", 1, "", owner))
	m.onCall = shift("bob")
	x := m.submit("bob", approval.Request{Items: []approval.RequestItem{{Application: "b", Resource: "high", Actions: []string{"x:read"}}}})
	if d := cmp.Diff([]string{"erin", "frank"}, x.Items[0].Steps[0].Approvers); d != "" {
		t.Fatal(d)
	}
	m.approve(x.Number, "erin")
	m.is(x.Number, approval.StateApproved)
	// The owners themselves are limited.
	x = m.submit("alice", grant(0))
	m.onCall = shift("carol")
	if _, err := m.svc.Decide(t.Context(), m.actorOf("bob"), x.Number, 0, m.version(x.Number), true, ""); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("bob is not on call: %v", err)
	}
}

// TestSecurityInPlaceOfReachedOwners is TestSecurityInPlaceOfOwners for the owners of the resources that a registration reaches.
func TestSecurityInPlaceOfReachedOwners(t *testing.T) {
	owner := asked("owner", "resource.owner")
	owner.LimitTo = `onCall("shop", 1)`
	m := quiet(t, policyOf("p", 1, "", owner, asked("bob", "person:bob")))
	m.onCall = shift("bob")
	m.reaches(nameHigh)
	x := m.submit("alice", registers("vm", "192.0.2.0/24"))
	if s := x.Items[0].Steps[0]; !slices.Equal(s.Approvers, []string{"erin", "frank"}) || !s.OnCall.Approvers {
		t.Fatalf("bob is needed in the other step: %+v", s)
	}
	m.approve(x.Number, "erin")
}

// TestOnCallDoesNotLockPoliciesOfOthers: a limited step of anybody does not prevent the correction of approval policies.
func TestOnCallDoesNotLockPoliciesOfOthers(t *testing.T) {
	m := quiet(t, policyOf("p", 1, "", onCallStep("")))
	m.svc.OnCall = nil
	spec := []byte(`{"priority":1,"steps":[{"name":"s","approvers":["group:security"]}]}`)
	x := m.submit("erin", approval.Request{Kind: approval.KindApprovalPolicy, Items: []approval.RequestItem{{Object: &approval.ObjectChange{
		Kind: approval.ObjectApprovalPolicy, Name: "new", Verb: approval.VerbCreate, Spec: spec}}}})
	m.approve(x.Number, "dan", "frank")
	m.is(x.Number, approval.StateApproved)
}

// TestLimitedStepsHaveReminders checks that a step that is limited to people on call has reminders also without a timeout:
// they notify the person who is on call next.
func TestLimitedStepsHaveReminders(t *testing.T) {
	own := escalatingTo(onCallStep(""), "person:zoe")
	own.Timeout.RemindEvery = &metav1.Duration{Duration: 2 * time.Hour}
	reminding := onCallStep("")
	reminding.Timeout = &v1alpha1.StepTimeout{After: metav1.Duration{Duration: time.Hour}, Action: v1alpha1.TimeoutRemind}
	for name, tc := range map[string]struct {
		step v1alpha1.ApprovalStep
		want time.Duration
	}{
		"no timeout":                {onCallStep(""), 24 * time.Hour},
		"a timeout without":         {escalatingTo(onCallStep(""), "person:zoe"), 24 * time.Hour},
		"its own":                   {own, 2 * time.Hour},
		"the timeout reminds":       {reminding, 0},
		"no limit":                  {asked("team", "group:team"), 0},
		"a limit of reached owners": {byOwner(onCallStep("")), 24 * time.Hour},
	} {
		m := quiet(t, policyOf("p", 1, "", tc.step))
		ask := grant(0)
		if strings.HasPrefix(name, "a limit of reached") {
			m.reaches(nameLow)
			ask = registers("vm", "192.0.2.0/24")
		}
		if s := m.submit("alice", ask).Items[0].Steps[0]; s.Remind != tc.want {
			t.Errorf("%s: reminders every %s, want %s", name, s.Remind, tc.want)
		}
	}
}

func byOwner(s v1alpha1.ApprovalStep) v1alpha1.ApprovalStep {
	s.Approvers = []v1alpha1.Approver{"resource.owner"}
	return s
}
