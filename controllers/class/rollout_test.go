package class

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/waves"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func rulesOn(port int32) v1alpha1.ClassRules {
	return v1alpha1.ClassRules{OtherPorts: v1alpha1.OtherPortsDeny,
		Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: port}}}}}
}

// classIn returns a class with the rules for port 2 and, if waves is set, the waves a and b. Its status is settled on the rules for a port.
func classIn(withWaves bool, settled int32, progress *v1alpha1.RolloutProgress) *v1alpha1.ResourceClass {
	c := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis", Generation: 2}}
	c.Spec.Actions = rulesOn(2).Actions
	if withWaves {
		c.Spec.Rollout = &v1alpha1.ClassRollout{Waves: []v1alpha1.Wave{
			{Name: "a", ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"wave": "a"}}, Soak: metav1.Duration{Duration: time.Hour}},
			{Name: "b"},
		}}
	}
	if settled > 0 {
		c.Status.Rollout = &v1alpha1.ClassRolloutStatus{Settled: rulesOn(settled), Generation: 2, Progress: progress}
	}
	return c
}

func realizedIn(states ...v1alpha1.MemberState) []waves.Member {
	var out []waves.Member
	for i, state := range states {
		name := string(rune('a' + i))
		out = append(out, waves.Member{Name: "m" + name, Labels: map[string]string{"wave": name},
			Last: v1alpha1.ClusterState{State: state, Mode: v1alpha1.ModeEnforce, Since: &metav1.MicroTime{Time: noon.Add(-time.Hour)}}})
	}
	return out
}

func progressIn(since time.Duration, begun ...v1alpha1.ClusterName) *v1alpha1.RolloutProgress {
	p := &v1alpha1.RolloutProgress{StartedAt: metav1.NewTime(noon.Add(-2 * time.Hour)), Wave: 1, Name: "a", Begun: v1alpha1.MemberSet{Clusters: begun}}
	if since > 0 {
		at := metav1.NewTime(noon.Add(-since))
		p.EnforcedSince = &at
	}
	return p
}

