package holderupdate

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
)

// TestUpdate checks what a holder gets, loses and keeps without a decision, and that an application which left is skipped.
func TestUpdate(t *testing.T) {
	w := newWorld(t)
	w.publish(false, first)
	a := w.holds("a")
	b := w.holds("b")
	ends := w.get(a).Items[0].ExpiresAt
	w.now = w.now.Add(10 * 24 * time.Hour)
	x := w.requestUpdate(true, second)
	for i := range w.get(b).Items {
		if _, err := w.svc.Revoke(t.Context(), approval.Actor{ID: "alice"}, b, i, "not needed"); err != nil {
			t.Fatal(err)
		}
	}
	w.approve(x, "lee", "bob")
	if u, holders := w.update(2); u.State != accesspackage.UpdateQueued || len(holders) != 2 {
		t.Fatalf("the update %+v of %v", u, holders)
	}
	w.round()
	w.round()
	u, holders := w.update(2)
	if u.State != accesspackage.UpdateCompleted || holders["a"].State != accesspackage.HolderDone || holders["b"].State != accesspackage.HolderSkipped {
		t.Errorf("the update is %s: %+v", u.State, holders)
	}
	if d := cmp.Diff([]string{"kept/x:read", "less/x:read", "more/x:read"}, w.access("a")); d != "" {
		t.Errorf("a has (-want +got):\n%s", d)
	}
	if got := w.access("b"); len(got) > 0 {
		t.Errorf("b has %v", got)
	}
	g := w.get(holders["a"].Ticket)
	for _, it := range g.Items {
		if it.ExpiresAt.After(ends) || it.ExpiresAt.IsZero() {
			t.Errorf("%s ends at %s, after what a held: %s", it.ResourceName, it.ExpiresAt, ends)
		}
	}
	kept := slices.IndexFunc(w.get(a).Items, func(it approval.Item) bool { return it.ResourceName == "name:kept" })
	if it := w.get(a).Items[kept]; it.State != approval.StateEffective || !it.ExpiresAt.Equal(ends) {
		t.Errorf("what a keeps was changed: %s %s", it.State, it.ExpiresAt)
	}
	begun, completed := w.entries("package.holders-begun"), w.entries("package.holders-completed")
	if len(begun) != 1 || len(completed) != 1 || begun[0].Details["applications"] != "2" || completed[0].Details["done"] != "1" ||
		completed[0].Details["skipped"] != "1" || begun[0].Actor != "" {
		t.Errorf("the ledger: %+v, %+v", begun, completed)
	}
}

