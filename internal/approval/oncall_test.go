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
	"github.com/acp-io/acp/internal/message"
)

// onCallStep is a step of the team's members (bob, carol and dan, without the requester alice) who are on call.
func onCallStep(fallback v1alpha1.LimitFallback) v1alpha1.ApprovalStep {
	s := asked("team", "group:team")
	s.LimitTo, s.LimitFallback = `onCall("shop", 2)`, fallback
	return s
}

func shift(people ...string) approval.Duty { return approval.Duty{Known: true, People: people} }

// TestOnCallLimitsApprovers: whatever the source of a schedule says, only approvers of the step decide.
func TestOnCallLimitsApprovers(t *testing.T) {
	unknown := approval.Duty{Reason: message.OnCallNoAnswer("shop")}
	forged := approval.Duty{People: []string{"bob"}, Reason: message.OnCallNoAnswer("shop")} // people of an answer that is not known
	for name, tc := range map[string]struct {
		reason   string
		fallback v1alpha1.LimitFallback
		duty     approval.Duty
		may      []string
		says     string // to dan, if dan may not
	}{
		"on call":              {"only who is on call", "", shift("bob"), []string{"bob"}, "you are not on call now"},
		"two":                  {"any of them", "", shift("bob", "dan"), []string{"bob", "dan"}, ""},
		"strangers":            {"a forged schedule names no approvers", "", shift("erin", "zoe", "otto", "nobody"), nil, "Nobody who is on call"},
		"beside strangers":     {"they are not added", "", shift("bob", "erin", "zoe"), []string{"bob"}, "you are not on call now"},
		"requester":            {"requesters never decide their own requests", "", shift("alice"), nil, "Nobody who is on call"},
		"requester, fallback":  {"but another approver may", v1alpha1.LimitApprovers, shift("alice"), []string{"bob", "carol", "dan"}, ""},
		"strangers, fallback":  {"every approver, nobody else", v1alpha1.LimitApprovers, shift("erin"), []string{"bob", "carol", "dan"}, ""},
		"no answer":            {"the step waits", v1alpha1.LimitWait, unknown, nil, "its source does not answer"},
		"no answer, fallback":  {"every approver", v1alpha1.LimitApprovers, unknown, []string{"bob", "carol", "dan"}, ""},
		"not known, but named": {"an answer that does not count names nobody", "", forged, nil, "its source does not answer"},
		"unlisted":             {"people whom the catalog does not have", "", approval.Duty{Known: true, Unlisted: 1}, nil, "The catalog does not contain"},
		"empty":                {"nobody is on call", "", shift(), nil, "Nobody who is on call"},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t, policyOf("p", 1, "", onCallStep(tc.fallback)))
			m.onCall = tc.duty
			x := m.submit("alice", grant(0))
			if d := cmp.Diff([]string{"bob", "carol", "dan"}, x.Items[0].Steps[0].Approvers); d != "" {
				t.Errorf("%s: the approvers by the rule: %s", tc.reason, d)
			}
			var may []string
			for _, p := range modelPeople {
				a, err := m.svc.Actor(t.Context(), m.actorOf(p))
				if err != nil {
					t.Fatal(err)
				}
				can := approval.MayDo(m.catalog, a, m.get(x.Number))
				if can.Approve != can.Reject {
					t.Errorf("%s: %s may approve %v, reject %v", tc.reason, p, can.Approve, can.Reject)
				}
				if can.Approve {
					may = append(may, p)
					continue
				}
				for _, approve := range []bool{true, false} {
					_, err = m.svc.Decide(t.Context(), m.actorOf(p), x.Number, 0, m.version(x.Number), approve, "no")
					if err == nil {
						t.Errorf("%s: %s decided", tc.reason, p)
					}
					if p == "dan" && tc.says != "" && (approval.CodeOf(err) != approval.CodeForbidden || !strings.Contains(err.Error(), tc.says)) {
						t.Errorf("%s: dan is told %v", tc.reason, err)
					}
				}
			}
			if d := cmp.Diff(tc.may, may); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
			m.now = m.now.Add(1000 * time.Hour)
			m.settle()
			m.is(x.Number, approval.StatePending) // time decides nothing
			if len(tc.may) > 0 {
				m.approve(x.Number, tc.may[0])
				m.is(x.Number, approval.StateApproved)
			}
		})
	}
}