// TestNextRollout checks in which members the rules of a class count next.
func TestNextRollout(t *testing.T) {
	const ok, pending, downgraded = v1alpha1.MemberRealized, v1alpha1.MemberPending, v1alpha1.MemberDowngraded
	older := classIn(true, 1, progressIn(time.Minute, "ma"))
	older.Generation = 3
	back := classIn(true, 2, progressIn(time.Minute, "ma"))
	for _, tc := range []struct {
		reason  string
		class   *v1alpha1.ResourceClass
		members []waves.Member
		// settled is the port of the settled rules, 0 without status; begun are the members in which the present rules count.
		settled int32
		begun   map[string]bool
		soaks   bool
		changes []waves.Change
	}{
		{"no waves and no status", classIn(false, 0, nil), realizedIn(ok, ok), 0, map[string]bool{"ma": true, "mb": true}, false, nil},
		{"the first status has the rules of the spec", classIn(true, 0, nil), nil, 2, map[string]bool{"ma": true, "mb": true}, false, nil},
		{"a change begins in the first wave", classIn(true, 1, nil), realizedIn(ok, ok), 1, map[string]bool{"ma": true}, false, []waves.Change{waves.Started}},
		{"the wave is not realized", classIn(true, 1, progressIn(0, "ma")), realizedIn(pending, ok), 1, map[string]bool{"ma": true}, false, nil},
		{"a unit was not decided", classIn(true, 1, progressIn(0, "ma")), realizedIn("", ""), 1, map[string]bool{"ma": true}, false, nil},
		{"the wave begins to soak", classIn(true, 1, progressIn(0, "ma")), realizedIn(ok, pending), 1, map[string]bool{"ma": true}, true, nil},
		{
			"the wave has soaked", classIn(true, 1, progressIn(2*time.Hour, "ma")), realizedIn(ok, ok), 1,
			map[string]bool{"ma": true, "mb": true}, false, []waves.Change{waves.Started},
		},
		{"a member was downgraded", classIn(true, 1, progressIn(0, "ma")), realizedIn(downgraded, ok), 1, map[string]bool{"ma": true}, false,
			[]waves.Change{waves.Halted}},
		{"the spec changes again, so the soak time begins again", older, realizedIn(pending, ok), 1, map[string]bool{"ma": true}, false, nil},
		{"the spec was set back", back, realizedIn(ok, ok), 2, map[string]bool{"ma": true, "mb": true}, false, []waves.Change{waves.Completed}},
		{"no member has units of the class", classIn(true, 1, nil), nil, 2, map[string]bool{"ma": true}, false, nil},
		{"the waves were removed with the change", classIn(false, 1, nil), realizedIn(ok, ok), 0, map[string]bool{"ma": true, "mb": true}, false, nil},
		{"the waves were removed in the middle", classIn(false, 1, progressIn(0, "ma")), realizedIn(ok, ok), 1, map[string]bool{"ma": true}, false,
			[]waves.Change{waves.Halted}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			next, changes := nextRollout(tc.class, tc.members, noon)
			after := tc.class.DeepCopy()
			after.Status.Rollout = next
			if tc.settled == 0 != (next == nil) || next != nil && !next.Settled.Equal(rulesOn(tc.settled)) {
				t.Fatalf("the status is %+v, want it settled on port %d", next, tc.settled)
			}
			for _, m := range []string{"ma", "mb"} {
				if got := after.HasBegunIn(m); got != tc.begun[m] && len(tc.members) > 0 {
					t.Errorf("the rules count in %s: %t, want %t", m, got, tc.begun[m])
				}
			}
			if got := next != nil && next.Progress != nil && next.Progress.EnforcedSince != nil; got != tc.soaks {
				t.Errorf("the wave soaks: %t, want %t", got, tc.soaks)
			}
			if len(changes) != len(tc.changes) || len(changes) > 0 && changes[0] != tc.changes[0] {
				t.Errorf("the changes are %v, want %v", changes, tc.changes)
			}
		})
	}
}

// TestInstructionAppliedAgain checks that an old instruction does not continue the rollout of a class that was halted after it, neither during
// the rollout nor during the next one.
func TestInstructionAppliedAgain(t *testing.T) {
	c := classIn(true, 1, progressIn(time.Minute, "ma"))
	members := realizedIn(v1alpha1.MemberRealized, v1alpha1.MemberRealized)
	finish, pause := waves.New(waves.Finish, "sam", "because", noon.Add(-time.Hour)), waves.New(waves.Pause, "sam", "because", noon)
	give := func(reason string, i waves.Instruction, want waves.Change) {
		t.Helper()
		c.Annotations = map[string]string{v1alpha1.AnnotationRollout: i.String()}
		next, changes := nextRollout(c, members, noon)
		if len(changes) != 1 || changes[0] != want || next.Progress == nil || next.Progress.Halt == nil {
			t.Fatalf("%s: %v, %+v", reason, changes, next)
		}
		c.Status.Rollout = next
	}
	give("a pause", pause, waves.Halted)
	give("an older instruction", finish, waves.Ignored)
	give("the pause again", pause, waves.Ignored)

	c.Spec.Actions = rulesOn(1).Actions // set back
	if c.Status.Rollout, _ = nextRollout(c, members, noon); c.RollsOut() || c.Status.Rollout.InstructionAt == nil {
		t.Fatalf("after the spec was set back: %+v", c.Status.Rollout)
	}
	c.Spec.Actions, c.Annotations = rulesOn(2).Actions, nil
	c.Status.Rollout, _ = nextRollout(c, members, noon)
	c.Status.Rollout.Progress.Halt = &v1alpha1.RolloutHalt{Reason: v1alpha1.HaltPaused, At: metav1.NewTime(noon)}
	give("an instruction of the earlier rollout", finish, waves.Ignored)
}
