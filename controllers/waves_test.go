package controllers_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/waves"
)

// newWaves returns a scenario whose class has the waves m1 and m2, and a resource in Audit that both members have.
func newWaves(t *testing.T, service string) *scenario {
	s := newScenario(t, shared, service)
	change(s, s.host, &v1alpha1.ResourceClass{}, service, func(c *v1alpha1.ResourceClass) {
		c.Spec.Rollout = &v1alpha1.ClassRollout{Waves: []v1alpha1.Wave{
			{Name: "canary", ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"name": "m1"}}, Soak: metav1.Duration{Duration: time.Hour}},
			{Name: "all", Soak: metav1.Duration{Duration: time.Hour}},
		}}
	})
	s.protect(v1alpha1.ModeAudit)
	s.grant(s.statement("first", "kept"), s.statement("second", "revoked"))
	s.pushUntilModes("both members audit", map[string]v1alpha1.Mode{"m1": v1alpha1.ModeAudit, "m2": v1alpha1.ModeAudit})
	s.until("the status has a rollout", func() string {
		if s.protected().Status.Rollout == nil {
			return "it has none"
		}
		return ""
	})
	return s
}

// enforce sets the mode of the resource to Enforce.
func (s *scenario) enforce() {
	s.Helper()
	change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(p *v1alpha1.ProtectedResource) { p.Spec.Mode = v1alpha1.ModeEnforce })
}

// pushUntilModes pushes until every member is realized in a mode, as the status reports.
func (s *scenario) pushUntilModes(what string, want map[string]v1alpha1.Mode) {
	s.Helper()
	pushed := int64(-1)
	s.until(what, func() string {
		if u, _ := s.federated(); u != nil && u.GetGeneration() != pushed {
			pushed = u.GetGeneration()
			s.push()
		}
		got, p := map[string]v1alpha1.Mode{}, s.protected()
		for _, c := range p.Status.States() {
			if c.State == v1alpha1.MemberRealized {
				got[string(c.Name)] = c.Mode
			}
		}
		if p.Status.ObservedGeneration == p.Generation && maps.Equal(got, want) {
			return ""
		}
		return fmt.Sprintf("%+v, rollout %+v", p.Status.States(), p.Status.Rollout)
	})
}

// nudge lets the adapter look at the resource, as its timer would after a minute.
func (s *scenario) nudge(value string) {
	s.Helper()
	change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(p *v1alpha1.ProtectedResource) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations["test/nudge"] = value
	})
}

// closes reports whether the object of the unit in a member has a default deny.
func (s *scenario) closes(member string) bool {
	s.Helper()
	u := s.ccnp()
	if err := s.members[member].client.Get(s.ctx, types.NamespacedName{Name: s.object()}, u); err != nil {
		s.Fatal(err)
	}
	deny, _, err := unstructuredField(u, "spec", "enableDefaultDeny", "ingress")
	if err != nil {
		s.Fatal(err)
	}
	return deny == true
}