// TestOnCallWithoutSource: a policy that limits a step is not weaker in an installation without schedules.
func TestOnCallWithoutSource(t *testing.T) {
	m := quiet(t, policyOf("p", 1, "", onCallStep("")))
	m.svc.OnCall = nil
	x := m.submit("alice", grant(0))
	_, err := m.svc.Decide(t.Context(), m.actorOf("bob"), x.Number, 0, m.version(x.Number), true, "")
	if approval.CodeOf(err) != approval.CodeForbidden || !strings.Contains(err.Error(), "No on-call schedule shop is configured") {
		t.Errorf("got %v", err)
	}
}

// TestOnCallIsOfTheDecision: who is on call counts when they decide, and a delegate decides for them.
func TestOnCallIsOfTheDecision(t *testing.T) {
	m := quiet(t, policyOf("p", 1, "", onCallStep("")))
	m.onCall = shift("bob")
	x := m.submit("alice", grant(0))
	for _, d := range [][2]string{{"bob", "zoe"}, {"bob", "alice"}, {"dan", "erin"}} {
		if _, err := m.svc.Delegate(t.Context(), m.actorOf(d[0]), d[1], m.now, m.now.Add(24*time.Hour), "away"); err != nil {
			t.Fatal(err)
		}
	}
	decide := func(who string) error {
		_, err := m.svc.Decide(t.Context(), m.actorOf(who), x.Number, 0, m.version(x.Number), true, "")
		return err
	}
	if decide("alice") == nil {
		t.Error("the requester decided for the person on call")
	}
	if decide("erin") == nil {
		t.Error("the delegate of a person who is not on call decided")
	}
	m.onCall = shift("dan")
	if decide("zoe") == nil {
		t.Error("the delegate of a person who is not on call any more decided")
	}
	if err := decide("erin"); err != nil {
		t.Errorf("the delegate of the person on call: %v", err)
	}
	if v := m.get(x.Number).Items[0].Steps[0].Votes; len(v) != 1 || v[0].OnBehalfOf != "dan" {
		t.Errorf("votes %+v", v)
	}
}

// TestOnCallEscalation: an escalation adds the people whom the policy names, also while nobody is known to be on call.
func TestOnCallEscalation(t *testing.T) {
	s := onCallStep("")
	s.Timeout = &v1alpha1.StepTimeout{
		After:      metav1.Duration{Duration: time.Hour},
		Action:     v1alpha1.TimeoutEscalate,
		EscalateTo: []v1alpha1.Approver{"person:zoe"},
	}
	m := quiet(t, policyOf("p", 1, "", s))
	m.onCall = approval.Duty{Reason: message.OnCallNoAnswer("shop")}
	x := m.submit("alice", grant(0))
	m.now = m.now.Add(2 * time.Hour)
	m.settle()
	if _, err := m.svc.Decide(t.Context(), m.actorOf("bob"), x.Number, 0, m.version(x.Number), true, ""); err == nil {
		t.Error("bob is not on call")
	}
	m.approve(x.Number, "zoe")
}

