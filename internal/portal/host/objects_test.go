package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

func text(t *testing.T, spec any) json.RawMessage {
	t.Helper()
	out, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestObjects: what tickets change is written once, onto what the change was based on, or not at all.
func TestObjects(t *testing.T) {
	h := newHost(t, portaltest.APIServer(t, true))
	w, ctx := h.Writer(), t.Context()
	spec := v1alpha1.ApprovalPolicySpec{Priority: 1, Steps: []v1alpha1.ApprovalStep{{Name: "owner", Approvers: []v1alpha1.Approver{"resource.owner"}}}}
	create := approval.Change{Kind: approval.ObjectApprovalPolicy, Name: "p", Verb: approval.VerbCreate, After: text(t, spec)}

	after, err := h.DryRun(ctx, create)
	if err != nil {
		t.Fatal(err)
	}
	spec.Steps[0].Quorum = "Any"
	if d := cmp.Diff(string(text(t, spec)), string(after)); d != "" {
		t.Errorf("what would be there has its defaults: (-want +got)\n%s", d)
	}
	if seen, err := h.Seen(ctx, create.Kind, "p"); err != nil || seen.Exists {
		t.Fatalf("and nothing is written: %+v, %v", seen, err)
	}
	bad := create
	bad.After = text(t, v1alpha1.ApprovalPolicySpec{Steps: []v1alpha1.ApprovalStep{{Name: "x", Approvers: []v1alpha1.Approver{"nobody"}}}})
	var refused *approval.RefusedError
	if _, err := h.DryRun(ctx, bad); !errors.As(err, &refused) || refused.Message.IsZero() {
		t.Errorf("what the API server refuses is refused before anybody is asked: %v", err)
	}

	create.After = after
	stop := errors.New("stop")
	if _, err := w.Apply(ctx, create, func(context.Context, bool) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the check's error is returned as it is: %v", err)
	}
	one, err := w.Apply(ctx, create, yes)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.Apply(ctx, create, yes); err != nil || again != one {
		t.Errorf("writing the same again changes nothing: %+v, %v", again, err)
	}
	seen, err := h.Seen(ctx, create.Kind, "p")
	if err != nil || !seen.Exists || seen.UID != one.UID || seen.Ready || string(seen.Spec) != string(after) {
		t.Errorf("it is there, and nobody has accepted it: %+v, %v", seen, err)
	}

	spec.Priority, spec.MaxDuration = 7, nil
	update := approval.Change{Kind: create.Kind, Name: "p", Verb: approval.VerbUpdate, Before: after, After: text(t, spec)}
	two, err := w.Apply(ctx, update, yes)
	if err != nil || two.Generation != one.Generation+1 {
		t.Fatalf("update: %+v, %v", two, err)
	}
	spec.Priority = 9
	stale := approval.Change{Kind: create.Kind, Name: "p", Verb: approval.VerbUpdate, Before: after, After: text(t, spec)}
	for reason, c := range map[string]approval.Change{"based on what was there before": stale,
		"it exists":       {Kind: create.Kind, Name: "p", Verb: approval.VerbCreate, After: stale.After},
		"it does not":     {Kind: create.Kind, Name: "q", Verb: approval.VerbUpdate, Before: after, After: stale.After},
		"another is gone": {Kind: create.Kind, Name: "p", Verb: approval.VerbDelete, Before: after},
		"no such kind":    {Kind: "Secret", Name: "p", Verb: approval.VerbCreate, After: after}} {
		if _, err := w.Apply(ctx, c, yes); !errors.As(err, &refused) || !refused.Final {
			t.Errorf("%s: %v", reason, err)
		}
	}
	gone := approval.Change{Kind: create.Kind, Name: "p", Verb: approval.VerbDelete, Before: update.After}
	for range 2 {
		if _, err := w.Apply(ctx, gone, yes); err != nil {
			t.Errorf("deleting, and again: %v", err)
		}
	}
	if seen, err := h.Seen(ctx, create.Kind, "p"); err != nil || seen.Exists {
		t.Errorf("it is gone: %+v, %v", seen, err)
	}
}

func TestProtectionIsReady(t *testing.T) {
	h := newHost(t, portaltest.APIServer(t, true))
	ctx := t.Context()
	c := approval.Change{Kind: approval.ObjectProtectedResource, Name: "pr", Verb: approval.VerbCreate,
		After: text(t, v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeAudit})}
	if _, err := h.Writer().Apply(ctx, c, yes); err != nil {
		t.Fatal(err)
	}
	realized := func(s metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{
			Type:               v1alpha1.ConditionRealized,
			Status:             s,
			Reason:             "Realized",
			Message:            "waiting for m2",
			ObservedGeneration: 1,
			LastTransitionTime: metav1.Now(),
		}
	}
	for _, tc := range []struct {
		reason string
		status v1alpha1.ProtectedResourceStatus
		want   approval.ObjectSeen
	}{
		{"nobody looked", v1alpha1.ProtectedResourceStatus{}, approval.ObjectSeen{}},
		{
			"a member is missing",
			v1alpha1.ProtectedResourceStatus{
				ObservedGeneration: 1, EffectiveMode: v1alpha1.ModeAudit, Conditions: []metav1.Condition{realized(metav1.ConditionFalse)},
			},
			approval.ObjectSeen{Observed: 1, Waits: message.Verbatim("waiting for m2")},
		},
		{
			"another mode",
			v1alpha1.ProtectedResourceStatus{
				ObservedGeneration: 1, EffectiveMode: v1alpha1.ModeObserve, Conditions: []metav1.Condition{realized(metav1.ConditionTrue)},
			},
			approval.ObjectSeen{Observed: 1, Waits: message.Verbatim("waiting for m2")},
		},
		{
			"everywhere",
			v1alpha1.ProtectedResourceStatus{
				ObservedGeneration: 1, EffectiveMode: v1alpha1.ModeAudit, Conditions: []metav1.Condition{realized(metav1.ConditionTrue)},
			},
			approval.ObjectSeen{Observed: 1, Ready: true, Waits: message.Verbatim("waiting for m2")},
		},
		{"no member has to have anything", v1alpha1.ProtectedResourceStatus{ObservedGeneration: 1,
			EffectiveMode: v1alpha1.ModeAudit, Conditions: []metav1.Condition{
				{
					Type: v1alpha1.ConditionRealized, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonObserve,
					Message: "none", ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
				}}},
			approval.ObjectSeen{Observed: 1, Ready: true, Waits: message.Verbatim("none")}},
		{"not accepted", v1alpha1.ProtectedResourceStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{realized(metav1.ConditionTrue),
			{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "NoClass", Message: "no class", LastTransitionTime: metav1.Now()}}},
			approval.ObjectSeen{Observed: 1, Refused: message.Verbatim("no class")}},
	} {
		if err := h.SetProtectionStatus(ctx, "pr", tc.status); err != nil {
			t.Fatal(err)
		}
		got, err := h.Seen(ctx, c.Kind, c.Name)
		tc.want.Exists, tc.want.UID, tc.want.Generation, tc.want.Spec = true, got.UID, 1, c.After
		if d := cmp.Diff(tc.want, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got)\n%s", tc.reason, err, d)
		}
	}
}

