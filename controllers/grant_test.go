package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/acp-io/acp/api/v1alpha1"
)

var bothRealized = map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberRealized}

// enforced creates a scenario with an enforced resource and one grant, and waits until both members are realized.
func enforced(t *testing.T, service string) *scenario {
	t.Helper()
	return enforcedOn(t, shared, service)
}

func enforcedOn(t *testing.T, f *fleet, service string) *scenario {
	t.Helper()
	s := newScenario(t, f, service)
	s.protect(v1alpha1.ModeEnforce)
	s.grant(s.statement("one", "888"))
	s.untilPlaced("m1", "m2")
	s.until("the grant is in the unit", func() string { return s.unitHas("one") })
	s.pushUntilStates("both members are realized", bothRealized)
	return s
}

func (s *scenario) untilPlaced(want ...string) {
	s.Helper()
	s.until("placement", func() string {
		_, o := s.federated()
		if o == nil {
			return "no federated object"
		}
		if !slices.Equal(o.Placement, want) {
			return fmt.Sprintf("placed in %v, want %v", o.Placement, want)
		}
		return ""
	})
}

// unitHas returns "" if the policy's status is of its current generation and lists exactly these sids of the unit, and otherwise the problem.
func (s *scenario) unitHas(sids ...string) string {
	p := s.policy()
	if p.Status.ObservedGeneration != p.Generation {
		return fmt.Sprintf("status is about generation %d of %d", p.Status.ObservedGeneration, p.Generation)
	}
	if len(p.Status.Units) != 1 {
		return fmt.Sprintf("units %v", p.Status.Units)
	}
	if got := p.Status.Units[0].SIDs; !slices.Equal(got, sids) {
		return fmt.Sprintf("sids %v, want %v", got, sids)
	}
	return ""
}

func TestGrantIsRealizedOnlyWhenReadBack(t *testing.T) {
	s := newScenario(t, shared, "grants")
	s.protect(v1alpha1.ModeEnforce)
	s.grant(s.statement("one", "888"))
	s.untilPlaced("m1", "m2")
	s.until("the grant is reported", func() string { return s.unitHas("one") })

	u, _ := s.federated()
	if got := u.GetFinalizers(); !slices.Equal(got, []string{"kubefed.io/sync-controller"}) {
		t.Errorf("the object was created with the finalizers %v; KubeFed would need another write to add its own", got)
	}
	if selector, has, _ := unstructuredField(u, "spec", "placement", "clusterSelector"); has {
		t.Errorf("the placement has a selector %v beside its clusters", selector)
	}
	for _, c := range s.policy().Status.Units[0].Clusters {
		if c.State == v1alpha1.MemberRealized || c.DesiredRevision == "" {
			t.Errorf("before KubeFed did anything, %s is %s with desired revision %q", c.Name, c.State, c.DesiredRevision)
		}
	}

	s.pushUntilStates("both members are realized", bothRealized)
	s.until("the policy is realized", func() string {
		p := s.policy()
		for _, c := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionCompiled, v1alpha1.ConditionPropagated, v1alpha1.ConditionRealized} {
			if !meta.IsStatusConditionTrue(p.Status.Conditions, c) {
				return fmt.Sprintf("%s is not True: %v", c, p.Status.Conditions)
			}
		}
		return ""
	})
}

func TestRevocationIsReportedUntilPropagated(t *testing.T) {
	s := enforced(t, "revokes")
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = nil })
	s.until("the revocation is reported as pending", func() string {
		if problem := s.unitHas(); problem != "" {
			return problem
		}
		for _, c := range s.policy().Status.Units[0].Clusters {
			if c.State == v1alpha1.MemberRealized {
				return fmt.Sprintf("%s is realized before the push", c.Name)
			}
		}
		return ""
	})
	_, o := s.federated()
	if ingress := o.TemplateSpec["ingress"]; fmt.Sprint(ingress) != "[map[]]" {
		t.Errorf("the unit without statements has ingress %v; it must be one empty rule, or members refuse it", ingress)
	}
	s.push()
	s.until("the revocation is done", func() string {
		if units := s.policy().Status.Units; len(units) != 0 {
			return fmt.Sprintf("units %v", units)
		}
		return ""
	})
	s.untilStates("the resource stays closed", bothRealized)
}

