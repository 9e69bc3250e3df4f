package rollout_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/waves"
)

// inWaves returns a world in which the resource is enforced in m1, and m2 waits for its wave.
func inWaves(t *testing.T) *world {
	w := newWorld(t, v1alpha1.ModeEnforce)
	w.object.Status.Rollout = &v1alpha1.RolloutStatus{Progress: &v1alpha1.RolloutProgress{StartedAt: metav1.NewTime(w.now), Wave: 1, Waves: 2,
		Begun: v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{"m1"}}, Waiting: 1}}
	w.members("m1", "m2")
	w.look()
	w.pass(time.Minute)
	return w
}

// instruction returns the last instruction, or nil.
func (w *world) instruction() *waves.Instruction {
	w.t.Helper()
	i, err := waves.InstructionOf(w.object)
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

func TestGuardHaltsWaves(t *testing.T) {
	w := inWaves(t)
	w.see("m2", cart, policy.DefaultDenied, 100) // it is not enforced there
	w.look()
	w.look()
	if i := w.instruction(); i != nil {
		t.Fatalf("the waves are halted without reason: %+v", i)
	}
	w.see("m1", cart, policy.DefaultDenied, 21)
	w.pass(time.Minute)
	w.look()
	w.look()
	i := w.instruction()
	if i == nil || i.Action != waves.Pause || i.Halt != v1alpha1.HaltClientsRefused || i.Cluster != "m1" || i.By != waves.Guard {
		t.Fatalf("the guard gave the instruction %+v", i)
	}

	w.pass(time.Minute)
	byHand := waves.New(waves.Resume, "admin", "looked at it", w.now) // with kubectl
	if err := w.Instruct(t.Context(), "orders", byHand); err != nil {
		t.Fatal(err)
	}
	w.look()
	if got := w.instruction(); got.ID != byHand.ID {
		t.Errorf("the guard halts again although a person continued: %+v", got)
	}
	guard := func() rollout.Guard {
		states, err := w.store.States(t.Context(), orders)
		if err != nil {
			t.Fatal(err)
		}
		return states[orders].Guard
	}
	if g := guard(); g.Stop != nil || !g.ArmedAt.Equal(byHand.At) {
		t.Errorf("after a resume by hand, the guard is %+v", g)
	}
	lines := w.lines()
	if last := lines[len(lines)-1]; last.Action != "resource.rollout-guard" || last.Actor != "unknown" || last.Details["instruction"] != byHand.ID ||
		last.Details["statedBy"] != "admin" || last.Details["armed"] != "true" {
		t.Errorf("the last line of the ledger is %+v", last)
	}
	w.pass(time.Minute)
	w.see("m1", search, policy.DefaultDenied, 21)
	w.pass(time.Minute)
	w.look()
	w.look()
	if got := w.instruction(); got.By != waves.Guard || got.Halt != v1alpha1.HaltClientsRefused {
		t.Errorf("the guard does not halt the waves that were resumed by hand: %+v", got)
	}

	w.object.Status.Rollout.Progress.Halt = &v1alpha1.RolloutHalt{Reason: v1alpha1.HaltClientsRefused, At: metav1.NewTime(w.now)}
	w.pass(time.Minute)
	if err := w.Service.Instruct(t.Context(), bob, w.entity(), waves.Resume, "granted what was missing"); err != nil {
		t.Fatal(err)
	}
	if g := guard(); g.Stop != nil || w.instruction().By != "bob" {
		t.Errorf("the guard is %+v after a resume, the instruction %+v", g, w.instruction())
	}
}

func TestVerdictsHaltWaves(t *testing.T) {
	for _, tc := range []struct {
		reason string
		n      int64
		want   bool
	}{{"more than the guard tolerates", 21, true}, {"as many as it tolerates", 20, false}} {
		t.Run(tc.reason, func(t *testing.T) {
			w := inWaves(t)
			w.seeEdge(audit.Edge{Cluster: "m1", Subject: cart, Resource: orders, Action: "redis:connect", Port: 6379, Protocol: "TCP",
				Decision: policy.Allowed, Verdict: audit.VerdictDropped}, tc.n)
			w.pass(time.Minute)
			w.look()
			i := w.instruction()
			if (i != nil) != tc.want || i != nil && (i.Halt != v1alpha1.HaltVerdictsDisagree || i.Cluster != "m1") {
				t.Errorf("the instruction is %+v", i)
			}
		})
	}
}

// TestInstructionsOfTheFutureDoNotStopTheGuard checks that the time of an instruction, which its author chooses, does not keep the guard
// from acting.
func TestInstructionsOfTheFutureDoNotStopTheGuard(t *testing.T) {
	for _, tc := range []struct {
		reason string
		see    func(*world)
		want   v1alpha1.HaltReason
	}{
		{"clients are refused", func(w *world) { w.see("m1", cart, policy.DefaultDenied, 21) }, v1alpha1.HaltClientsRefused},
		{"verdicts disagree", func(w *world) {
			w.seeEdge(audit.Edge{Cluster: "m1", Subject: cart, Resource: orders, Action: "redis:connect", Port: 6379, Protocol: "TCP",
				Decision: policy.Allowed, Verdict: audit.VerdictDropped}, 21)
		}, v1alpha1.HaltVerdictsDisagree},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := inWaves(t)
			if err := w.Instruct(t.Context(), "orders", waves.New(waves.Resume, "admin", "looked at it", w.now.Add(1000*time.Hour))); err != nil {
				t.Fatal(err)
			}
			tc.see(w)
			w.pass(time.Minute)
			w.look()
			w.look()
			if i := w.instruction(); i.By != waves.Guard || i.Halt != tc.want {
				t.Errorf("the instruction is %+v", i)
			}
		})
	}
}

