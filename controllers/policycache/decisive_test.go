package policycache

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
)

// requests returns a function that returns the names that a queue got since the last call, sorted.
func requests(t *testing.T, q *requestqueue.Queue) func() []string {
	t.Helper()
	to := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	t.Cleanup(to.ShutDown)
	if err := q.Source(func(context.Context) error { return nil }).Start(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	return func() []string {
		var out []string
		for to.Len() > 0 {
			name, _ := to.Get()
			out = append(out, name)
			to.Done(name)
		}
		slices.Sort(out)
		return out
	}
}

// TestStatusesEnqueueNoOtherUnits checks that the statuses that were written since the last snapshot enqueue nothing when the next one is
// made, and that the event of an own write enqueues nothing.
func TestStatusesEnqueueNoOtherUnits(t *testing.T) {
	const stem = "trnv1:rsc:o:redis:clusters:"
	x := New(NewQueues(clock.RealClock{}))
	units, policies := requests(t, x.queues.Units), requests(t, x.queues.Policies)
	class := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis", ResourceVersion: "1", Generation: 1},
		Spec: v1alpha1.ResourceClassSpec{Pattern: stem + "*", LabelKey: "o/redis",
			Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}}
	x.resourceClassChanged(nil, class)
	protected, granted := map[string]*v1alpha1.ProtectedResource{}, map[string]*v1alpha1.AccessControlPolicy{}
	for _, n := range []string{"a", "b", "c"} {
		protected[n] = &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: n, ResourceVersion: "1", Generation: 1},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(stem + n), Mode: v1alpha1.ModeEnforce}}
		granted[n] = &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: n, ResourceVersion: "1", Generation: 1},
			Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "s", Effect: v1alpha1.EffectAllow,
				Subjects: []v1alpha1.Subject{"trnv1:rsc:o:iam:sa:app/1"}, Actions: []v1alpha1.Action{"redis:connect"},
				Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(stem + n)}}}}}
		x.resourceChanged(nil, protected[n])
		x.policyChanged(nil, granted[n])
	}
	x.View()
	units()
	policies()

	// The adapter writes statuses, and reads them as events.
	next := class.DeepCopy()
	next.ResourceVersion, next.Status.ObservedGeneration = "2", 1
	x.resourceClassChanged(class, next)
	resource, policy := protected["a"].DeepCopy(), granted["b"].DeepCopy()
	resource.ResourceVersion, resource.Status.Revision = "2", "r"
	policy.ResourceVersion, policy.Status.ObservedGeneration = "2", 1
	x.StoreResource(resource)
	x.StorePolicy(policy)
	x.resourceChanged(protected["a"], resource)
	x.policyChanged(granted["b"], policy)
	if got, also := units(), policies(); len(got)+len(also) > 0 {
		t.Errorf("own writes of statuses enqueued the units %v and the policies %v", got, also)
	}
	if got := x.Protecting(stem + "a"); len(got) != 1 || got[0] != resource {
		t.Errorf("the cache does not have the status that was written: %v", got)
	}

	changed := granted["c"].DeepCopy()
	changed.ResourceVersion, changed.Generation, changed.Spec.Statements = "2", 2, nil
	x.policyChanged(granted["c"], changed)
	x.View()
	if got := units(); !slices.Equal(got, []string{stem + "c"}) {
		t.Errorf("a change of one policy enqueued the units %v", got)
	}

	// An event enqueues the object if another program wrote the new version, or if the informer repeats an event without a change.
	policies()
	other := resource.DeepCopy()
	other.ResourceVersion = "3"
	x.resourceChanged(resource, other)
	x.policyChanged(policy, policy)
	if got, also := units(), policies(); !slices.Equal(got, []string{stem + "a"}) || !slices.Equal(also, []string{"b"}) {
		t.Errorf("events of others enqueued the units %v and the policies %v", got, also)
	}
	x.policyChanged(policy, nil)
	x.View()
	if got := units(); !slices.Equal(got, []string{stem + "b"}) {
		t.Errorf("a deletion enqueued the units %v", got)
	}
}
