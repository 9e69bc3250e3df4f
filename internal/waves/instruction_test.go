package waves_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/waves"
)

func TestInstruction(t *testing.T) {
	good := waves.New(waves.Skip, "sam", "the canary is fine", begin)
	o := &v1alpha1.ProtectedResource{}
	if got, err := waves.InstructionOf(o); got != nil || err != nil {
		t.Errorf("without annotation: %v, %v", got, err)
	}
	o.Annotations = map[string]string{v1alpha1.AnnotationRollout: good.String()}
	got, err := waves.InstructionOf(o)
	if err != nil || !cmp.Equal(got, &good) {
		t.Errorf("got %+v, %v, want %+v", got, err, good)
	}
	for _, text := range []string{"skip", `{}`, `{"id":"1","action":"odd","by":"a","reason":"r"}`, `{"id":"1","action":"skip","by":"a"}`,
		`{"id":"1","action":"pause","by":"a","reason":"r","halt":"RolledBack"}`} {
		o.Annotations[v1alpha1.AnnotationRollout] = text
		if got, err := waves.InstructionOf(o); err == nil {
			t.Errorf("%s is accepted: %+v", text, got)
		}
	}
}

// TestInstructionAppliedAgain checks that an old instruction has no effect if it is applied again after another one, and that this is reported.
// The ledger has each instruction once, and would not show that it was carried out again.
func TestInstructionAppliedAgain(t *testing.T) {
	f := newFleet(t)
	f.step().do(waves.Finish)
	finish := f.in.Instruction
	f.pass(time.Minute).do(waves.RollBack)
	rollback := f.in.Instruction
	stopped := func(reason string) {
		t.Helper()
		if got := f.enforced(); len(got) > 0 || f.halt() != v1alpha1.HaltRolledBack {
			t.Errorf("%s: enforced in %v, halted because of %q", reason, got, f.halt())
		}
		if f.in.Status.Instruction != f.in.Instruction.ID || !f.in.Status.InstructionAt.Time.Equal(rollback.At) {
			t.Errorf("%s: the last instruction is %s of %s", reason, f.in.Status.Instruction, f.in.Status.InstructionAt)
		}
	}
	stopped("the rollback")
	again := func(reason string, i waves.Instruction) {
		t.Helper()
		before := len(f.changes)
		f.in.Instruction = &i
		f.pass(time.Minute)
		stopped(reason)
		if got := f.changes[before:]; !slices.Equal(got, []waves.Change{waves.Ignored}) {
			t.Errorf("%s: reported %v, want that it was ignored, once", reason, got)
		}
	}
	again("the first one again", *finish)
	again("the rollback again", *rollback)
	again("the first one once more", *finish)
	forged := *finish
	forged.ID = "another"
	again("the first one with another id", forged)
	again("at the same time as the last one", waves.Instruction{ID: "same", Action: waves.Finish, By: "sam", Reason: "r", At: rollback.At.Add(time.Nanosecond)})
	again("without a time", waves.Instruction{ID: "none", Action: waves.Finish, By: "sam", Reason: "r"})
	again("in the future", waves.Instruction{ID: "future", Action: waves.Finish, By: "sam", Reason: "r", At: f.in.Now.Add(waves.MaxAhead + time.Hour)})

	// A new one is carried out, also by somebody whose clock is behind that of the last author.
	behind := waves.New(waves.Finish, "tom", "because", rollback.At.Add(-time.Hour)).LaterThan(f.in.Status.InstructionAt)
	f.in.Instruction = &behind
	if f.step(); len(f.enforced()) != 5 {
		t.Errorf("after a new instruction enforced in %v, want all", f.enforced())
	}
}

// TestInstructionOfAnEarlierVersion checks that the time of an instruction is recorded which an adapter without this field has carried out.
func TestInstructionOfAnEarlierVersion(t *testing.T) {
	f := newFleet(t)
	f.step().do(waves.Pause)
	f.in.Status.InstructionAt = nil
	if f.step(); f.in.Status.InstructionAt != nil {
		t.Error("the time alone changes the status, which CRDs of an earlier version do not store")
	}
	f.in.Status.Progress.Halt = nil
	f.step().pass(time.Hour) // the next wave begins
	if f.in.Status.InstructionAt == nil || !f.in.Status.InstructionAt.Time.Equal(f.in.Instruction.At) {
		t.Errorf("the time is %v, want %v", f.in.Status.InstructionAt, f.in.Instruction.At)
	}
}
