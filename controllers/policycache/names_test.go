package policycache

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/internal/testenv"
)

// TestNamesEnqueueCoveredUnits checks that a name enqueues the units whose statements or wildcards have a prefix that covers it. That names
// are known at all enqueues the policies whose statements were refused without them.
func TestNamesEnqueueCoveredUnits(t *testing.T) {
	const head = "trnv1:rsc:o:redis:clusters:"
	queues := NewQueues(clock.RealClock{})
	x := New(queues)
	var objects testenv.Objects
	if _, err := x.Listen(t.Context(), &objects); err != nil {
		t.Fatal(err)
	}
	statement := func(subject, resource string) v1alpha1.AccessControlPolicySpec {
		return v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "s", Effect: v1alpha1.EffectAllow,
			Subjects: []v1alpha1.Subject{v1alpha1.Subject("trnv1:rsc:o:iam:sa:app/" + subject)}, Actions: []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(head + resource)}}}}
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	for _, o := range []client.Object{
		&v1alpha1.SubjectClass{ObjectMeta: named("app"), Spec: v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:o:iam:sa:app/*", LabelKey: "app"}},
		&v1alpha1.ResourceClass{ObjectMeta: named("redis"), Spec: v1alpha1.ResourceClassSpec{Pattern: head + "*", LabelKey: "redis",
			Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
			Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}},
		&v1alpha1.ProtectedResource{ObjectMeta: named("a"), Spec: v1alpha1.ProtectedResourceSpec{Resource: head + "a", Mode: v1alpha1.ModeEnforce}},
		&v1alpha1.ProtectedResource{ObjectMeta: named("b"), Spec: v1alpha1.ProtectedResourceSpec{Resource: head + "b", Mode: v1alpha1.ModeEnforce}},
		&v1alpha1.AccessControlPolicy{ObjectMeta: named("prefix"), Spec: statement("team-*", "a")},
		&v1alpha1.AccessControlPolicy{ObjectMeta: named("exact"), Spec: statement("team-1", "b")},
		&v1alpha1.AccessControlPolicy{ObjectMeta: named("narrow"), Spec: statement("tool", "team-*")},
	} {
		if err := objects.Change(nil, o); err != nil {
			t.Fatal(err)
		}
	}
	x.View()
	requests := map[string]workqueue.TypedRateLimitingInterface[string]{}
	for kind, f := range map[string]*requestqueue.Queue{"units": queues.Units, "policies": queues.Policies} {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		t.Cleanup(q.ShutDown)
		requests[kind] = q
		if err := f.Source(func(context.Context) error { return nil }).Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	enqueued := func() map[string][]string {
		out := map[string][]string{}
		for kind, q := range requests {
			for q.Len() > 0 {
				name, _ := q.Get()
				q.Done(name)
				out[kind] = append(out[kind], name)
			}
			slices.Sort(out[kind])
		}
		return out
	}
	enqueued() // everything, at the start
	for _, c := range []struct {
		reason   string
		labels   map[string][]string
		complete bool
		units    []string
		policies []string
	}{
		{"nothing is known yet", nil, false, nil, nil},
		{"names can be known", nil, true, []string{head + "a", head + "b", head + "team-*"}, []string{"prefix"}},
		{"a name under the prefix of subjects", map[string][]string{"app": {"team-7"}}, true, []string{head + "a"}, nil},
		{"a name under none", map[string][]string{"app": {"other", "team-7"}}, true, nil, nil},
		{"a label of no class", map[string][]string{"app": {"other", "team-7"}, "zone": {"team-8"}}, true, nil, nil},
		{"a name under the prefix of resources", map[string][]string{"app": {"other", "team-7"}, "redis": {"team-1"}}, true, []string{head + "team-*"}, nil},
		{"the name went", map[string][]string{"redis": {"team-1"}}, true, []string{head + "a"}, nil},
	} {
		x.SetLabels(c.labels, c.complete)
		got := enqueued()
		if diff := cmp.Diff(c.units, got["units"]) + cmp.Diff(c.policies, got["policies"]); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.reason, diff)
		}
	}
}