// TestAutomaticHaltsAreRecorded checks that a halt by the adapter is in the ledger and notified once.
func TestAutomaticHaltsAreRecorded(t *testing.T) {
	w := inWaves(t)
	w.object.Status.Rollout.Progress.Halt = &v1alpha1.RolloutHalt{Reason: v1alpha1.HaltMemberUnhealthy, At: metav1.NewTime(w.now), Cluster: "m1",
		Message: "m1 had begun to enforce and is Downgraded now"}
	w.look()
	w.look()
	n := 0
	for _, a := range w.actions() {
		if a == "resource.waves-halted" {
			n++
		}
	}
	if told := w.told()["waves-halted"]; n != 1 || !slices.Equal(told, []string{"bob", "sam"}) {
		t.Errorf("%d lines in the ledger, %v were notified", n, told)
	}
}

func TestInstruct(t *testing.T) {
	for _, tc := range []struct {
		reason string
		actor  approval.Actor
		action waves.Action
		text   string
		before func(*world)
		want   approval.Code
	}{
		{"an owner pauses", bob, waves.Pause, "r", nil, ""},
		{"an owner rolls back", bob, waves.RollBack, "r", nil, ""},
		{"an owner does not begin waves early", bob, waves.Skip, "r", nil, approval.CodeForbidden},
		{"nor all of them", bob, waves.Finish, "r", nil, approval.CodeForbidden},
		{"the security team does", sam, waves.Finish, "r", nil, ""},
		{"others do nothing", erin, waves.Pause, "r", nil, approval.CodeForbidden},
		{"auditors only read", otto, waves.Pause, "r", nil, approval.CodeForbidden},
		{"a reason is needed", bob, waves.Pause, " ", nil, approval.CodeInvalid},
		{"a rollout that is not halted cannot be resumed", bob, waves.Resume, "r", nil, approval.CodeConflict},
		{"without a rollout", bob, waves.Pause, "r", func(w *world) { w.object.Status.Rollout.Progress = nil }, approval.CodeConflict},
		{"the host is unreachable", bob, waves.Pause, "r", func(w *world) { w.down = errors.New("down") }, approval.CodeUnavailable},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := inWaves(t)
			if tc.before != nil {
				tc.before(w)
			}
			err := w.Service.Instruct(t.Context(), tc.actor, w.entity(), tc.action, tc.text)
			var ours *approval.Error
			if got := approval.Code(""); err != nil {
				if errors.As(err, &ours) {
					got = ours.Code
				}
				if got != tc.want {
					t.Errorf("got %v, want code %q", err, tc.want)
				}
				return
			}
			if tc.want != "" {
				t.Fatalf("it is accepted, want code %q", tc.want)
			}
			if i := w.instruction(); i.Action != tc.action || i.By != tc.actor.ID || !slices.Contains(w.actions(), "resource.waves") {
				t.Errorf("the instruction is %+v, the ledger has %v", i, w.actions())
			}
		})
	}
}

// TestHintOfWaves checks that a resource is not called done while members wait for their wave.
func TestHintOfWaves(t *testing.T) {
	w := inWaves(t)
	if h := rollout.HintOf(rollout.Input{Protection: w.object, Now: w.now}); h.Code != rollout.CodeWait {
		t.Errorf("the hint is %+v", h)
	}
	w.object.Status.Rollout.Progress = nil
	w.object.Status.Rollout.Settled.AllExcept = true
	if h := rollout.HintOf(rollout.Input{Protection: w.object, Now: w.now}); h.Code != rollout.CodeDone {
		t.Errorf("the hint of a settled one is %+v", h)
	}
}

// TestProgress checks objects without a rollout.
func TestProgress(t *testing.T) {
	if rollout.Progress(nil) != nil || rollout.Progress(&v1alpha1.ProtectedResource{}) != nil {
		t.Error("there is a rollout where there is none")
	}
}
