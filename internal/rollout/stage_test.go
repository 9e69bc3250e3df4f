package rollout_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/rollout"
)

// TestUnreadableStateIsNotFine checks that a resource whose stored state cannot be read has the first stage of its mode, no next step, and the
// reason among what is missing, however good its evidence is.
func TestUnreadableStateIsNotFine(t *testing.T) {
	enough := &rollout.Assessment{Score: approval.Score{Value: 80, Threshold: 70, Enough: true}}
	for mode, stage := range map[v1alpha1.Mode]rollout.Stage{v1alpha1.ModeObserve: rollout.StageObserve, v1alpha1.ModeAudit: rollout.StageInitial,
		v1alpha1.ModeEnforce: rollout.StageEnforce} {
		in := rollout.Input{Protection: &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: orders, Mode: mode}},
			State: rollout.State{Unreadable: true}, Assessment: enough}
		if got := rollout.StageOf(in); got != stage {
			t.Errorf("%s: the stage is %s, want %s", mode, got, stage)
		}
		if diff := cmp.Diff(rollout.Hint{Code: rollout.CodeWait, Message: message.RolloutHintStateUnreadable()}, rollout.HintOf(in)); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
		if missing := rollout.Missing(in); len(missing) == 0 || missing[0].Code != message.RolloutHintStateUnreadable().Code {
			t.Errorf("%s: the reason is missing: %v", mode, missing)
		}
	}
}

func TestStages(t *testing.T) {
	now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	protect := func(mode v1alpha1.Mode, clusters ...v1alpha1.ClusterMode) *v1alpha1.ProtectedResource {
		return &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: orders, Mode: mode, ClusterModes: clusters},
			Status: v1alpha1.ProtectedResourceStatus{Clusters: []v1alpha1.ClusterState{{Name: "m1"}, {Name: "m2"}}}}
	}
	enough := &rollout.Assessment{Score: approval.Score{Value: 80, Threshold: 70, Enough: true}}
	little := &rollout.Assessment{
		Score: approval.Score{Value: 30, Threshold: 70, Missing: []message.Message{message.Verbatim("It was watched on 3 of 14 days.")}},
	}
	partly := &rollout.Assessment{
		Score: approval.Score{Value: 81, Threshold: 70, Missing: []message.Message{message.Verbatim("Half of the clients came lately.")}},
	}
	newcomers := &rollout.Assessment{Score: enough.Score, Newcomers: []string{cart}}
	lost := &rollout.Assessment{Score: little.Score, Unattributed: 2}
	announced := rollout.State{Announcement: &rollout.Announcement{At: now}}
	m1 := v1alpha1.ClusterMode{Cluster: "m1", Mode: v1alpha1.ModeEnforce}
	for name, tc := range map[string]struct {
		reason  string
		in      rollout.Input
		stage   rollout.Stage
		hint    rollout.Code
		missing int
	}{
		"nothing": {"not onboarded", rollout.Input{}, rollout.StageObserve, rollout.CodeOnboard, 0},
		"observe": {"onboarded, and only watched", rollout.Input{Protection: protect(v1alpha1.ModeObserve)}, rollout.StageObserve, rollout.CodePropose, 0},
		"initial": {
			"too little is known", rollout.Input{Protection: protect(v1alpha1.ModeAudit), Assessment: little},
			rollout.StageInitial, rollout.CodeWait, 2,
		},
		"no flows": {"nothing is known", rollout.Input{Protection: protect(v1alpha1.ModeAudit)}, rollout.StageInitial, rollout.CodeWait, 1},
		"partly": {
			"the score is enough, but a part of it is empty",
			rollout.Input{Protection: protect(v1alpha1.ModeAudit), Assessment: partly}, rollout.StageInitial, rollout.CodeWait, 2,
		},
		"nameless": {
			"sources without a name", rollout.Input{Protection: protect(v1alpha1.ModeAudit), Assessment: lost},
			rollout.StageInitial, rollout.CodeRegister, 2,
		},
		"refine": {
			"clients that Enforce would refuse", rollout.Input{Protection: protect(v1alpha1.ModeAudit), Assessment: newcomers},
			rollout.StageRefine, rollout.CodeReview, 1,
		},
		"refined": {
			"nothing is left to review", rollout.Input{Protection: protect(v1alpha1.ModeAudit), Assessment: enough},
			rollout.StageRefine, rollout.CodeAnnounce, 1,
		},
		"announced": {
			"the owners were notified", rollout.Input{Protection: protect(v1alpha1.ModeAudit), Assessment: enough, State: announced},
			rollout.StageAnnounced, rollout.CodeEnforce, 0,
		},
		"somebody new": {
			"came after the announcement", rollout.Input{Protection: protect(v1alpha1.ModeAudit), Assessment: newcomers, State: announced},
			rollout.StageAnnounced, rollout.CodeReview, 1,
		},
		"one member": {
			"staged", rollout.Input{Protection: protect(v1alpha1.ModeAudit, m1), Assessment: enough, State: announced},
			rollout.StageEnforce, rollout.CodeWiden, 0,
		},
		"all members": {"done", rollout.Input{Protection: protect(v1alpha1.ModeEnforce), Assessment: enough}, rollout.StageEnforce, rollout.CodeDone, 0},
		"blind": {"the guard does not see a member",
			rollout.Input{Protection: protect(v1alpha1.ModeEnforce), Assessment: &rollout.Assessment{Score: enough.Score, Unwatched: []string{"m2"}}},
			rollout.StageEnforce, rollout.CodeWait, 1},
		"stopped": {"comes first",
			rollout.Input{
				Protection: protect(v1alpha1.ModeAudit, m1), Assessment: enough,
				State: rollout.State{Guard: rollout.Guard{Stop: &rollout.Stop{Reason: message.Stored{Message: message.Verbatim("30 were refused.")}}}},
			},
			rollout.StageEnforce, rollout.CodeStopped, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Now = now
			h := rollout.HintOf(tc.in)
			if got := rollout.StageOf(tc.in); got != tc.stage || h.Code != tc.hint || h.Message.IsZero() || len(rollout.Missing(tc.in)) != tc.missing {
				t.Errorf("%s: %s, %+v, %q", tc.reason, got, h, rollout.Missing(tc.in))
			}
		})
	}
}

