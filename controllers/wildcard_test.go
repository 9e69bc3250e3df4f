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

// every is the wildcard of the story's whole class.
func (s *story) every() v1alpha1.ResourceName {
	return v1alpha1.ResourceName("trnv1:rsc:trip-com:" + s.service + ":clusters:*")
}

func unitObject(resource v1alpha1.ResourceName) string {
	return v1alpha1.ObjectPrefix + policy.UnitID(string(resource))
}

// untilUnit waits for the states of the members as the policy tells them of one unit; none: the unit is not told of.
func (s *story) untilUnit(what string, resource v1alpha1.ResourceName, want map[string]v1alpha1.MemberState) {
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
func (s *story) untilSpec(what string, resource v1alpha1.ResourceName, text string, want bool) {
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

// unitPlaced returns where the object of a unit is placed; false: there is none.
func (s *story) unitPlaced(resource v1alpha1.ResourceName) ([]string, bool) {
	s.Helper()
	_, o := s.federatedOf(federation.CiliumPolicy, unitObject(resource))
	if o == nil {
		return nil, false
	}
	return o.Placement, true
}

func (s *story) revokeAll() {
	s.Helper()
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = nil })
}

// TestWildcard: an allow of every resource of a class is a unit of its own, which needs no ProtectedResource. Its last
// statement is revoked by an update that every member has to show before the object goes.
func TestWildcard(t *testing.T) {
	s := begin(t, shared, "wildcards")
	tool := s.statement("tool", "backup")
	tool.Resources = []v1alpha1.ResourceName{s.every()}
	s.grant(tool)
	s.untilSpec("the unit is written", s.every(), "backup", true)
	s.untilUnit("it is told", s.every(), bothPending)
	if placed, _ := s.unitPlaced(s.every()); !slices.Equal(placed, []string{"m1", "m2"}) {
		t.Fatalf("placed in %v", placed)
	}
	push := func() { s.pushOf(federation.CiliumPolicy, unitObject(s.every())) }
	push()
	s.untilUnit("both members have it", s.every(), bothRealized)

	s.members["m2"].wire.set(true)
	defer s.members["m2"].wire.set(false)
	s.revokeAll()
	s.untilSpec("it is emptied", s.every(), "ingress:[map[]]", true)
	push()
	s.untilUnit("m2 may still let it in", s.every(), map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberUnreachable})
	if placed, ok := s.unitPlaced(s.every()); !ok || !slices.Equal(placed, []string{"m1", "m2"}) {
		t.Fatalf("placed in %v while a member has not shown the revocation", placed)
	}

	s.members["m2"].wire.set(false)
	push()
	s.until("it is placed nowhere once every member showed it", func() string {
		if placed, ok := s.unitPlaced(s.every()); !ok || len(placed) > 0 {
			return fmt.Sprint(placed, ok)
		}
		return ""
	})
	s.untilUnit("both members still have it", s.every(), bothPending)
	push()
	s.until("it is gone", func() string {
		if placed, ok := s.unitPlaced(s.every()); ok {
			return fmt.Sprintf("it is there, placed in %v", placed)
		}
		return ""
	})
	s.untilUnit("nothing is left to tell", s.every(), map[string]v1alpha1.MemberState{})
	if c := s.policy().Status.Conditions; len(c) == 0 {
		t.Error("the policy has no conditions")
	}
}

// TestWildcardWithoutClass: a class that goes by force takes the allows of its wildcards with it, in the same order.
func TestWildcardWithoutClass(t *testing.T) {
	s := begin(t, shared, "wildless")
	tool := s.statement("tool", "backup")
	tool.Resources = []v1alpha1.ResourceName{s.every()}
	s.grant(tool)
	s.untilSpec("the unit is written", s.every(), "backup", true)
	push := func() { s.pushOf(federation.CiliumPolicy, unitObject(s.every())) }
	push()
	s.untilUnit("both members have it", s.every(), bothRealized)
	class := &v1alpha1.ResourceClass{}
	class.Name = s.service
	if err := s.host.Delete(s.ctx, class); err != nil {
		t.Fatal(err)
	}
	s.untilSpec("it is emptied", s.every(), "ingress:[map[]]", true)
	s.until("it is gone", func() string {
		if _, ok := s.unitPlaced(s.every()); !ok {
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
