package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/rollout"
)

// closed is a world in which m1 began to enforce a moment ago.
func closed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, v1alpha1.ModeAudit)
	w.members("m1", "m2")
	w.look()
	w.pass(time.Minute)
	w.object.Spec.ClusterModes = []v1alpha1.ClusterMode{{Cluster: "m1", Mode: v1alpha1.ModeEnforce}}
	w.report()
	w.look()
	return w
}

// TestGuardReportsUnwatchedMembersOnce checks that people are notified once for each time in which a member is not watched.
func TestGuardReportsUnwatchedMembersOnce(t *testing.T) {
	w := closed(t)
	steps := []struct {
		reason  string
		missing rollout.GapKind // in m1
		told    map[string]int  // number of notified people by event
		action  string          // the new line of the ledger, or empty
	}{
		{"all flows are seen", "", map[string]int{}, ""},
		{"nobody watches m1", rollout.GapUnwatched, map[string]int{"flows-unwatched": 2}, "resource.rollout-unseen"},
		{"nobody does for long", rollout.GapUnwatched, map[string]int{"flows-unwatched": 2}, ""},
		{"it is watched again", "", map[string]int{"flows-unwatched": 2}, "resource.rollout-seen"},
		{"flows are lost", rollout.GapLost, map[string]int{"flows-unwatched": 2, "flows-lost": 2}, "resource.rollout-unseen"},
		{"and still", rollout.GapLost, map[string]int{"flows-unwatched": 2, "flows-lost": 2}, ""},
		{"it gets worse", rollout.GapUnwatched, map[string]int{"flows-unwatched": 4, "flows-lost": 2}, "resource.rollout-unseen"},
		{"some flows are still lost", rollout.GapLost, map[string]int{"flows-unwatched": 4, "flows-lost": 2}, ""},
	}
	lines := len(w.actions())
	for _, s := range steps {
		w.pass(20 * time.Minute)
		w.missing = map[string]rollout.GapKind{"m2": rollout.GapUnwatched} // it does not enforce, so nothing can be refused there
		if s.missing != "" {
			w.missing["m1"] = s.missing
		}
		w.look()
		w.look()
		got := map[string]int{}
		for what, people := range w.told() {
			got[what] = len(people)
		}
		if diff := cmp.Diff(s.told, got); diff != "" {
			t.Errorf("%s: notified -want +got\n%s", s.reason, diff)
		}
		actions := w.actions()[lines:]
		want := []string{}
		if s.action != "" {
			want = append(want, s.action)
		}
		if diff := cmp.Diff(want, append([]string{}, actions...)); diff != "" {
			t.Errorf("%s: ledger -want +got\n%s", s.reason, diff)
		}
		lines += len(actions)
	}
}

// TestUnwatchedTimeDoesNotCountAsQuiet checks that denials after an unwatched time stop the rollout as they would have before.
func TestUnwatchedTimeDoesNotCountAsQuiet(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		missing time.Duration // from an hour after it began to enforce
		after   time.Duration // when the denials come, from then on
		want    bool
	}{
		"seen":      {"it was watched for a day", 0, 24 * time.Hour, false},
		"not seen":  {"of that day it was watched for four hours", 20 * time.Hour, 24 * time.Hour, true},
		"long over": {"it was watched for a day beside that", 20 * time.Hour, 45 * time.Hour, false},
		"bounded":   {"whoever makes flows get lost does not have the guard watch for ever", 9 * 24 * time.Hour, 9*24*time.Hour + time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := closed(t)
			w.pass(time.Hour)
			w.look()
			for passed := time.Duration(0); passed < tc.after; passed += 10 * time.Minute {
				w.missing = nil
				if passed < tc.missing {
					w.missing = map[string]rollout.GapKind{"m1": rollout.GapUnwatched}
				}
				w.pass(10 * time.Minute)
				w.look()
			}
			w.missing = nil
			w.pass(time.Minute)
			w.see("m1", cart, policy.DefaultDenied, 500)
			w.pass(time.Minute)
			w.look()
			reason, err := w.insight.Stopped(t.Context(), orders)
			if err != nil || !reason.IsZero() != tc.want {
				t.Errorf("%s: stopped %q, %v; want %t", tc.reason, reason, err, tc.want)
			}
		})
	}
}

// TestMissing checks which members are found unwatched, or with lost flows, in the flow store, and that a store that cannot be read is an error.
func TestMissing(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeEnforce)
	ago := func(minutes int) time.Time { return w.now.Add(-time.Duration(minutes) * time.Minute) }
	batch := &audit.Batch{ID: "b"}
	for member, until := range map[string]time.Time{"watched": w.now, "ended": ago(20), "lost": w.now, "lost long ago": w.now, "gap": w.now} {
		batch.Watched = append(batch.Watched, audit.WatchedSpan{Source: member, From: ago(600), To: until})
	}
	batch.Losses = []audit.Loss{
		{Cluster: "lost", Reason: audit.LossRing, Count: 1, From: ago(3), To: ago(2)},
		{Cluster: "lost long ago", Reason: audit.LossRing, Count: 1, From: ago(300), To: ago(200)},
		{Cluster: "gap", Reason: audit.LossGap, From: ago(60), To: w.now},
	}
	if err := w.flows.Append(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	got, err := w.insight.Missing(t.Context(), []string{"watched", "ended", "lost", "lost long ago", "gap", "never"}, w.now)
	want := map[string]rollout.GapKind{"ended": rollout.GapUnwatched, "lost": rollout.GapLost, "gap": rollout.GapUnwatched, "never": rollout.GapUnwatched}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if err := w.flows.Close(); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Hour)
	if _, err := w.insight.Missing(t.Context(), []string{"watched"}, w.now); err == nil {
		t.Error("a store that cannot be read says that nothing is missing")
	}
}
