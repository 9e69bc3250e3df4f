package rollout_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/rollout"
)

// stopped reports whether the guard has opened the resource.
func (w *world) stopped() bool {
	return rollout.InTemporaryAudit(w.object.Spec, w.now) && w.object.Spec.TemporaryAudit.By == rollout.GuardName
}

// reopens has the guard open what it stops.
func (w *world) reopens() {
	w.t.Helper()
	if _, err := w.SetGuard(w.t.Context(), bob, w.entity(), rollout.Set{Reopens: new(true), Reason: "an outage is worse"}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) look() {
	w.t.Helper()
	if err := w.watcher("a").CheckAll(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// TestOnlyMembersWithDenialsAreCounted checks that the denials of a resource are counted in the members in which it has any: after a change of a class, the
// guard watches all its resources in all members, and a query for each pair of them takes half a processor with 40,000.
func TestOnlyMembersWithDenialsAreCounted(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeAudit)
	w.members("m1", "m2", "m3")
	w.look()
	w.pass(30 * time.Second)
	w.object.Spec.Mode = v1alpha1.ModeEnforce
	w.report()
	w.look() // it begins to watch the members
	w.counted = nil
	w.pass(time.Minute)
	w.see("m1", cart, policy.Allowed, 500)
	w.see("m2", "", policy.DefaultDenied, 500)
	w.pass(time.Minute)
	if w.look(); len(w.counted) != 0 {
		t.Errorf("without denials of known clients, they were counted in %q", w.counted)
	}
	w.see("m3", cart, policy.DefaultDenied, 1)
	w.pass(time.Minute)
	if w.look(); !cmp.Equal(w.counted, []string{"m3"}) {
		t.Errorf("denials were counted in %q, want m3", w.counted)
	}
}

// TestHaveDenialsOmitsNothing checks that whatever Refused counts in a window is found in every longer window, at the edges of buckets, too.
func TestHaveDenialsOmitsNothing(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeAudit)
	w.see("m1", cart, policy.DefaultDenied, 3)
	seen := w.now.Truncate(time.Minute)
	for _, end := range []time.Duration{-time.Second, 0, time.Nanosecond, time.Second, 59 * time.Second, time.Minute, 61 * time.Second} {
		for _, length := range []time.Duration{time.Second, time.Minute, 5*time.Minute + time.Nanosecond} {
			for _, more := range []time.Duration{0, time.Nanosecond, 59 * time.Second, time.Hour} {
				until := seen.Add(end)
				since := until.Add(-length)
				n, err := w.insight.Refused(t.Context(), orders, "m1", since, since, until)
				if err != nil {
					t.Fatal(err)
				}
				found, err := w.insight.HaveDenials(t.Context(), []string{orders}, since.Add(-more), until)
				if err != nil {
					t.Fatal(err)
				}
				if n > 0 && !found[rollout.MemberResource{Resource: orders, Cluster: "m1"}] {
					t.Errorf("end %s, length %s: %d are counted, and none is found in a window that is longer by %s", end, length, n, more)
				}
			}
		}
	}
	if n, err := w.insight.Refused(t.Context(), orders, "m1", seen, seen, seen); err != nil || n != 0 {
		t.Errorf("an empty window has %d denials: %v", n, err)
	}
	if n, err := w.insight.Refused(t.Context(), orders, "m1", seen, seen, seen.Add(time.Second)); err != nil || n != 3 {
		t.Errorf("the window has %d denials, want 3: %v", n, err)
	}
	others := []string{"trnv1:rsc:o:redis:clusters:nobodys"}
	if none, err := w.insight.HaveDenials(t.Context(), others, seen, seen.Add(time.Hour)); err != nil || len(none) != 0 {
		t.Errorf("another resource has denials: %v, %v", none, err)
	}
}

func TestGuard(t *testing.T) {
	one := int64(1)
	for name, tc := range map[string]struct {
		reason string
		set    rollout.Set
		before func(*world) // in Audit, before m1 enforces
		after  func(*world) // after m1 enforces
		want   bool
	}{
		"too many": {"denials of known clients above the limit", rollout.Set{}, nil, func(w *world) { w.see("m1", cart, policy.DefaultDenied, 21) }, true},
		"borne":    {"as many as may be", rollout.Set{}, nil, func(w *world) { w.see("m1", cart, policy.DefaultDenied, 20) }, false},
		"together": {"several clients count together", rollout.Set{}, nil, func(w *world) {
			w.see("m1", cart, policy.DefaultDenied, 11)
			w.see("m1", search, policy.DefaultDenied, 11)
		}, true},
		"unknown":   {"whom nobody knows opens nothing", rollout.Set{}, nil, func(w *world) { w.see("m1", "", policy.DefaultDenied, 500) }, false},
		"denied":    {"a deny is meant", rollout.Set{}, nil, func(w *world) { w.see("m1", cart, policy.Denied, 500) }, false},
		"audited":   {"passes", rollout.Set{}, nil, func(w *world) { w.see("m1", cart, policy.Audited, 500) }, false},
		"elsewhere": {"a member that does not enforce", rollout.Set{}, nil, func(w *world) { w.see("m2", cart, policy.DefaultDenied, 500) }, false},
		"nothing new": {"who was refused before it enforced is refused still", rollout.Set{}, func(w *world) {
			w.see("m1", cart, policy.DefaultDenied, 1)
			w.pass(2 * time.Minute)
		}, func(w *world) { w.see("m1", cart, policy.DefaultDenied, 500) }, false},
		"somebody else": {"of two clients one was refused before", rollout.Set{}, func(w *world) {
			w.see("m1", cart, policy.DefaultDenied, 1)
			w.pass(2 * time.Minute)
		}, func(w *world) {
			w.see("m1", cart, policy.DefaultDenied, 500)
			w.see("m1", search, policy.DefaultDenied, 21)
		}, true},
		"earlier": {
			"what was refused before it enforced is nothing new", rollout.Set{},
			func(w *world) { w.see("m1", cart, policy.DefaultDenied, 500) }, nil, false,
		},
		"slowly": {"not within the window", rollout.Set{}, nil, func(w *world) {
			for range 10 {
				w.see("m1", cart, policy.DefaultDenied, 10)
				w.look()
				w.pass(4 * time.Minute)
			}
		}, false},
		"later": {"a resource that has been closed for long is not opened by whoever knocks", rollout.Set{}, nil, func(w *world) {
			w.look()
			w.pass(25 * time.Hour)
			w.see("m1", cart, policy.DefaultDenied, 500)
		}, false},
		"requests": {"requests of a client whose connections are let in", rollout.Set{},
			func(w *world) { w.see("m1", cart, policy.Allowed, 500) }, func(w *world) {
				w.see("m1", cart, policy.Allowed, 500)
				w.request("m1", cart, "", 21)
			}, true},
		"few requests": {"as many as may be", rollout.Set{}, nil, func(w *world) { w.request("m1", cart, "redis:write", 20) }, false},
		"same requests": {"refused before it enforced", rollout.Set{}, func(w *world) {
			w.request("m1", cart, "redis:write", 1)
			w.pass(2 * time.Minute)
		}, func(w *world) { w.request("m1", cart, "redis:write", 500) }, false},
		"other requests": {"another action is something new", rollout.Set{}, func(w *world) {
			w.request("m1", cart, "redis:write", 1)
			w.pass(2 * time.Minute)
		}, func(w *world) { w.request("m1", cart, "redis:read", 21) }, true},
		"off": {
			"somebody does not want it", rollout.Set{Enabled: new(false)}, nil,
			func(w *world) { w.see("m1", cart, policy.DefaultDenied, 500) }, false,
		},
		"long window": {"as it was set", rollout.Set{Window: new(time.Hour)}, nil, func(w *world) {
			w.look()
			w.see("m1", cart, policy.DefaultDenied, 21)
			w.pass(30 * time.Minute)
		}, true},
		"other limit": {"as it was set", rollout.Set{Limit: &one}, nil, func(w *world) { w.see("m1", cart, policy.DefaultDenied, 2) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, v1alpha1.ModeAudit)
			w.members("m1", "m2")
			tc.set.Reason, tc.set.Reopens = "test", new(true)
			if _, err := w.SetGuard(t.Context(), bob, w.entity(), tc.set); err != nil {
				t.Fatal(err)
			}
			if tc.before != nil {
				tc.before(w)
			}
			w.look()
			w.pass(30 * time.Second)
			w.object.Spec.ClusterModes = []v1alpha1.ClusterMode{{Cluster: "m1", Mode: v1alpha1.ModeEnforce}}
			w.report()
			w.look()
			w.pass(time.Minute)
			if tc.after != nil {
				tc.after(w)
			}
			w.pass(time.Minute)
			w.look()
			w.look() // nothing is told twice
			if w.stopped() != tc.want {
				t.Fatalf("%s: stopped %v: %v", tc.reason, w.stopped(), w.actions())
			}
			reason, err := w.insight.Stopped(t.Context(), orders)
			if err != nil || !reason.IsZero() != tc.want {
				t.Errorf("%s: nobody closes it further: %q, %v", tc.reason, reason, err)
			}
			if !tc.want {
				if len(w.halted) > 0 || len(w.told()) > 0 {
					t.Errorf("%s: %v %v", tc.reason, w.halted, w.told())
				}
				return
			}
			if diff := cmp.Diff([]string{"resource.rollout-guard", "resource.temporary-audit", "resource.rollout-stopped"}, w.actions()); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			for _, e := range w.lines()[1:] { // the guard's own reason can be shown in every language
				if got := e.Texts()["reason"]; got != reason {
					t.Errorf("%s: the reason of %s is %+v, want %+v", tc.reason, e.Action, got, reason)
				}
			}
			if diff := cmp.Diff(map[string][]string{"stopped": {"bob", "sam"}}, w.told()); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if len(w.halted) != 1 || !strings.Contains(w.halted[0], "orders: ") {
				t.Errorf("%s: %v", tc.reason, w.halted)
			}
		})
	}
}

