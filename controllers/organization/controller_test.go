package organization

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestStatus reports a conflict of two organizations, and that it is over.
func TestStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	one := func(name string, teams ...v1alpha1.TeamName) *v1alpha1.Organization {
		return &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}, Spec: v1alpha1.OrganizationSpec{Teams: teams}}
	}
	b := one("b", "team")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(one("a", "team", "own"), b).WithStatusSubresource(&v1alpha1.Organization{}).Build()
	changed := 0
	r := &Reconciler{Client: c, Clock: clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0)), Changed: func() { changed++ }}
	status := func() *metav1.Condition {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		var o v1alpha1.Organization
		if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, &o); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionAccepted)
	}
	if got := status(); got == nil || got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonTeamConflict || got.ObservedGeneration != 3 {
		t.Errorf("a conflict: %+v", got)
	}
	if got := r.all(t.Context(), b); len(got) != 2 {
		t.Errorf("a change of one concerns all: %v", got)
	}
	if err := c.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := status(); got == nil || got.Status != metav1.ConditionTrue {
		t.Errorf("no conflict: %+v", got)
	}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "gone"}}); err != nil || changed != 3 {
		t.Errorf("one that is gone: %v, %d calls", err, changed)
	}
}