// A resource in three members of which one is watched has no evidence to be enforced, however well that one was watched.
func TestUnwatchedMembersAreNoEvidence(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		fleet     insight.Fleet
		enough    bool
		unwatched []string
	}{
		"watched":   {"its only member was watched", insight.Fleet{Everywhere: []string{"m1"}}, true, nil},
		"unwatched": {"two of its members were not", insight.Fleet{Everywhere: []string{"m1", "m2", "m3"}}, false, []string{"m2", "m3"}},
		"unknown":   {"nobody knows its members", insight.Fleet{}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, v1alpha1.ModeAudit)
			w.fleet = tc.fleet
			if err := w.flows.Append(
				t.Context(),
				&audit.Batch{ID: "watched", Watched: []audit.WatchedSpan{{Source: "m1", From: w.now.Add(-30 * 24 * time.Hour), To: w.now}}},
			); err != nil {
				t.Fatal(err)
			}
			all, err := w.insight.Assess(t.Context(), orders)
			if a := all[orders]; err != nil || a.Enough != tc.enough || (a.Value == 100) != tc.enough || !slices.Equal(a.Unwatched, tc.unwatched) {
				t.Errorf("%s: %+v, %v", tc.reason, a, err)
			}
		})
	}
}

// TestAssess checks which clients were observed, which of them Enforce would refuse, and which have no name.
func TestAssess(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeAudit)
	w.policy = []v1alpha1.Statement{
		allow(cart),
		{
			SID:       "no",
			Effect:    v1alpha1.EffectDeny,
			Subjects:  []v1alpha1.Subject{scanner},
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{orders},
		},
	}
	for _, s := range []string{cart, search, scanner, ""} {
		w.see("m1", s, policy.Audited, 3)
	}
	w.pass(time.Minute)
	all, err := w.insight.Assess(t.Context(), orders)
	if err != nil {
		t.Fatal(err)
	}
	got := all[orders]
	if diff := cmp.Diff(
		[][]string{{cart, scanner, search}, {search}}, [][]string{got.Clients, got.Newcomers},
	); diff != "" || got.Unattributed != 1 || got.Enough || len(got.Missing) == 0 {
		t.Errorf("%+v: %s", got, diff)
	}
	for app, want := range map[string]bool{cart: true, "trnv1:rsc:o:iam:sa:app/other": false} {
		if seen, err := w.insight.Seen(t.Context(), app, orders); seen != want || err != nil {
			t.Errorf("%s was seen: %v, %v", app, seen, err)
		}
	}
	w.see("m1", "trnv1:rsc:o:iam:sa:app/late", policy.Audited, 1)
	if all, err = w.insight.Assess(t.Context(), orders); err != nil || len(all[orders].Clients) != 3 {
		t.Errorf("an answer is good for a while: %+v, %v", all, err)
	}
	w.pass(20 * time.Second)
	if all, err = w.insight.Assess(t.Context(), orders); err != nil || len(all[orders].Clients) != 4 {
		t.Errorf("and not for long: %+v, %v", all, err)
	}
	config := w.insight.InsightConfig
	config.Threshold = 0
	easy := rollout.NewInsight(config)
	if s, err := easy.Score(t.Context(), orders); err != nil || !s.Enough {
		t.Errorf("without a threshold everything is enough: %+v, %v", s, err)
	}
}

// TestAssessWithRefusals: a client whose only allow is refused is one that Enforce would cut off.
func TestAssessWithRefusals(t *testing.T) {
	w := newWorld(t, v1alpha1.ModeAudit)
	w.policy = []v1alpha1.Statement{allow(cart, "trnv1:rsc:o:iam:user:nobody")} // a statement goes as a whole
	w.see("m1", cart, policy.Audited, 3)
	w.pass(time.Minute)
	all, err := w.insight.Assess(t.Context(), orders)
	if got := all[orders]; err != nil || !slices.Equal(got.Newcomers, []string{cart}) {
		t.Errorf("%+v, %v: want %s to be reviewed", got, err, cart)
	}
}