// TestEnforceReachesMembersInWaves checks the way of a change to Enforce through two members, with a restart of the adapter and a
// revocation in the middle.
func TestEnforceReachesMembersInWaves(t *testing.T) {
	s := newWaves(t, "waves")
	s.enforce()
	s.pushUntilModes("the canary enforces", map[string]v1alpha1.Mode{"m1": v1alpha1.ModeEnforce, "m2": v1alpha1.ModeAudit})
	if !s.closes("m1") || s.closes("m2") {
		t.Fatalf("m1 is closed: %t, m2 is closed: %t", s.closes("m1"), s.closes("m2"))
	}
	s.until("the wave soaks", func() string {
		if p := s.protected().Status.Rollout.Progress; p == nil || p.EnforcedSince == nil || p.Name != "canary" || p.Waiting != 1 || p.Waves != 2 {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})

	if err := s.restart(); err != nil {
		t.Fatal(err)
	}
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = p.Spec.Statements[:1] })
	s.until("the revocation is written", func() string {
		_, o := s.federated()
		for _, m := range []string{"m1", "m2"} {
			if text := fmt.Sprint(o.SpecIn(m)); !strings.Contains(text, "kept") || strings.Contains(text, "revoked") {
				return m + " is to have " + text
			}
		}
		return ""
	})
	s.pushUntilModes("the revocation is in both members, and the wave is the same",
		map[string]v1alpha1.Mode{"m1": v1alpha1.ModeEnforce, "m2": v1alpha1.ModeAudit})

	s.clock.Step(time.Hour)
	s.nudge("soaked")
	s.pushUntilModes("both members enforce", map[string]v1alpha1.Mode{"m1": v1alpha1.ModeEnforce, "m2": v1alpha1.ModeEnforce})
	if !s.closes("m2") {
		t.Error("m2 is not closed")
	}
	s.until("the last wave soaks", func() string {
		if p := s.protected().Status.Rollout.Progress; p == nil || p.Waiting != 0 || !p.Begun.AllExcept || p.EnforcedSince == nil {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})
	s.clock.Step(time.Hour)
	s.nudge("complete")
	s.until("the rollout is complete", func() string {
		if r := s.protected().Status.Rollout; r == nil || r.Progress != nil || !r.Settled.AllExcept {
			return fmt.Sprintf("%+v", r)
		}
		return ""
	})
	if _, o := s.federated(); len(o.Overrides) > 0 {
		t.Errorf("members have specs of their own: %v", o.Overrides)
	}
}

// TestRollbackOpensTheWaves checks that an instruction of a person opens the members of the rollout, and that it waits for another one.
func TestRollbackOpensTheWaves(t *testing.T) {
	s := newWaves(t, "wavesback")
	s.enforce()
	s.pushUntilModes("the canary enforces", map[string]v1alpha1.Mode{"m1": v1alpha1.ModeEnforce, "m2": v1alpha1.ModeAudit})
	instruct := func(a waves.Action) {
		s.clock.Step(time.Second) // each instruction needs a later time
		i := waves.New(a, "sam", "because", s.clock.Now())
		change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(p *v1alpha1.ProtectedResource) {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[v1alpha1.AnnotationRollout] = i.String()
		})
	}
	instruct(waves.RollBack)
	s.pushUntilModes("both members audit", map[string]v1alpha1.Mode{"m1": v1alpha1.ModeAudit, "m2": v1alpha1.ModeAudit})
	if h := s.protected().Status.Rollout.Progress.Halt; h == nil || h.Reason != v1alpha1.HaltRolledBack || h.By != "sam" || s.closes("m1") {
		t.Errorf("the halt is %+v; m1 is closed: %t", h, s.closes("m1"))
	}
	instruct(waves.Finish)
	s.pushUntilModes("both members enforce", map[string]v1alpha1.Mode{"m1": v1alpha1.ModeEnforce, "m2": v1alpha1.ModeEnforce})
}

// TestClassThatGetsWavesOpensNothing checks that an enforced resource stays enforced when its class gets waves.
func TestClassThatGetsWavesOpensNothing(t *testing.T) {
	s := newScenario(t, shared, "wavesadopt")
	s.protect(v1alpha1.ModeEnforce)
	s.grant(s.statement("first", "1"))
	s.pushUntilModes("both members enforce", map[string]v1alpha1.Mode{"m1": v1alpha1.ModeEnforce, "m2": v1alpha1.ModeEnforce})
	before, _ := s.federated()
	change(s, s.host, &v1alpha1.ResourceClass{}, s.service, func(c *v1alpha1.ResourceClass) {
		c.Spec.Rollout = &v1alpha1.ClassRollout{Waves: []v1alpha1.Wave{{Name: "canary",
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"name": "m1"}}}}}
	})
	s.until("the resource is settled", func() string {
		if r := s.protected().Status.Rollout; r == nil || r.Progress != nil || !r.Settled.AllExcept {
			return fmt.Sprintf("%+v", r)
		}
		return ""
	})
	if after, _ := s.federated(); after.GetGeneration() != before.GetGeneration() {
		t.Error("the federated object was written")
	}
}