func TestRefusedStatementDoesNotBlockOthers(t *testing.T) {
	s := newScenario(t, shared, "refusals")
	s.protect(v1alpha1.ModeEnforce)
	bad := s.statement("bad", "888")
	bad.Subjects = []v1alpha1.Subject{"trnv1:rsc:trip-com:nobody:sa:app/1"}
	s.grant(bad, s.statement("good", "889"))
	s.until("the valid statement is in the unit", func() string { return s.unitHas("good") })
	refused := s.policy().Status.Refused
	if len(refused) != 1 || refused[0].SID != "bad" || refused[0].Reason != v1alpha1.RefusedUnknownSubject {
		t.Errorf("refused: %v", refused)
	}
	if c := meta.FindStatusCondition(s.policy().Status.Conditions, v1alpha1.ConditionCompiled); c.Reason != v1alpha1.ReasonStatementsRefused {
		t.Errorf("Compiled: %v", c)
	}
}

func TestStatementExpires(t *testing.T) {
	s := newScenario(t, shared, "expiries")
	s.protect(v1alpha1.ModeEnforce)
	short := s.statement("short", "888")
	end := metaTime(s.clock.Now().Add(2 * hour))
	short.NotAfter = &end
	s.grant(short, s.statement("long", "889"))
	s.until("both are in the unit", func() string { return s.unitHas("long", "short") })
	s.pushUntilStates("both members are realized", bothRealized)
	s.until("a timer is set", func() string {
		if !s.clock.HasWaiters() {
			return "no timer is set"
		}
		return ""
	})
	s.until("the short one has expired", func() string {
		if s.clock.Now().Before(end.Time) {
			s.clock.Step(2 * hour)
		}
		return s.unitHas("long")
	})
}

// TestGrantFollowsItsHours checks that the hours of a statement open and close its access.
func TestGrantFollowsItsHours(t *testing.T) {
	s := newScenario(t, shared, "hours")
	s.protect(v1alpha1.ModeEnforce)
	now := s.clock.Now().UTC()
	text := func(after time.Duration) string { return now.Add(after).Format("15:04") }
	limited := s.statement("limited", "888")
	limited.Hours = &v1alpha1.WeeklyHours{TimeZone: "UTC", Periods: []v1alpha1.DailyPeriod{
		{Days: v1alpha1.Weekdays(), From: text(-hour), To: text(hour)}, {Days: v1alpha1.Weekdays(), From: text(2 * hour), To: text(3 * hour)}}}
	s.grant(limited, s.statement("long", "889"))
	s.until("both are in the unit", func() string { return s.unitHas("limited", "long") })
	s.pushUntilStates("both members are realized", bothRealized)
	step := func(reason string, to time.Duration, sids ...string) {
		t.Helper()
		s.until("a timer is set", func() string {
			if !s.clock.HasWaiters() {
				return "no timer is set"
			}
			return ""
		})
		s.until(reason, func() string {
			if at := now.Add(to); s.clock.Now().Before(at) {
				s.clock.Step(at.Sub(s.clock.Now()))
			}
			return s.unitHas(sids...)
		})
	}
	step("the hours have ended", hour, "long")
	step("the hours have begun again", 2*hour, "limited", "long")
}

func TestUnplacedResourceIsNotRealized(t *testing.T) {
	s := newScenario(t, shared, "unplaced")
	s.place()
	s.protect(v1alpha1.ModeEnforce)
	s.until("the condition has the reason", func() string {
		c := meta.FindStatusCondition(s.protected().Status.Conditions, v1alpha1.ConditionRealized)
		if c == nil || c.Reason != v1alpha1.ReasonNoTarget {
			return fmt.Sprint(c)
		}
		return ""
	})
	if u, _ := s.federated(); u != nil {
		t.Errorf("an object without placement was written: %v", u)
	}
}

func TestUnregisteredMemberIsReported(t *testing.T) {
	s := newScenario(t, shared, "unregistered")
	s.place("m1", "m9")
	s.protect(v1alpha1.ModeEnforce)
	s.untilPlaced("m1", "m9")
	s.pushUntilStates("m9 is missing", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m9": v1alpha1.MemberUnreachable})
	c := meta.FindStatusCondition(s.protected().Status.Conditions, v1alpha1.ConditionRealized)
	if !strings.Contains(c.Message, "no KubeFedCluster m9") {
		t.Errorf("the condition lacks the missing registration: %s", c.Message)
	}
}
