package approval_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// daily lets an owner's application in for a day without asking anybody.
func daily(limit time.Duration) *v1alpha1.ApprovalPolicy {
	s := asked("owner", "resource.owner")
	s.AutoApprove = `request.duration > duration("0s") && request.duration <= duration("24h")`
	p := policyOf("daily", 1, "", s)
	if limit > 0 {
		p.Spec.MaxDuration = &metav1.Duration{Duration: limit}
	}
	return p
}

const day = 24 * time.Hour

// A condition approves a day automatically, and the requester repeats the request every day: the total lasts no longer than the policy allows.
func TestExtensionsCountFromTheFirstGrant(t *testing.T) {
	m := quiet(t, daily(48*time.Hour))
	first := m.submit("alice", grant(day))
	m.settle()
	m.is(first.Number, approval.StateEffective)
	began := m.get(first.Number).Items[0].GrantedAt
	var end time.Time
	for range 60 {
		m.now = m.now.Add(23 * time.Hour)
		if m.now.Sub(began) >= 48*time.Hour {
			break
		}
		for _, d := range []time.Duration{day, 12 * time.Hour, 2 * time.Hour, time.Hour, 30 * time.Minute} {
			r := grant(d)
			r.Reason = "more"
			x, err := m.svc.Submit(t.Context(), m.actorOf("alice"), r)
			if err != nil {
				if approval.CodeOf(err) != approval.CodeInvalid || !strings.Contains(err.Error(), "from the first grant on") {
					t.Errorf("%s: %v", d, err)
				}
				continue
			}
			m.settle()
			end = m.get(x.Number).Items[0].ExpiresAt
			break
		}
	}
	if end.IsZero() || end.Sub(began) > 48*time.Hour {
		t.Errorf("maxDuration is 48h, and the access lasts %s", end.Sub(began))
	}
}

// Other actions of the same grant are no way around it.
func TestOtherActionsDoNotBeginAnew(t *testing.T) {
	m := quiet(t, daily(30*time.Hour))
	m.submit("alice", grant(day))
	m.settle()
	m.now = m.now.Add(20 * time.Hour)
	r := grant(day)
	r.Items[0].Actions = []string{"x:read", "x:write"}
	if p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), r); err != nil || approval.CodeOf(p.Items[0].Err) != approval.CodeInvalid {
		t.Errorf("x:read would last 44 h of 30: %+v, %v", p, err)
	}
}

// An extension that waits for people ends when the policy says, not later by as long as they took.
func TestSlowApprovalsDoNotPassTheCap(t *testing.T) {
	p := policyOf("p", 1, "", asked("owner", "resource.owner"))
	p.Spec.MaxDuration = &metav1.Duration{Duration: 48 * time.Hour}
	m := quiet(t, p)
	n := m.submit("alice", grant(40*time.Hour)).Number
	m.approve(n, "bob")
	m.settle()
	began := m.get(n).Items[0].GrantedAt
	m.now = m.now.Add(20 * time.Hour)
	x := m.submit("alice", grant(28*time.Hour))
	m.now = m.now.Add(10 * time.Hour)
	m.approve(x.Number, "bob")
	if got := m.get(x.Number).Items[0].ExpiresAt.Sub(began); got > 48*time.Hour || got < 48*time.Hour-time.Second {
		t.Errorf("it ends %s after the first grant, want 48h", got)
	}
}

// A condition must not go on approving what no policy bounds.
func TestUnboundedExtensionsAreNotAutomatic(t *testing.T) {
	m := quiet(t, daily(0))
	m.submit("alice", grant(day))
	m.settle()
	m.now = m.now.Add(23 * time.Hour)
	if x := m.submit("alice", grant(day)); x.State() != approval.StatePending {
		t.Errorf("nobody was asked, and it is %s", x.State())
	}
}

