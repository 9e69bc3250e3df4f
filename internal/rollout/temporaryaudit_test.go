package rollout_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/rollout"
)

var portalURL = &url.URL{Scheme: "https", Host: "acp.example.com"}

func TestTemporaryAudit(t *testing.T) {
	in := func(d time.Duration) func(time.Time) time.Time {
		return func(now time.Time) time.Time { return now.Add(d) }
	}
	for name, tc := range map[string]struct {
		reason  string
		who     approval.Actor
		mode    v1alpha1.Mode
		until   func(time.Time) time.Time
		why     string
		version string
		down    error
		gone    bool
		want    approval.Code
		actions []string
	}{
		"owner": {
			"at once, with its line", bob, v1alpha1.ModeEnforce, in(time.Hour),
			"an outage", "1", nil, false, "", []string{"resource.temporary-audit"},
		},
		"security": {"may everywhere", sam, v1alpha1.ModeEnforce, in(time.Hour), "an outage", "", nil, false, "", []string{"resource.temporary-audit"}},
		"auditor": {
			"an auditor changes nothing, whatever other roles they have", otto, v1alpha1.ModeEnforce,
			in(time.Hour), "an outage", "", nil, false, approval.CodeForbidden, []string{},
		},
		"client": {
			"the owner of a refused application opens nothing", erin, v1alpha1.ModeEnforce,
			in(time.Hour), "an outage", "", nil, false, approval.CodeForbidden, []string{},
		},
		"past": {"would be no end", bob, v1alpha1.ModeEnforce, in(0), "an outage", "", nil, false, approval.CodeInvalid, []string{}},
		"long": {
			"step by step", bob, v1alpha1.ModeEnforce, in(rollout.MaxTemporaryAudit + time.Minute),
			"an outage", "", nil, false, approval.CodeInvalid, []string{},
		},
		"reasonless": {"everybody concerned reads it", bob, v1alpha1.ModeEnforce, in(time.Hour), " ", "", nil, false, approval.CodeInvalid, []string{}},
		"long words": {
			"the object has room for less", bob, v1alpha1.ModeEnforce, in(time.Hour),
			strings.Repeat("x", 1025), "", nil, false, approval.CodeInvalid, []string{},
		},
		"open":  {"nothing is refused there", bob, v1alpha1.ModeAudit, in(time.Hour), "an outage", "", nil, false, approval.CodeConflict, []string{}},
		"stale": {"somebody changed it meanwhile", bob, v1alpha1.ModeEnforce, in(time.Hour), "an outage", "0", nil, false, approval.CodeStale, []string{}},
		"gone":  {"not onboarded", bob, v1alpha1.ModeEnforce, in(time.Hour), "an outage", "", nil, true, approval.CodeConflict, []string{}},
		"away": {"what was announced to the ledger and did not happen is said there, too", bob,
			v1alpha1.ModeEnforce, in(time.Hour), "an outage", "", errors.New("away"), false,
			approval.CodeUnavailable, []string{"resource.temporary-audit", "resource.temporary-audit-failed"}},
		"refused": {"by the host cluster's own rules", bob, v1alpha1.ModeEnforce, in(time.Hour),
			"an outage", "", &approval.RefusedError{Message: message.Verbatim("no")}, false,
			approval.CodeInvalid, []string{"resource.temporary-audit", "resource.temporary-audit-failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.mode)
			w.down = tc.down
			if tc.gone {
				w.object = nil
			}
			want := rollout.TemporaryAuditRequest{Until: tc.until(w.now), Reason: tc.why, Version: tc.version}
			o, err := w.BeginTemporaryAudit(t.Context(), tc.who, w.entity(), want)
			if approval.CodeOf(err) != tc.want {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.actions, w.actions()); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if err == nil && (o.Spec.TemporaryAudit == nil || o.Spec.TemporaryAudit.By != tc.who.ID || o.Spec.TemporaryAudit.Reason != tc.why) {
				t.Errorf("%s: %s", tc.reason, raw(o.Spec))
			}
		})
	}
}