// TestUpdateResumes stops the worker at each point, as a crash does, and checks that another replica completes the update, with one ticket for
// each application, and one revocation of each access.
func TestUpdateResumes(t *testing.T) {
	crash := errors.New("crash")
	points := 0
	for stop := 0; ; stop++ {
		w := newWorld(t)
		w.publish(false, first)
		a := w.holds("a")
		w.holds("b")
		w.publish(true, second)
		n, at := 0, ""
		worker := w.worker("one")
		worker.step = func(point string) {
			if n++; n == stop {
				at = point
				panic(crash)
			}
		}
		func() {
			defer func() {
				if r := recover(); r != nil && r != any(crash) {
					panic(r)
				}
			}()
			for range 2 {
				if err := worker.Once(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.effective()
			}
		}()
		if at == "" && stop > 0 {
			points = stop - 1
			break
		}
		w.now = w.now.Add(2 * lease)
		for range 3 {
			if err := w.worker("two").Once(t.Context()); err != nil {
				t.Fatalf("after %q: %v", at, err)
			}
			w.effective()
		}
		u, holders := w.update(2)
		if u.State != accesspackage.UpdateCompleted {
			t.Errorf("after %q: the update is %s: %+v", at, u.State, holders)
		}
		for _, app := range []string{"a", "b"} {
			if d := cmp.Diff([]string{"kept/x:read", "less/x:read", "more/x:read"}, w.access(app)); d != "" || holders[app].State != accesspackage.HolderDone {
				t.Errorf("after %q: %s is %s and has (-want +got):\n%s", at, app, holders[app].State, d)
			}
			given, err := w.store.List(t.Context(), approval.Filter{Requester: "pat", Applications: []string{"name:" + app}})
			if err != nil || len(given) != 1 {
				t.Errorf("after %q: %d tickets for %s, %v", at, len(given), app, err)
			}
		}
		revoked := 0
		for _, e := range w.get(a).Events {
			if e.Kind == approval.EventRevokeRequested {
				revoked++
			}
		}
		if revoked != 2 {
			t.Errorf("after %q: %d revocations of two accesses", at, revoked)
		}
		if n := len(w.entries("package.holders-begun")); n != 1 {
			t.Errorf("after %q: the ledger says %d times that it began", at, n)
		}
	}
	if points < 10 {
		t.Errorf("the worker was stopped at %d points only", points)
	}
}

// TestUpdateWaitsForDecisions checks that revocations do not wait for the decisions about what is given, and what becomes of the application.
func TestUpdateWaitsForDecisions(t *testing.T) {
	for name, want := range map[string]accesspackage.HolderState{"approved": accesspackage.HolderDone, "rejected": accesspackage.HolderFailed} {
		w := newWorld(t)
		w.publish(false, first)
		w.holds("a")
		w.publish(true, second)
		w.requireDecisions()
		w.round()
		u, holders := w.update(2)
		if d := cmp.Diff([]string{"kept/x:read"}, w.access("a")); d != "" || u.State != accesspackage.UpdateRunning ||
			holders["a"].State != accesspackage.HolderWaiting {
			t.Errorf("%s: before the decision the update is %s, a is %s, with (-want +got):\n%s", name, u.State, holders["a"].State, d)
		}
		n := holders["a"].Ticket
		if want == accesspackage.HolderDone {
			w.approve(n, "bob")
		} else if _, err := w.svc.Decide(t.Context(), approval.Actor{ID: "bob"}, n, approval.EveryItem, w.get(n).Version, false, "no"); err != nil {
			t.Fatal(err)
		}
		w.round()
		u, holders = w.update(2)
		if u.State != accesspackage.UpdateCompleted || holders["a"].State != want || (want == accesspackage.HolderFailed) == holders["a"].Message.IsZero() {
			t.Errorf("%s: the update is %s: %+v", name, u.State, holders)
		}
	}
}

// TestUpdateStops checks that an archived package, or a later version, ends the update at each of its states.
func TestUpdateStops(t *testing.T) {
	for _, later := range []bool{false, true} {
		w := newWorld(t)
		w.publish(false, first)
		w.holds("a")
		w.holds("b")
		w.publish(true, second)
		w.requireDecisions()
		worker := w.worker("one")
		func() {
			defer func() { _ = recover() }()
			worker.step = func(point string) {
				if point == "ticket submitted" { // before it is recorded
					panic(point)
				}
			}
			_ = worker.Once(t.Context())
		}()
		if later {
			w.host.Policies = nil
			w.publish(false, first)
		} else if err := w.packages.Archive(t.Context(), "pay", "pat", w.now); err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(2 * lease)
		w.round()
		u, holders := w.update(2)
		if u.State != accesspackage.UpdateStopped || u.Reason.IsZero() || holders["a"].State != accesspackage.HolderFailed ||
			holders["b"].State != accesspackage.HolderSkipped || holders["b"].Message != u.Reason {
			t.Errorf("later version %v: the update is %s (%s): %+v", later, u.State, u.Reason.Text, holders)
		}
		if g := w.get(holders["a"].Ticket); g.State() != approval.StateWithdrawn {
			t.Errorf("later version %v: its ticket is %s", later, g.State())
		}
		if got := w.access("a"); slices.Contains(got, "more/x:read") {
			t.Errorf("later version %v: a has %v", later, got)
		}
		if e := w.entries("package.holders-stopped"); len(e) != 1 || e[0].Details["reason"] == "" {
			t.Errorf("later version %v: the ledger: %+v", later, e)
		}
	}
}

// TestUpdateWaitsForAnotherTicket checks that an application whose owner requested the same waits for that, and gets the rest.
func TestUpdateWaitsForAnotherTicket(t *testing.T) {
	w := newWorld(t)
	w.publish(false, map[string][]string{"kept": {"x:read"}})
	w.holds("a")
	own := w.submit("alice", approval.Request{Items: []approval.RequestItem{{Application: "a", Resource: "more", Actions: []string{"x:read"},
		Duration: time.Hour}}})
	w.publish(true, map[string][]string{"kept": {"x:read"}, "more": {"x:read"}})
	w.round()
	if _, holders := w.update(2); holders["a"].State != accesspackage.HolderRevoked || holders["a"].Message.IsZero() {
		t.Fatalf("a is %+v", holders["a"])
	}
	w.approve(own, "carol", "bob")
	w.now = w.now.Add(duplicateRetry)
	w.round()
	if u, holders := w.update(2); u.State != accesspackage.UpdateCompleted || holders["a"].State != accesspackage.HolderDone {
		t.Errorf("the update is %s: %+v", u.State, holders)
	}
	if got := w.get(own).Items[0]; got.Duration != time.Hour {
		t.Errorf("the access of its own was changed: %s", got.Duration)
	}
}

// TestOneReplicaWorks checks that a second replica does nothing while the lease is held.
func TestOneReplicaWorks(t *testing.T) {
	w := newWorld(t)
	w.publish(false, first)
	w.holds("a")
	w.publish(true, second)
	if leads, err := w.packages.Lead(t.Context(), "one", w.now, lease); err != nil || !leads {
		t.Fatal(leads, err)
	}
	if err := w.worker("two").Once(t.Context()); !errors.Is(err, errNotLeading) {
		t.Errorf("the second replica: %v", err)
	}
	if u, _ := w.update(2); u.State != accesspackage.UpdateQueued {
		t.Errorf("the update is %s", u.State)
	}
}

// TestRoundsAreBounded checks that a round begins with a bounded number of applications, and that all are done in the end.
func TestRoundsAreBounded(t *testing.T) {
	w := newWorld(t)
	var applications []string
	for i := range maxApplications + 5 {
		applications = append(applications, fmt.Sprintf("name:none-%02d", i))
	}
	w.queue(applications...)
	w.round()
	left := func() int {
		t.Helper()
		list, err := w.packages.HolderUpdates(t.Context(), accesspackage.HolderFilter{Package: "pay", Version: 1,
			States: []accesspackage.HolderState{accesspackage.HolderPending}})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := left(); n != 5 {
		t.Errorf("%d applications are left after a round, want 5", n)
	}
	w.round()
	if u, _ := w.update(1); left() != 0 || u.State != accesspackage.UpdateCompleted {
		t.Errorf("%d applications are left, and the update is %s", left(), u.State)
	}
}

// TestAfterRestore checks that updates in progress end, with what was not begun skipped.
func TestAfterRestore(t *testing.T) {
	w := newWorld(t)
	w.queue("name:a", "name:b")
	if _, err := w.packages.SaveHolder(t.Context(), accesspackage.HolderUpdate{Package: "pay", Version: 1, Application: "name:a",
		State: accesspackage.HolderWaiting, Ticket: 1}, accesspackage.HolderPending); err != nil {
		t.Fatal(err)
	}
	ended, err := AfterRestore(t.Context(), w.packages, w.now, w.now.Add(time.Hour))
	if err != nil || !slices.Equal(ended, []string{"pay/1"}) {
		t.Fatalf("%v, %v", ended, err)
	}
	u, holders := w.update(1)
	if u.State != accesspackage.UpdateStopped || holders["a"].State != accesspackage.HolderFailed || holders["b"].State != accesspackage.HolderSkipped {
		t.Errorf("the update is %s: %+v", u.State, holders)
	}
}