// request.total is how long all of it lasts.
func TestTotalInConditions(t *testing.T) {
	security := asked("security", "group:security")
	security.Condition = `request.total > duration("30h")`
	m := quiet(t, policyOf("p", 1, "", asked("owner", "resource.owner"), security))
	n := m.submit("alice", grant(day)).Number
	if got := len(m.get(n).Items[0].Steps); got != 1 {
		t.Fatalf("a day needs the owner only: %d steps", got)
	}
	m.approve(n, "bob")
	m.settle()
	m.now = m.now.Add(20 * time.Hour)
	if x := m.submit("alice", grant(day)); len(x.Items[0].Steps) != 2 {
		t.Errorf("44 h in all need the security team: %+v", x.Items[0].Steps)
	}
}

// Break-glass is bounded whatever the policy says, and asking again does not make it longer.
func TestBreakGlassIsBounded(t *testing.T) {
	breakGlassPolicy := func(limit time.Duration) *v1alpha1.ApprovalPolicy {
		p := policyOf("glass", 1, "", asked("owner", "resource.owner"))
		p.Spec.BreakGlass = &v1alpha1.BreakGlass{
			People:      []string{"alice"},
			MaxDuration: metav1.Duration{Duration: limit},
			Reviewers:   []v1alpha1.Approver{"group:security"},
		}
		return p
	}
	ask := func(d time.Duration) approval.Request {
		r := grant(d)
		r.BreakGlass = true
		return r
	}
	m := quiet(t, breakGlassPolicy(1000*time.Hour))
	if p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), ask(25*time.Hour)); err != nil || approval.CodeOf(p.Items[0].Err) != approval.CodeInvalid {
		t.Errorf("25 h by break-glass: %+v, %v", p, err)
	}
	m = quiet(t, breakGlassPolicy(4*time.Hour))
	first := m.submit("alice", ask(3*time.Hour))
	m.settle()
	m.is(first.Number, approval.StateEffective)
	m.now = m.now.Add(2 * time.Hour)
	if p, err := m.svc.Plan(
		t.Context(), m.actorOf("alice"), ask(4*time.Hour),
	); err != nil || approval.CodeOf(p.Items[0].Err) != approval.CodeInvalid || !strings.Contains(p.Items[0].Err.Error(), "at most 2h") {
		t.Errorf("6 h in all: %+v, %v", p, err)
	}
	m.submit("alice", ask(2*time.Hour))
}

