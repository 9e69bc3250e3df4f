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

// nothing is on the host.
type nothing struct{}

func (nothing) State() (bool, error)           { return true, nil }
func (nothing) Of(string) []*federation.Object { return nil }

// A policy that is looked at before the unit of a resource in Observe waits for a report that has nothing of it: it has to
// be woken by that all the same, or its status stays as it was.
func TestPolicyWaitsForAReportWithoutIt(t *testing.T) {
	const resource = "trnv1:rsc:trip-com:redis:clusters:bobs"
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	ctx, informers, x := context.Background(), &informertest.FakeInformers{Scheme: scheme}, policycache.New(policycache.NewQueues())
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
	r := &Reconciler{Cache: x, Reports: statuscache.New(), Federated: nothing{}, Units: requestqueue.New(), Clock: clock.RealClock{}}
	if _, err := r.Reconcile(ctx, "grants"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"grants"}, r.Reports.Awaited(resource)); diff != "" {
		t.Errorf("who waits for the report (-want +got):\n%s", diff)
	}
}