// TestTemporaryAuditIsAnnouncedAndEnds: extended, ended by a person, or by its time.
func TestTemporaryAuditIsAnnouncedAndEnds(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeEnforce)
	begin := func(d time.Duration) {
		t.Helper()
		if _, err := w.BeginTemporaryAudit(t.Context(), bob, w.entity(), rollout.TemporaryAuditRequest{Until: w.now.Add(d), Reason: "an outage"}); err != nil {
			t.Fatal(err)
		}
	}
	begin(time.Hour)
	w.pass(time.Minute)
	begin(2 * time.Hour)
	if before := w.lines()[1].Details["before"]; before != "2026-11-02T13:00:00Z" {
		t.Errorf("an extension says what it extends: %q", before)
	}
	if _, err := w.EndTemporaryAudit(t.Context(), erin, w.entity(), "no", ""); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("a stranger ends nothing: %v", err)
	}
	if _, err := w.EndTemporaryAudit(t.Context(), sam, w.entity(), "it is over", "v1"); approval.CodeOf(err) != approval.CodeStale {
		t.Errorf("it was extended meanwhile: %v", err)
	}
	if o, err := w.EndTemporaryAudit(t.Context(), sam, w.entity(), "it is over", "v2"); err != nil || o.Spec.TemporaryAudit != nil {
		t.Errorf("it ends: %v", err)
	}
	if _, err := w.EndTemporaryAudit(t.Context(), sam, w.entity(), "again", ""); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("there is nothing to end: %v", err)
	}
	begin(time.Hour)
	w.pass(time.Hour)
	if rollout.InTemporaryAudit(w.object.Spec, w.now) {
		t.Error("it ends by itself at its instant")
	}
	if _, err := w.EndTemporaryAudit(t.Context(), sam, w.entity(), "again", ""); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("it has ended: %v", err)
	}
	want := map[string][]string{"temporary-audit": {"sam", "sam", "sam"}, "temporary-audit-ended": {"bob"}}
	if diff := cmp.Diff(want, w.told()); diff != "" {
		t.Errorf("the other side is notified, and not the actor: %s", diff)
	}
}

func TestAnnounce(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeAudit)
	clients := []string{cart, search, scanner}
	if _, err := w.Announce(t.Context(), erin, w.entity(), rollout.Notice{Message: "soon"}, clients); approval.CodeOf(err) != approval.CodeForbidden {
		t.Errorf("a stranger announces nothing: %v", err)
	}
	for reason, n := range map[string]rollout.Notice{"words": {Message: " "}, "the past": {Message: "soon", EnforceAt: w.now.Add(-time.Hour)}} {
		if _, err := w.Announce(t.Context(), bob, w.entity(), n, clients); approval.CodeOf(err) != approval.CodeInvalid {
			t.Errorf("%s: %v", reason, err)
		}
	}
	got, err := w.Announce(t.Context(), bob, w.entity(), rollout.Notice{Message: "on Monday", EnforceAt: w.now.Add(48 * time.Hour)}, clients)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rollout.Announced{Notified: 2, Unowned: []string{scanner}}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]string{"announced": {"alice", "erin"}}, w.told()); diff != "" {
		t.Errorf("the clients' owners are notified: %s", diff)
	}
	for range 3 {
		if _, err := w.Announce(t.Context(), bob, w.entity(), rollout.Notice{Message: "buy now"}, clients); approval.CodeOf(err) != approval.CodeConflict {
			t.Errorf("nobody fills others' inboxes: %v", err)
		}
	}
	w.pass(10 * time.Minute)
	if _, err := w.Announce(t.Context(), bob, w.entity(), rollout.Notice{Message: "on Tuesday"}, clients); err != nil {
		t.Errorf("it can be corrected: %v", err)
	}
	if diff := cmp.Diff(map[string][]string{"announced": {"alice", "alice", "erin", "erin"}}, w.told()); diff != "" {
		t.Errorf("each time once: %s", diff)
	}
	states, err := w.store.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in := rollout.Input{Protection: w.object, State: states[orders], Now: w.now}
	if got := rollout.StageOf(in); got != rollout.StageAnnounced {
		t.Errorf("stage %s", got)
	}
	w.look()
	if states, err = w.store.States(t.Context()); err != nil || states[orders].Announcement == nil {
		t.Errorf("it stays while the resource is in Audit: %v", err)
	}
	w.object.Spec.Mode = v1alpha1.ModeObserve
	w.look()
	if states, err = w.store.States(t.Context()); err != nil || states[orders].Announcement != nil {
		t.Errorf("back in Observe it is announced no more: %v", err)
	}
	if _, err := w.Announce(t.Context(), bob, w.entity(), rollout.Notice{Message: "soon"}, clients); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("in Observe nobody knows what would be refused: %v", err)
	}
}