// Approval policies see what a change does in the members, not only its base mode.
func TestPoliciesSeeTheModesInEffect(t *testing.T) {
	opens := policyOf("opens", 1, "request.opens", asked("opens", "group:security"))
	closes := policyOf("closes", 2, "request.closes", asked("closes", "group:security"))
	weak := policyOf("weak", 1, `request.toMode != "Enforce"`, asked("weak", "group:security"))
	enforced := policyOf("enforced", 2, `request.fromMode == "Enforce"`, asked("enforced", "group:security"))
	rest := policyOf("rest", 9, "", asked("rest", "group:security"))
	in := func(m1, m2 v1alpha1.Mode) map[string]v1alpha1.Mode {
		return map[string]v1alpha1.Mode{"m1": m1, "m2": m2}
	}
	const observe, audit, enforce = v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce
	for name, tc := range map[string]struct {
		reason   string
		policies []*v1alpha1.ApprovalPolicy
		from, to approval.RequestItem
		members  []string
		want     string
	}{
		"opened in all members": {
			"the mode stays Enforce", []*v1alpha1.ApprovalPolicy{weak, rest}, approval.RequestItem{Mode: enforce},
			approval.RequestItem{Mode: enforce, ClusterModes: in(observe, observe)}, nil, "weak",
		},
		"opened in one": {
			"the others stay closed", []*v1alpha1.ApprovalPolicy{opens, rest}, approval.RequestItem{Mode: enforce},
			approval.RequestItem{Mode: enforce, ClusterModes: map[string]v1alpha1.Mode{"m1": audit}}, nil, "opens",
		},
		"closed in one": {
			"the mode stays Audit", []*v1alpha1.ApprovalPolicy{opens, closes, rest}, approval.RequestItem{Mode: audit},
			approval.RequestItem{Mode: audit, ClusterModes: map[string]v1alpha1.Mode{"m1": enforce}}, nil, "closes",
		},
		"neither": {
			"another member is named, nothing changes", []*v1alpha1.ApprovalPolicy{opens, closes, rest}, approval.RequestItem{Mode: audit},
			approval.RequestItem{Mode: audit, ClusterModes: map[string]v1alpha1.Mode{"m1": audit}}, nil, "rest",
		},
		"a member that there is not": {
			"it is placed in m1 and m2, which enforce", []*v1alpha1.ApprovalPolicy{weak, rest}, approval.RequestItem{Mode: audit},
			approval.RequestItem{Mode: enforce, ClusterModes: map[string]v1alpha1.Mode{"gone": observe}}, []string{"m1", "m2"}, "rest",
		},
		"every member has its own": {
			"no member has the base mode", []*v1alpha1.ApprovalPolicy{weak, rest}, approval.RequestItem{Mode: audit},
			approval.RequestItem{Mode: observe, ClusterModes: in(enforce, enforce)}, []string{"m1", "m2"}, "rest",
		},
		"from the strictest that is": {
			"one member enforces", []*v1alpha1.ApprovalPolicy{enforced, rest},
			approval.RequestItem{Mode: audit, ClusterModes: map[string]v1alpha1.Mode{"m1": enforce}},
			approval.RequestItem{Mode: observe, ClusterModes: map[string]v1alpha1.Mode{}}, nil, "enforced",
		},
		"opening and closing: opening": {
			"both are seen", []*v1alpha1.ApprovalPolicy{opens, closes, rest},
			approval.RequestItem{Mode: audit, ClusterModes: in(enforce, audit)},
			approval.RequestItem{Mode: audit, ClusterModes: in(audit, enforce)}, nil, "opens",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t)
			ask := func(kind approval.Kind, r approval.RequestItem) approval.Request {
				r.Resource = "low"
				return approval.Request{Kind: kind, Items: []approval.RequestItem{r}}
			}
			x := m.submit("erin", ask(approval.KindOnboard, tc.from))
			m.approve(x.Number, "bob")
			m.settle()
			m.host.Policies = tc.policies
			m.host.About = map[string]approval.Facts{"trnv1:rsc:o:redis:clusters:low": {Class: "class", Members: tc.members}}
			p, err := m.svc.Plan(t.Context(), m.actorOf("bob"), ask(approval.KindMode, tc.to))
			if err != nil || p.Items[0].Err != nil {
				t.Fatal(err, p.Items[0].Err)
			}
			if got := p.Items[0].Approval; got != tc.want {
				t.Errorf("%s: the policy %s counts, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// A grant that is extended twice counts from the first grant, also for tickets from before that was recorded.
func TestOldExtensionsAreFollowedToTheFirstGrant(t *testing.T) {
	p := policyOf("p", 1, "", asked("owner", "resource.owner"))
	p.Spec.MaxDuration = &metav1.Duration{Duration: 100 * time.Hour}
	m := quiet(t, p)
	var numbers []int64
	for range 3 {
		x := m.submit("alice", grant(30*time.Hour))
		m.approve(x.Number, "bob")
		m.settle()
		numbers = append(numbers, x.Number)
		m.now = m.now.Add(25 * time.Hour)
	}
	slices.Reverse(numbers)
	for _, n := range numbers[:2] {
		if _, err := m.svc.Apply(t.Context(), n, func(x *approval.Ticket) error {
			x.Items[0].Earlier, x.Items[0].GrantedAt = approval.Earlier{}, time.Time{}
			return x.Comment("bob", "as it was stored", m.now)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), grant(30*time.Hour)); err != nil || approval.CodeOf(p.Items[0].Err) != approval.CodeInvalid {
		t.Errorf("105 h of 100: %+v, %v", p.Items[0].Item, err)
	}
	if _, err := m.svc.Plan(t.Context(), m.actorOf("alice"), grant(20*time.Hour)); err != nil {
		t.Error(err)
	}
}
