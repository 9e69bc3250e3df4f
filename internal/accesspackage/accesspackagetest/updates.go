package accesspackagetest

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/message"
)

// ForHolders returns the canonical JSON of a version with one resource, which these applications are given.
func ForHolders(t *testing.T, title string, applications ...string) json.RawMessage {
	t.Helper()
	spec, err := accesspackage.ParseSpec(Content(t, title))
	if err != nil {
		t.Fatal(err)
	}
	spec.Holders = map[string]accesspackage.HolderChange{}
	for _, a := range applications {
		spec.Holders[a] = accesspackage.HolderChange{Gets: map[string][]string{"trnv1:rsc:a": {"connect"}}}
	}
	text, err := spec.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func updates(t *testing.T, s accesspackage.Store) {
	ctx := t.Context()
	content := ForHolders(t, "Two", "b", "a")
	for _, p := range []accesspackage.Publication{
		{Name: "pay", Content: Content(t, "One"), Ticket: 1, By: "alice", At: at},
		{Name: "pay", Base: 1, Content: content, Ticket: 2, By: "alice", At: at},
		{Name: "pay", Base: 1, Content: content, Ticket: 2, By: "alice", At: at}, // again, after a crash
	} {
		if err := s.Publish(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := s.Version(ctx, "pay", 1); err != nil || v.Number != 1 || v.Ticket != 1 {
		t.Errorf("version 1: %+v, %v", v, err)
	}
	if _, err := s.Version(ctx, "pay", 3); !errors.Is(err, accesspackage.ErrUnknown) {
		t.Errorf("a version that does not exist: %v", err)
	}
	open := func(want ...accesspackage.Update) {
		t.Helper()
		got, err := s.OpenUpdates(ctx, 5)
		if d := cmp.Diff(want, got); err != nil || len(want)+len(got) > 0 && d != "" {
			t.Errorf("open updates (-want +got), %v:\n%s", err, d)
		}
	}
	u := accesspackage.Update{Package: "pay", Version: 2, State: accesspackage.UpdateQueued}
	open(u)
	begun := at.Add(time.Minute)
	for _, when := range []time.Time{begun, begun.Add(time.Minute)} { // the second time changes nothing
		if err := s.BeginUpdate(ctx, u, when); err != nil {
			t.Fatal(err)
		}
	}
	u.State, u.BegunAt = accesspackage.UpdateRunning, begun
	open(u)
	holder := func(application string) accesspackage.HolderUpdate {
		return accesspackage.HolderUpdate{Package: "pay", Version: 2, Application: application, State: accesspackage.HolderPending, UpdatedAt: at}
	}
	filter := accesspackage.HolderFilter{Package: "pay", Version: 2}
	a, b := holder("a"), holder("b")
	check := func(f accesspackage.HolderFilter, want ...accesspackage.HolderUpdate) {
		t.Helper()
		got, err := s.HolderUpdates(ctx, f)
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("applications (-want +got), %v:\n%s", err, d)
		}
	}
	check(filter, a, b)
	a.State, a.Ticket, a.UpdatedAt, a.Message = accesspackage.HolderWaiting, 7, begun, message.AccessPackageHolderLeft("a")
	a.Plan = accesspackage.Plan{Revoke: []accesspackage.Access{{Ticket: 3, Item: 1}}, Give: []accesspackage.Addition{{Resource: "r", Actions: []string{"x"},
		DurationSeconds: 300, Until: at}}, Problem: message.AccessPackageHolderEnds("a")}
	for i, want := range []bool{true, false} { // the second time it is not pending
		if saved, err := s.SaveHolder(ctx, a, accesspackage.HolderPending); err != nil || saved != want {
			t.Errorf("attempt %d: %v, %v", i+1, saved, err)
		}
	}
	check(filter, a, b)
	filter.States, filter.Limit = []accesspackage.HolderState{accesspackage.HolderWaiting, accesspackage.HolderPending}, 1
	check(filter, a)
	if err := s.EndUpdate(ctx, u, message.Message{}, begun); err != nil {
		t.Fatal(err)
	}
	open(u) // not every application is done
	a.State, b.State = accesspackage.HolderDone, accesspackage.HolderSkipped
	for _, h := range []accesspackage.HolderUpdate{a, b} {
		from := map[string]accesspackage.HolderState{"a": accesspackage.HolderWaiting, "b": accesspackage.HolderPending}[h.Application]
		if saved, err := s.SaveHolder(ctx, h, from); err != nil || !saved {
			t.Fatal(saved, err)
		}
	}
	end := begun.Add(time.Hour)
	for _, when := range []time.Time{end, end.Add(time.Hour)} { // the second time changes nothing
		if err := s.EndUpdate(ctx, u, message.Message{}, when); err != nil {
			t.Fatal(err)
		}
	}
	open()
	u.State, u.EndedAt = accesspackage.UpdateCompleted, end
	if got, err := s.UpdatesOf(ctx, "pay", 5); err != nil || cmp.Diff([]accesspackage.Update{u}, got) != "" {
		t.Errorf("the updates of the package: %+v, %v", got, err)
	}
}

func stopped(t *testing.T, s accesspackage.Store) {
	ctx := t.Context()
	if err := s.Publish(ctx, accesspackage.Publication{Name: "pay", Content: ForHolders(t, "One", "a"), Ticket: 1, By: "alice", At: at}); err != nil {
		t.Fatal(err)
	}
	u, reason := accesspackage.Update{Package: "pay", Version: 1}, message.AccessPackageUpdateArchived("pay")
	h := accesspackage.HolderUpdate{Package: "pay", Version: 1, Application: "a", State: accesspackage.HolderSkipped, Message: reason, UpdatedAt: at}
	if _, err := s.SaveHolder(ctx, h, accesspackage.HolderPending); err != nil {
		t.Fatal(err)
	}
	if err := s.EndUpdate(ctx, u, reason, at); err != nil {
		t.Fatal(err)
	}
	u.State, u.Reason, u.EndedAt = accesspackage.UpdateStopped, reason, at
	if got, err := s.UpdatesOf(ctx, "pay", 1); err != nil || cmp.Diff([]accesspackage.Update{u}, got) != "" {
		t.Errorf("the update: %+v, %v", got, err)
	}
}
