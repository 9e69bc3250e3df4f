package controllers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// wildcard returns the name of every resource of the scenario's class.
func (s *scenario) wildcard() v1alpha1.ResourceName {
	return v1alpha1.ResourceName("trnv1:rsc:trip-com:" + s.service + ":clusters:*")
}

func unitObject(resource v1alpha1.ResourceName) string {
	return v1alpha1.ObjectPrefix + policy.UnitID(string(resource))
}

// untilUnit waits until the policy's status has these states of the members for one unit; an empty map waits until it lacks the unit.
func (s *scenario) untilUnit(what string, resource v1alpha1.ResourceName, want map[string]v1alpha1.MemberState) {
	s.Helper()
	s.until(what, func() string {
		p := s.policy()
		if p.Status.ObservedGeneration != p.Generation {
			return "the status is about an older policy"
		}
		got := map[string]v1alpha1.MemberState{}
		for i := range p.Status.Units {
			if p.Status.Units[i].Resource != resource {
				continue
			}
			for _, c := range p.Status.Units[i].Clusters {
				got[string(c.Name)] = c.State
			}
		}
		if maps.Equal(got, want) {
			return ""
		}
		return fmt.Sprintf("%+v, conditions %v", p.Status.Units, p.Status.Conditions)
	})
}

// untilSpec waits until the template of a unit's object contains a text, or does not.
func (s *scenario) untilSpec(what string, resource v1alpha1.ResourceName, text string, want bool) {
	s.Helper()
	s.until(what, func() string {
		_, o := s.federatedOf(federation.CiliumPolicy, unitObject(resource))
		if o == nil {
			return "no federated object"
		}
		if spec := fmt.Sprint(o.TemplateSpec); strings.Contains(spec, text) != want {
			return spec
		}
		return ""
	})
}

// unitPlaced returns the placement of the object of a unit, and whether there is one.
func (s *scenario) unitPlaced(resource v1alpha1.ResourceName) ([]string, bool) {
	s.Helper()
	_, o := s.federatedOf(federation.CiliumPolicy, unitObject(resource))
	if o == nil {
		return nil, false
	}
	return o.Placement, true
}

func (s *scenario) revokeAll() {
	s.Helper()
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = nil })
}

// TestWildcard checks that an allow of every resource of a class is a unit of its own, without a ProtectedResource, and that its last
// statement is revoked by an update, which is read back from every member before the object is removed.
func TestWildcard(t *testing.T) {
	s := newScenario(t, shared, "wildcards")
	tool := s.statement("tool", "backup")
	tool.Resources = []v1alpha1.ResourceName{s.wildcard()}
	s.grant(tool)
	s.untilSpec("the unit is written", s.wildcard(), "backup", true)
	s.untilUnit("it is reported", s.wildcard(), bothPending)
	if placed, _ := s.unitPlaced(s.wildcard()); !slices.Equal(placed, []string{"m1", "m2"}) {
		t.Fatalf("placed in %v", placed)
	}
	push := func() { s.pushOf(federation.CiliumPolicy, unitObject(s.wildcard())) }
	push()
	s.untilUnit("both members are realized", s.wildcard(), bothRealized)

	s.members["m2"].proxy.Disconnect()
	defer s.members["m2"].proxy.Reconnect()
	s.revokeAll()
	s.untilSpec("it is emptied", s.wildcard(), "ingress:[map[]]", true)
	push()
	s.untilUnit("m2 may still allow it", s.wildcard(), map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberUnreachable})
	if placed, ok := s.unitPlaced(s.wildcard()); !ok || !slices.Equal(placed, []string{"m1", "m2"}) {
		t.Fatalf("placed in %v before every member has the revocation", placed)
	}

	s.members["m2"].proxy.Reconnect()
	push()
	s.until("it is placed nowhere after every member has the revocation", func() string {
		if placed, ok := s.unitPlaced(s.wildcard()); !ok || len(placed) > 0 {
			return fmt.Sprint(placed, ok)
		}
		return ""
	})
	s.untilUnit("both members still have it", s.wildcard(), bothPending)
	push()
	s.until("it is gone", func() string {
		if placed, ok := s.unitPlaced(s.wildcard()); ok {
			return fmt.Sprintf("it is there, placed in %v", placed)
		}
		return ""
	})
	s.untilUnit("the unit is not reported any more", s.wildcard(), map[string]v1alpha1.MemberState{})
	if c := s.policy().Status.Conditions; len(c) == 0 {
		t.Error("the policy has no conditions")
	}
}

// TestWildcardWithoutClass checks that the wildcards of a class that was removed by force are revoked in the same order.
func TestWildcardWithoutClass(t *testing.T) {
	s := newScenario(t, shared, "wildless")
	tool := s.statement("tool", "backup")
	tool.Resources = []v1alpha1.ResourceName{s.wildcard()}
	s.grant(tool)
	s.untilSpec("the unit is written", s.wildcard(), "backup", true)
	push := func() { s.pushOf(federation.CiliumPolicy, unitObject(s.wildcard())) }
	push()
	s.untilUnit("both members are realized", s.wildcard(), bothRealized)
	class := &v1alpha1.ResourceClass{}
	class.Name = s.service
	if err := s.host.Delete(s.ctx, class); err != nil {
		t.Fatal(err)
	}
	s.untilSpec("it is emptied", s.wildcard(), "ingress:[map[]]", true)
	s.until("it is gone", func() string {
		if _, ok := s.unitPlaced(s.wildcard()); !ok {
			return ""
		}
		push()
		return "it is there"
	})
	s.until("the statement is refused", func() string {
		if r := s.policy().Status.Refused; len(r) != 1 || r[0].Reason != v1alpha1.RefusedUnknownResource {
			return fmt.Sprint(r)
		}
		return ""
	})
}
