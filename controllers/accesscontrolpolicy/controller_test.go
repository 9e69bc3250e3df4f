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

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
)

// emptyHost is a host without Federated objects.
type emptyHost struct{}

func (emptyHost) State() (bool, error)           { return true, nil }
func (emptyHost) Of(string) []*federation.Object { return nil }

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
	r := &Reconciler{Cache: x, Reports: statuscache.New(), Federated: emptyHost{}, Units: requestqueue.New(clock.RealClock{}), Clock: clock.RealClock{}}
	if _, err := r.Reconcile(ctx, "grants"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"grants"}, r.Reports.Awaited(resource)); diff != "" {
		t.Errorf("policies that wait for the report (-want +got):\n%s", diff)
	}
}