// TestGuardOpensNothing checks that denied connections open nothing unless the guard is configured to do so.
func TestGuardOpensNothing(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeEnforce)
	w.members("m1")
	w.look()
	w.pass(2 * time.Minute)
	w.see("m1", cart, policy.DefaultDenied, 30)
	for range 3 { // nothing is told twice
		w.look()
		w.pass(time.Minute)
	}
	if w.stopped() || rollout.InTemporaryAudit(w.object.Spec, w.now) {
		t.Error("the resource was opened")
	}
	if s, err := w.insight.Stopped(t.Context(), orders); s.IsZero() || err != nil {
		t.Errorf("nobody closes it further: %q, %v", s, err)
	}
	if diff := cmp.Diff([]string{"resource.rollout-stopped"}, w.actions()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]string{"stopped": {"bob", "sam"}}, w.told()); diff != "" {
		t.Error(diff)
	}
	if len(w.halted) != 1 {
		t.Errorf("requests to close it further: %v", w.halted)
	}
	if _, err := w.SetGuard(t.Context(), bob, w.entity(), rollout.Set{Arm: true, Reason: "cart has its grant"}); err != nil {
		t.Fatal(err)
	}
	w.look()
	if s, err := w.insight.Stopped(t.Context(), orders); !s.IsZero() || err != nil {
		t.Errorf("what was refused before it was armed counts no more: %q, %v", s, err)
	}
}

