package accesscontrolpolicy

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
)

// fakeHost is a host with Federated objects, which are listed unless unlisted is set.
type fakeHost struct {
	objects  []*federation.Object
	unlisted bool
}

func (h fakeHost) State() (bool, error)           { return !h.unlisted, nil }
func (h fakeHost) Of(string) []*federation.Object { return nil }
func (h fakeHost) List() []*federation.Object     { return h.objects }

// objectOf returns the object of a unit that contained statements of some policies.
func objectOf(resource, policies string) *federation.Object {
	return &federation.Object{Meta: metav1.ObjectMeta{Name: "acp-" + policies, Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		Annotations: map[string]string{federation.AnnotationResource: resource, federation.AnnotationPolicies: policies}}}
}

// TestRevocationAwaitsUnitsThatTheStatusNeverListed checks that a restarted adapter reports nothing about a policy before it has decided the
// units of which only the host's objects record that members may have its statements. The status may lack them, because the adapter ended
// before it was written. A ticket would otherwise report a revocation as done that no member has.
func TestRevocationAwaitsUnitsThatTheStatusNeverListed(t *testing.T) {
	x := policycache.New(policycache.NewQueues(clock.RealClock{}))
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	ctx, informers := context.Background(), &informertest.FakeInformers{Scheme: scheme}
	if _, err := x.Listen(ctx, informers); err != nil {
		t.Fatal(err)
	}
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "grants", Generation: 2}} // its only statement was removed
	informer, err := informers.FakeInformerFor(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	informer.Add(p)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p).WithStatusSubresource(p).Build()
	r := &Reconciler{Client: c, Cache: x, Reports: statuscache.New(), Units: requestqueue.New(clock.RealClock{}), Clock: clock.RealClock{},
		Federated: fakeHost{objects: []*federation.Object{objectOf(resource, "grants,others"), objectOf("trnv1:rsc:a:b:c:d", "others")}, unlisted: true}}
	observed := func() int64 {
		t.Helper()
		if _, err := r.Reconcile(ctx, "grants"); err != nil {
			t.Fatal(err)
		}
		var now v1alpha1.AccessControlPolicy
		if err := c.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
			t.Fatal(err)
		}
		return now.Status.ObservedGeneration
	}
	if got := observed(); got != 0 {
		t.Error("the host's objects are not listed, and the policy has a status")
	}
	r.Federated = fakeHost{objects: r.Federated.List()}
	if got := observed(); got != 0 {
		t.Error("the unit was not decided since the start, and the policy has a status")
	}
	if diff := cmp.Diff([]string{"grants"}, r.Reports.Awaited(resource)); diff != "" {
		t.Errorf("policies that wait for the report (-want +got):\n%s", diff)
	}
	r.Reports.Put(statuscache.Report{Resource: resource, Version: 1 << 20, Wanted: true, FormerPolicies: []string{"grants"},
		Clusters: states(v1alpha1.MemberPending)})
	if got := observed(); got != 2 {
		t.Errorf("the unit was decided, and the status is about generation %d", got)
	}
}

// TestPolicyAwaitsTheReportOfAnObservedResource checks that a policy that is reconciled before the unit of a resource in Observe is enqueued
// by the unit's report, although the report does not contain the policy. Its status would otherwise stay outdated.
func TestPolicyAwaitsTheReportOfAnObservedResource(t *testing.T) {
	const resource = "trnv1:rsc:trip-com:redis:clusters:bobs"
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	ctx, informers, x := context.Background(), &informertest.FakeInformers{Scheme: scheme}, policycache.New(policycache.NewQueues(clock.RealClock{}))
	if _, err := x.Listen(ctx, informers); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "bobs"},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: resource, Mode: v1alpha1.ModeObserve}},
		&v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "grants"}, Spec: v1alpha1.AccessControlPolicySpec{
			Statements: []v1alpha1.Statement{{SID: "one", Effect: v1alpha1.EffectAllow, Resources: []v1alpha1.ResourceName{resource}}}}},
	} {
		informer, err := informers.FakeInformerFor(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		informer.Add(o)
	}
	r := &Reconciler{Cache: x, Reports: statuscache.New(), Federated: fakeHost{}, Units: requestqueue.New(clock.RealClock{}), Clock: clock.RealClock{}}
	if _, err := r.Reconcile(ctx, "grants"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"grants"}, r.Reports.Awaited(resource)); diff != "" {
		t.Errorf("policies that wait for the report (-want +got):\n%s", diff)
	}
}
