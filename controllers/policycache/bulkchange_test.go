package policycache

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv"
)

// TestAClassIsABulkChange checks the priority of what the removal of a class enqueues: it may revoke, and must not wait as background requests do.
func TestAClassIsABulkChange(t *testing.T) {
	queues := NewQueues(clock.RealClock{})
	x := New(queues)
	var objects testenv.Objects
	if _, err := x.Listen(t.Context(), &objects); err != nil {
		t.Fatal(err)
	}
	class := &v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:o:iam:sa:app/*", LabelKey: "app"}}
	for _, o := range []client.Object{class, &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}} {
		if err := objects.Change(nil, o); err != nil {
			t.Fatal(err)
		}
	}
	requests := priorityqueue.New[string]("test")
	t.Cleanup(requests.ShutDown)
	if err := queues.Policies.Source(func(context.Context) error { return nil }).Start(t.Context(), requests); err != nil {
		t.Fatal(err)
	}
	atStart, _ := requests.Get()
	requests.Done(atStart)
	if err := objects.Change(class, nil); err != nil {
		t.Fatal(err)
	}
	if name, priority, _ := requests.GetWithPriority(); name != "p" || priority != requestqueue.BulkChange {
		t.Errorf("the removal of a class enqueued %s with priority %d, want p with %d", name, priority, requestqueue.BulkChange)
	}
}

// TestSetClusters checks which changes of the members affect decisions, so that all units are compiled again.
func TestSetClusters(t *testing.T) {
	x := New(NewQueues(clock.RealClock{}))
	one := policy.Cluster{Name: "m1", Labels: map[string]string{"env": "prod"}}
	for _, step := range []struct {
		reason   string
		clusters []policy.Cluster
		want     bool
	}{
		{"at first", []policy.Cluster{one}, true},
		{"a member is lost or found", []policy.Cluster{one}, false},
		{"a label changes", []policy.Cluster{{Name: "m1", Labels: map[string]string{"env": "test"}}}, true},
		{"a member is registered", []policy.Cluster{{Name: "m1", Labels: map[string]string{"env": "test"}}, {Name: "m2"}}, true},
	} {
		if got := x.SetClusters(step.clusters); got != step.want {
			t.Errorf("%s: %v, want %v", step.reason, got, step.want)
		}
	}
}