// TestProtectionInWavesIsReady checks that a change to Enforce is not in force before the last wave has begun.
func TestProtectionInWavesIsReady(t *testing.T) {
	h := newHost(t, portaltest.APIServer(t, true))
	ctx := t.Context()
	c := approval.Change{Kind: approval.ObjectProtectedResource, Name: "waves", Verb: approval.VerbCreate,
		After: text(t, v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeAudit,
			ClusterModes: []v1alpha1.ClusterMode{{Cluster: "m1", Mode: v1alpha1.ModeEnforce}, {Cluster: "m2", Mode: v1alpha1.ModeEnforce}}})}
	if _, err := h.Writer().Apply(ctx, c, yes); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason string
		begun  []v1alpha1.ClusterName
		halt   *v1alpha1.RolloutHalt
		ready  bool
		waits  message.Message
	}{
		{"a member waits for its wave", []v1alpha1.ClusterName{"m1"}, nil, false, message.WavesInProgress(1, 2, 1)},
		{
			"the waves are halted", []v1alpha1.ClusterName{"m1"}, &v1alpha1.RolloutHalt{Reason: v1alpha1.HaltPaused, At: metav1.Now(), Message: "wait"}, false,
			message.WavesHalted(message.OfText("wait")),
		},
		{"the last wave has begun", []v1alpha1.ClusterName{"m1", "m2"}, nil, true, message.Verbatim("every member has it")},
	} {
		status := v1alpha1.ProtectedResourceStatus{ObservedGeneration: 1, EffectiveMode: v1alpha1.ModeAudit,
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionRealized, Status: metav1.ConditionTrue, Reason: "Realized", Message: "every member has it",
				ObservedGeneration: 1, LastTransitionTime: metav1.Now()}},
			Rollout: &v1alpha1.RolloutStatus{Progress: &v1alpha1.RolloutProgress{StartedAt: metav1.Now(), Wave: 1, Waves: 2, Waiting: 1,
				Begun: v1alpha1.MemberSet{Clusters: tc.begun}, Halt: tc.halt}}}
		if err := h.SetProtectionStatus(ctx, "waves", status); err != nil {
			t.Fatal(err)
		}
		got, err := h.Seen(ctx, c.Kind, c.Name)
		if err != nil || got.Ready != tc.ready || got.Waits.Text != tc.waits.Text {
			t.Errorf("%s: %v, ready %t, waits %q, want ready %t and %q", tc.reason, err, got.Ready, got.Waits.Text, tc.ready, tc.waits.Text)
		}
	}
}
