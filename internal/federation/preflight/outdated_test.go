package preflight

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/acp-io/acp/internal/federation"
)

// TestReadOutdated checks which agents count as older than their configuration.
func TestReadOutdated(t *testing.T) {
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) metav1.Time {
		return metav1.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}
	}
	pod := func(namespace, name, app string, created int) runtime.Object {
		return &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
				Labels: map[string]string{"k8s-app": app}, CreationTimestamp: at(created)},
		}
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	deleted := pod("kube-system", "f", "cilium", -10).(*metav1.PartialObjectMetadata)
	deleted.DeletionTimestamp = new(at(-1))
	pods := metadatafake.NewSimpleMetadataClient(scheme, pod("kube-system", "a", "cilium", -10), pod("kube-system", "b", "cilium", -5),
		pod("kube-system", "c", "cilium", 5), pod("kube-system", "d", "envoy", -10), pod("other", "e", "cilium", -10), deleted)
	for _, c := range []struct {
		reason               string
		changed, rolledOut   int // minutes
		generation, observed int64
		updated, want        int
	}{
		{"the configuration is older than all agents", -20, -30, 1, 1, 3, 0},
		{"two agents are older", 0, -30, 1, 1, 3, 2},
		{"one agent is older", -7, -30, 1, 1, 3, 1},
		{"all agents are older", 10, -30, 1, 1, 3, 3},
		{"the agents were rolled out since", 0, 1, 1, 1, 3, 0},
		{"at the same time", 0, 0, 1, 1, 3, 0},
		{"the rollout has not begun", 0, 1, 2, 1, 3, 2},
		{"the rollout is not over", 0, 1, 2, 2, 1, 2},
	} {
		agents := &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Generation: c.generation, CreationTimestamp: at(-60), ManagedFields: []metav1.ManagedFieldsEntry{
				{Time: new(at(c.rolledOut))}, {Time: new(at(30)), Subresource: "status"}}},
			Spec:   appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "cilium"}}},
			Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3, ObservedGeneration: c.observed, UpdatedNumberScheduled: int32(c.updated)},
		}
		got, unread := readOutdated(t.Context(), pods, agents, federation.DefaultLocations(), at(c.changed).Time)
		if !unread.IsZero() || got.Agents != c.want || c.want > 0 && !got.Changed.Equal(at(c.changed).Time) {
			t.Errorf("%s: %+v, %q, want %d", c.reason, got, unread, c.want)
		}
	}
}
