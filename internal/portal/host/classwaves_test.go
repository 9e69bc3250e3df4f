package host_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestAClassInWavesIsNotReady checks that a ticket about a class waits until the rules of the class count in every member.
func TestAClassInWavesIsNotReady(t *testing.T) {
	config, ctx := portaltest.APIServer(t, true), t.Context()
	h := newHost(t, config)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	actions := func(port int32) []v1alpha1.ClassAction {
		return []v1alpha1.ClassAction{{Name: "waves:connect", Ports: []v1alpha1.Port{{Port: port, Protocol: v1alpha1.ProtocolTCP}}}}
	}
	class := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "in-waves"}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: "trnv1:rsc:trip-com:waves:clusters:*", LabelKey: "com.trip/waves", Actions: actions(2),
		Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}}
	if err := c.Create(ctx, class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(t.Context(), class) })
	class.Status.ObservedGeneration = class.Generation
	meta.SetStatusCondition(&class.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonAccepted, ObservedGeneration: class.Generation})
	settled := func(port int32) v1alpha1.ClassRules {
		return v1alpha1.ClassRules{Actions: actions(port), OtherPorts: v1alpha1.OtherPortsDeny}
	}
	begun := &v1alpha1.RolloutProgress{StartedAt: metav1.Now(), Wave: 1, Waves: 2, Waiting: 3}
	for _, tc := range []struct {
		reason string
		status *v1alpha1.ClassRolloutStatus
		waits  string
	}{
		{"no waves", nil, ""},
		{"the adapter has not begun", &v1alpha1.ClassRolloutStatus{Settled: settled(1)}, "waves.class-not-begun"},
		{"in progress", &v1alpha1.ClassRolloutStatus{Settled: settled(1), Progress: begun}, "waves.class-in-progress"},
		{"settled", &v1alpha1.ClassRolloutStatus{Settled: settled(2)}, ""},
	} {
		class.Status.Rollout = tc.status
		if err := c.Status().Update(ctx, class); err != nil {
			t.Fatal(err)
		}
		seen, err := h.Seen(ctx, approval.ObjectResourceClass, class.Name)
		if err != nil || seen.Ready != (tc.waits == "") || seen.Waits.Code != tc.waits || !seen.Refused.IsZero() {
			t.Errorf("%s: ready %t, waits for %+v, refused %+v, %v", tc.reason, seen.Ready, seen.Waits, seen.Refused, err)
		}
	}
}
