package gormstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/waves"
)

// instruction is an instruction about the waves of an object.
func (s *scene) instruction(object string, action waves.Action, by string) externalchanges.Instructed {
	return externalchanges.Instructed{Kind: externalchanges.KindProtectedResource, Object: object, Resource: "trnv1:" + object,
		Instruction: waves.New(action, by, "because", s.now)}
}

// instruct gives an instruction in the host cluster, which every portal that runs sees.
func (s *scene) instruct(i externalchanges.Instructed) {
	s.mu.Lock()
	s.instructions[i.Object] = i
	s.mu.Unlock()
	for _, r := range s.watch {
		r.NoticeInstruction(i)
	}
}

// give gives an instruction as the portal does.
func (s *scene) give(i externalchanges.Instructed) {
	s.t.Helper()
	if err := s.store.AddOwnInstruction(s.t.Context(), i); err != nil {
		s.t.Fatal(err)
	}
	s.instruct(i)
}

// wantInstructions compares the lines about instructions, as "OBJECT ACTION BY".
func (s *scene) wantInstructions(want ...string) {
	s.t.Helper()
	lines, _, err := ledgerstore.NewReader(s.db).List(s.t.Context(), ledger.Filter{Action: externalchanges.ActionInstructed})
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, l := range slices.Backward(lines) {
		e, err := l.Entry()
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Actor != externalchanges.Unknown {
			s.t.Errorf("the actor %q is not verified", e.Actor)
		}
		got = append(got, e.Object+" "+e.Details["do"]+" "+e.Details["statedBy"])
	}
	if d := cmp.Diff(want, got); d != "" {
		s.t.Fatal(d)
	}
}

// TestInstructionsAreRecorded checks that each instruction from outside of the portal is recorded once, whatever the number of portals and
// of their starts, and that those of the portal are not.
func TestInstructionsAreRecorded(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn)
		s.instruct(s.instruction("bobs", waves.Pause, "before"))
		s.portals(2)
		s.wantInstructions() // none: an instruction that the first portal finds when it starts gets no line

		first := s.instruction("bobs", waves.Resume, "alice")
		s.instruct(first)
		s.step()
		want := []string{"ProtectedResource/bobs resume alice"}
		s.wantInstructions(want...)

		s.after(time.Minute)
		own := s.instruction("bobs", waves.Pause, "bob")
		s.give(own)
		s.after(time.Minute)
		guard := s.instruction("bobs", waves.Pause, waves.Guard)
		s.give(guard)
		s.after(time.Minute)
		s.wantInstructions(want...)

		s.instruct(s.instruction("bobs", waves.Skip, waves.Guard)) // anybody can claim to be the guard
		s.instruct(s.instruction("bobs", waves.Finish, "carol"))   // two in a row
		s.step()
		want = append(want, "ProtectedResource/bobs skip "+waves.Guard, "ProtectedResource/bobs finish carol")
		s.wantInstructions(want...)

		s.instruct(first) // applied again, which the adapter ignores
		s.step()
		s.wantInstructions(want...)

		forged := own // the id of one of the portal's, with another action
		forged.Action = waves.Finish
		s.instruct(forged)
		s.step()
		want = append(want, "ProtectedResource/bobs finish bob")
		s.wantInstructions(want...)

		s.watch = nil // No portal runs.
		s.after(time.Minute)
		s.instruct(s.instruction("bobs", waves.RollBack, "dave"))
		s.portals(2)
		s.portals(1)
		s.after(2 * time.Hour) // compared again
		want = append(want, "ProtectedResource/bobs rollback dave")
		s.wantInstructions(want...)
	})
}

// TestInstructionOfSeveralResources checks that one instruction that is given to several resources has a line for each, with the ID of
// the catalog where it is known, and what the instruction states.
func TestInstructionOfSeveralResources(t *testing.T) {
	s := newScene(t, databasetest.SQLite(t))
	s.portals(1)
	s.watch[0].ResourceID = func(name string) string {
		if name == "trnv1:bobs" {
			return "bobs-cluster"
		}
		return ""
	}
	for _, object := range []string{"bobs", "alices"} {
		s.instruct(s.instruction(object, waves.Pause, "alice"))
	}
	s.step()
	s.wantInstructions("bobs-cluster pause alice", "ProtectedResource/alices pause alice")
	lines, _, err := ledgerstore.NewReader(s.db).List(t.Context(), ledger.Filter{Object: "bobs-cluster"})
	if err != nil || len(lines) != 1 {
		t.Fatal(len(lines), err)
	}
	e, err := lines[0].Entry()
	want := map[string]string{"instruction": s.instructions["bobs"].ID, "do": "pause", "statedBy": "alice", "reason": "because",
		"at": "2026-11-22T10:00:00Z", "resource": "trnv1:bobs", "object": "ProtectedResource/bobs"}
	if d := cmp.Diff(want, e.Details); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}
