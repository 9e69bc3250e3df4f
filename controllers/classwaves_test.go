package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/waves"
)

// resourceClass returns the class of the scenario.
func (s *scenario) resourceClass() *v1alpha1.ResourceClass {
	s.Helper()
	c := &v1alpha1.ResourceClass{}
	c.Name = s.service
	if err := s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, c); err != nil {
		s.Fatal(err)
	}
	return c
}

// changePort changes the port of the first action of the class.
func (s *scenario) changePort(port int32) {
	s.Helper()
	change(s, s.host, &v1alpha1.ResourceClass{}, s.service, func(c *v1alpha1.ResourceClass) { c.Spec.Actions[0].Ports[0].Port = port })
}

// untilPorts waits until the members are to have the rules with some ports, pushes, and waits until they are realized.
func (s *scenario) untilPorts(what string, ports map[string]string) {
	s.Helper()
	s.until(what, func() string {
		_, o := s.federated()
		for m, port := range ports {
			if text := fmt.Sprint(o.SpecIn(m)); !strings.Contains(text, "port:"+port) {
				return m + " is to have " + text
			}
		}
		return ""
	})
	s.pushUntilModes(what+", realized", map[string]v1alpha1.Mode{"m1": v1alpha1.ModeAudit, "m2": v1alpha1.ModeAudit})
}

// untilClass waits until the rollout of the class is in a state. The adapter looks at it every two seconds, or every minute.
func (s *scenario) untilClass(what string, reached func(*v1alpha1.ClassRolloutStatus) bool) {
	s.Helper()
	s.until(what, func() string {
		if r := s.resourceClass().Status.Rollout; !reached(r) {
			return fmt.Sprintf("%+v", r)
		}
		return ""
	})
}

// nudgeClass lets the adapter look at the class, as its timer would.
func (s *scenario) nudgeClass(value string) {
	s.Helper()
	change(s, s.host, &v1alpha1.ResourceClass{}, s.service, func(c *v1alpha1.ResourceClass) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations["test/nudge"] = value
	})
}

// TestClassReachesMembersInWaves checks the way of a change of a class through two members, with a restart of the adapter and a revocation in
// the middle, which does not wait.
func TestClassReachesMembersInWaves(t *testing.T) {
	s := newWaves(t, "classwaves")
	s.untilClass("the adapter knows the rules of the class", func(r *v1alpha1.ClassRolloutStatus) bool { return r != nil && r.Progress == nil })
	before := fmt.Sprint(s.resourceClass().Spec.Actions[0].Ports[0].Port)
	s.changePort(7777)
	s.untilPorts("the canary has the new port", map[string]string{"m1": "7777", "m2": before})
	s.untilClass("the wave soaks", func(r *v1alpha1.ClassRolloutStatus) bool {
		return r != nil && r.Progress != nil && r.Progress.EnforcedSince != nil && r.Progress.Name == "canary" && r.Progress.Waiting == 1
	})

	if err := s.restart(); err != nil {
		t.Fatal(err)
	}
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = p.Spec.Statements[:1] })
	s.until("the revocation is written for both members", func() string {
		_, o := s.federated()
		for _, m := range []string{"m1", "m2"} {
			if text := fmt.Sprint(o.SpecIn(m)); !strings.Contains(text, "kept") || strings.Contains(text, "revoked") {
				return m + " is to have " + text
			}
		}
		return ""
	})
	s.untilPorts("the wave is the same", map[string]string{"m1": "7777", "m2": before})

	s.clock.Step(time.Hour)
	s.nudgeClass("soaked")
	s.untilPorts("both members have the new port", map[string]string{"m1": "7777", "m2": "7777"})
	s.untilClass("the last wave soaks", func(r *v1alpha1.ClassRolloutStatus) bool {
		return r != nil && r.Progress != nil && r.Progress.EnforcedSince != nil && r.Progress.Waiting == 0
	})
	s.clock.Step(time.Hour)
	s.nudgeClass("complete")
	s.untilClass("the rollout is complete", func(r *v1alpha1.ClassRolloutStatus) bool {
		return r != nil && r.Progress == nil && r.Settled.Actions[0].Ports[0].Port == 7777
	})
}

// TestClassRollsBack checks that an instruction returns all members to the earlier rules, and that a spec that is set back ends the rollout.
func TestClassRollsBack(t *testing.T) {
	s := newWaves(t, "classback")
	s.untilClass("the adapter knows the rules of the class", func(r *v1alpha1.ClassRolloutStatus) bool { return r != nil && r.Progress == nil })
	port := s.resourceClass().Spec.Actions[0].Ports[0].Port
	before := fmt.Sprint(port)
	s.changePort(7777)
	s.untilPorts("the canary has the new port", map[string]string{"m1": "7777", "m2": before})
	i := waves.New(waves.RollBack, "alice", "clients are refused", s.clock.Now())
	change(s, s.host, &v1alpha1.ResourceClass{}, s.service, func(c *v1alpha1.ResourceClass) {
		c.Annotations = map[string]string{v1alpha1.AnnotationRollout: i.String()}
	})
	s.untilPorts("both have the earlier port", map[string]string{"m1": before, "m2": before})
	s.untilClass("it is halted", func(r *v1alpha1.ClassRolloutStatus) bool {
		return r != nil && r.Progress != nil && r.Progress.Halt != nil && r.Progress.Halt.Reason == v1alpha1.HaltRolledBack && r.Progress.Halt.By == "alice"
	})
	s.changePort(port)
	s.untilClass("no rollout is in progress", func(r *v1alpha1.ClassRolloutStatus) bool { return r != nil && r.Progress == nil })
}

// TestOtherPortsReachMembersInWaves checks that an object that only the present rules have is placed where they count, and nowhere after
// a rollback.
func TestOtherPortsReachMembersInWaves(t *testing.T) {
	s := newWaves(t, "classports")
	s.untilClass("the adapter knows the rules of the class", func(r *v1alpha1.ClassRolloutStatus) bool { return r != nil && r.Progress == nil })
	placed := func(what, want string) {
		t.Helper()
		s.until(what, func() string {
			_, o := s.federatedOf(federation.CiliumPolicy, s.object()+"-other-ports")
			got := "no object"
			if o != nil {
				got = fmt.Sprint(o.Placement)
			}
			if got != want {
				return "it is in " + got
			}
			return ""
		})
	}
	change(s, s.host, &v1alpha1.ResourceClass{}, s.service, func(c *v1alpha1.ResourceClass) { c.Spec.OtherPorts = v1alpha1.OtherPortsAllow })
	placed("the canary opens the other ports", "[m1]")
	i := waves.New(waves.RollBack, "alice", "too much is open", s.clock.Now())
	change(s, s.host, &v1alpha1.ResourceClass{}, s.service, func(c *v1alpha1.ResourceClass) {
		c.Annotations = map[string]string{v1alpha1.AnnotationRollout: i.String()}
	})
	placed("no member opens the other ports", "[]")
}