// TestOnCallIsRequiredLater: a policy that begins to limit a step also limits the tickets that wait.
func TestOnCallIsRequiredLater(t *testing.T) {
	p := policyOf("p", 1, "", asked("team", "group:team"))
	m := quiet(t, p)
	x := m.submit("alice", grant(0))
	m.onCall = shift("bob")
	m.host.Policies = []*v1alpha1.ApprovalPolicy{policyOf("p", 1, "", onCallStep(""))}
	if _, err := m.svc.Decide(t.Context(), m.actorOf("dan"), x.Number, 0, m.version(x.Number), true, ""); approval.CodeOf(err) != approval.CodeStale {
		t.Errorf("the chain is not computed again: %v", err)
	}
	if _, err := m.svc.Decide(t.Context(), m.actorOf("dan"), x.Number, 0, m.version(x.Number), true, ""); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("dan is not on call: %v", err)
	}
	m.approve(x.Number, "bob")
}

// TestOnCallDoesNotLockPolicies: a schedule that cannot be read does not prevent the security team from correcting the policy.
func TestOnCallDoesNotLockPolicies(t *testing.T) {
	s := asked("security", "group:security")
	s.LimitTo = `onCall("shop", 1)`
	m := quiet(t, policyOf("p", 1, "", s))
	m.onCall = approval.Duty{Reason: message.OnCallNoAnswer("shop")}
	spec := []byte(`{"priority":1,"steps":[{"name":"s","approvers":["group:security"]}]}`)
	x := m.submit("erin", approval.Request{Kind: approval.KindApprovalPolicy, Items: []approval.RequestItem{{Object: &approval.ObjectChange{
		Kind: approval.ObjectApprovalPolicy, Name: "new", Verb: approval.VerbCreate, Spec: spec}}}})
	if _, err := m.svc.Decide(t.Context(), m.actorOf("bob"), x.Number, 0, m.version(x.Number), true, ""); err == nil {
		t.Error("bob is not of the security team")
	}
	m.approve(x.Number, "frank")
}

// TestBuiltinTimeouts: the built-in chain reminds and escalates, and a timeout gives no decision to people beyond its rule.
func TestBuiltinTimeouts(t *testing.T) {
	hour := time.Hour
	for name, tc := range map[string]struct {
		reason   string
		builtin  approval.BuiltinTimeout
		after    time.Duration
		want     approval.State
		reminded int
		may      []string
	}{
		"none": {"a step waits", approval.BuiltinTimeout{}, 1000 * hour, approval.StatePending, 0, []string{"carol"}},
		"reminded": {
			"after 10 hours, and then after 20", approval.BuiltinTimeout{RemindEvery: 10 * hour}, 35 * hour, approval.StatePending, 2,
			[]string{"carol"},
		},
		"escalated": {
			"the next leader up", approval.BuiltinTimeout{RemindEvery: 10 * hour, After: 15 * hour, Action: v1alpha1.TimeoutEscalate}, 16 * hour,
			approval.StatePending, 1, []string{"carol", "zoe"},
		},
		"denied":  {"timed out", approval.BuiltinTimeout{After: 15 * hour, Action: v1alpha1.TimeoutDeny}, 16 * hour, approval.StateTimedOut, 0, nil},
		"not yet": {"in time", approval.BuiltinTimeout{After: 15 * hour, Action: v1alpha1.TimeoutDeny}, 14 * hour, approval.StatePending, 0, []string{"carol"}},
		"action only": {
			"the action reminds", approval.BuiltinTimeout{After: 15 * hour, Action: v1alpha1.TimeoutRemind}, 46 * hour,
			approval.StatePending, 2, []string{"carol"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t)
			m.svc.Builtin = tc.builtin
			x := m.submit("alice", grant(0))
			for passed := time.Duration(0); passed < tc.after; passed += hour {
				m.now = m.now.Add(hour)
				if err := m.svc.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			m.is(x.Number, tc.want)
			got, reminded := m.get(x.Number), 0
			for _, e := range got.Events {
				if e.Kind == approval.EventReminded {
					reminded++
				}
			}
			if reminded != tc.reminded {
				t.Errorf("%s: reminded %d times, want %d", tc.reason, reminded, tc.reminded)
			}
			var may []string
			for _, p := range modelPeople {
				if approval.MayDo(m.catalog, m.actorOf(p), got).Approve {
					may = append(may, p)
				}
			}
			if d := cmp.Diff(tc.may, may); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
		})
	}
}