// TestGuardIsArmedAgain checks that a person can arm the guard again after its temporary audit has ended, and that enforcement is then watched anew.
func TestGuardIsArmedAgain(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeEnforce)
	w.members("m1")
	w.reopens()
	w.look()
	w.pass(2 * time.Minute)
	w.see("m1", cart, policy.DefaultDenied, 30)
	w.look()
	if !w.stopped() {
		t.Fatal("not stopped")
	}
	if _, err := w.SetGuard(t.Context(), erin, w.entity(), rollout.Set{Arm: true, Reason: "r"}); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("a stranger arms nothing: %v", err)
	}
	if g, err := w.SetGuard(t.Context(), bob, w.entity(), rollout.Set{Arm: true, Reason: "cart has its grant"}); err != nil || g.Stop != nil {
		t.Fatalf("%+v, %v", g, err)
	}
	if _, err := w.SetGuard(t.Context(), bob, w.entity(), rollout.Set{Arm: true, Reason: "again"}); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("it is armed: %v", err)
	}
	w.look()
	if s, err := w.insight.Stopped(t.Context(), orders); !s.IsZero() || err != nil {
		t.Errorf("what was armed while the temporary audit lasts stays armed: %q, %v", s, err)
	}
	w.pass(24 * time.Hour)
	if w.stopped() {
		t.Fatal("the temporary audit ends by itself")
	}
	w.look()
	w.pass(2 * time.Minute)
	w.see("m1", search, policy.DefaultDenied, 30)
	w.look()
	if !w.stopped() {
		t.Error("it enforces anew, so it is watched anew")
	}
}