// TestBuiltinTimeoutsOfEveryKind: an escalation of the built-in chain names only leaders, and a revocation is never denied.
func TestBuiltinTimeoutsOfEveryKind(t *testing.T) {
	m := quiet(t)
	m.svc.Builtin = approval.BuiltinTimeout{After: time.Hour, Action: v1alpha1.TimeoutEscalate}
	p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), grant(0))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]v1alpha1.TimeoutAction{"leader": v1alpha1.TimeoutEscalate, "owner": v1alpha1.TimeoutRemind, "security": v1alpha1.TimeoutRemind}
	for _, s := range p.Items[0].Steps {
		if s.OnTimeout != want[s.Name] || s.Timeout != time.Hour || s.Name == "leader" != slices.Equal(s.EscalateTo, []string{"zoe"}) {
			t.Errorf("%s: %s after %s to %v", s.Name, s.OnTimeout, s.Timeout, s.EscalateTo)
		}
	}
	m.svc.Builtin = approval.BuiltinTimeout{}
	x := m.submit("alice", grant(0))
	m.approve(x.Number, "carol", "bob", "erin")
	m.settle()
	m.svc.Builtin = approval.BuiltinTimeout{After: time.Hour, Action: v1alpha1.TimeoutDeny}
	r := m.submit("carol", approval.Request{Kind: approval.KindRevoke, Items: []approval.RequestItem{{Target: &approval.Target{Ticket: x.Number}}}})
	m.now = m.now.Add(100 * time.Hour)
	m.settle()
	m.is(r.Number, approval.StatePending)
}

func TestBuiltinTimeoutIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		b  approval.BuiltinTimeout
		ok bool
	}{
		"none":      {approval.BuiltinTimeout{}, true},
		"all":       {approval.BuiltinTimeout{RemindEvery: time.Hour, After: time.Hour, Action: v1alpha1.TimeoutDeny}, true},
		"no action": {approval.BuiltinTimeout{After: time.Hour}, false},
		"unknown":   {approval.BuiltinTimeout{Action: "Approve"}, false},
		"short":     {approval.BuiltinTimeout{RemindEvery: time.Second, Action: v1alpha1.TimeoutRemind}, false},
		"negative":  {approval.BuiltinTimeout{After: -time.Hour, Action: v1alpha1.TimeoutRemind}, false},
	} {
		if err := tc.b.Validate(); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRemindersOfPolicies: remindEvery reminds before and after the escalation, with which the intervals begin again.
func TestRemindersOfPolicies(t *testing.T) {
	s := asked("team", "group:team")
	s.Timeout = &v1alpha1.StepTimeout{After: metav1.Duration{Duration: 5 * time.Hour}, Action: v1alpha1.TimeoutEscalate,
		EscalateTo: []v1alpha1.Approver{"group:security"}, RemindEvery: &metav1.Duration{Duration: 2 * time.Hour}}
	m := quiet(t, policyOf("p", 1, "", s))
	x := m.submit("alice", grant(0))
	var got []string
	for hour := range 10 {
		m.now = m.now.Add(time.Hour)
		before := len(m.get(x.Number).Events)
		if err := m.svc.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, e := range m.get(x.Number).Events[before:] {
			got = append(got, string(e.Kind)+"@"+string(rune('1'+hour)))
		}
	}
	if d := cmp.Diff([]string{"reminded@2", "escalated@5", "reminded@7"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	m.approve(x.Number, "dan")
	m.now = m.now.Add(100 * time.Hour)
	if err := m.svc.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := m.get(x.Number).Events; e[len(e)-1].Kind == approval.EventReminded {
		t.Error("the approvers of a decided step are reminded")
	}
}