// TestGuardCompletesAnInterruptedStop interrupts a stop before and after the resource was opened.
func TestGuardCompletesAnInterruptedStop(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeEnforce)
	w.members("m1")
	w.reopens()
	w.look()
	w.pass(2 * time.Minute)
	w.see("m1", cart, policy.DefaultDenied, 30)
	w.down = errors.New("away")
	if err := w.watcher("a").CheckAll(t.Context()); err == nil {
		t.Fatal("the host cluster is away")
	}
	w.down = nil
	w.look()
	if _, err := w.store.Change(
		t.Context(),
		orders,
		func(s *rollout.State) (rollout.News, error) { s.Guard.Stop = nil; return rollout.News{}, nil },
	); err != nil {
		t.Fatal(err) // as if this had not been stored
	}
	w.pass(time.Minute)
	w.look()
	if s, err := w.insight.Stopped(t.Context(), orders); s.IsZero() || err != nil {
		t.Errorf("the rest is done at the next look: %q, %v", s, err)
	}
}

// TestOneReplicaWatches checks that another replica takes over when the watching one ends.
func TestOneReplicaWatches(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeEnforce)
	lead := func(who string) bool {
		t.Helper()
		ok, err := w.store.Lead(t.Context(), who, w.now, 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !lead("a") || lead("b") || !lead("a") {
		t.Error("one leads, and goes on leading")
	}
	w.now = w.now.Add(3 * time.Second)
	if !lead("b") || lead("a") {
		t.Error("another one leads when its time is over")
	}
}

func TestSetGuardIsBounded(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeEnforce)
	minus, many, short, long := int64(-1), int64(rollout.MaxGuardLimit+1), time.Second, 25*time.Hour
	for reason, s := range map[string]rollout.Set{"no reason": {}, "negative": {Limit: &minus, Reason: "r"}, "too many": {Limit: &many, Reason: "r"},
		"too short": {Window: &short, Reason: "r"}, "too long": {Window: &long, Reason: "r"}} {
		if _, err := w.SetGuard(t.Context(), bob, w.entity(), s); approval.CodeOf(err) != approval.CodeInvalid {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestPersonNamedLikeTheGuard checks that a person with the name of the guard is treated as a person.
func TestPersonNamedLikeTheGuard(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeEnforce)
	_, name, _ := strings.Cut(rollout.GuardName, ":")
	if _, err := w.BeginTemporaryAudit(
		t.Context(),
		approval.Actor{ID: name, Security: true},
		w.entity(),
		rollout.TemporaryAuditRequest{Until: w.now.Add(48 * time.Hour), Reason: "an outage"},
	); err != nil {
		t.Fatal(err)
	}
	w.look()
	if w.stopped() || len(w.told()["stopped"]) > 0 {
		t.Errorf("the temporary audit of a person is taken for a stop: %v", w.told())
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "people.yaml"), []byte("{kind: User, metadata: {name: \""+rollout.GuardName+"\"}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Read(dir); err == nil {
		t.Error("a catalog can have a person with the guard's name")
	}
}
