package approvalpolicy

import (
	"strings"
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

func policy(match string) *v1alpha1.ApprovalPolicy {
	return &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 3},
		Spec: v1alpha1.ApprovalPolicySpec{Match: match, Steps: []v1alpha1.ApprovalStep{{Name: "owner", Approvers: []v1alpha1.Approver{"resource.owner"}}}}}
}

func TestStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, match string
		status        metav1.ConditionStatus
		message       string
	}{
		"compiles":  {"nothing is wrong", `request.kind == "grant"`, metav1.ConditionTrue, ""},
		"no field":  {"names the expression and the place", `request.knd == "grant"`, metav1.ConditionFalse, "spec.match: line 1, column 8"},
		"pointless": {"legal, and said", `request.kind == "gift"`, metav1.ConditionTrue, "never counts"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(policy(tc.match)).WithStatusSubresource(&v1alpha1.ApprovalPolicy{}).Build()
			r := &Reconciler{Client: c, Clock: clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))}
			key := client.ObjectKey{Name: "p"}
			versions := map[string]bool{}
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
				var o v1alpha1.ApprovalPolicy
				if err := c.Get(t.Context(), key, &o); err != nil {
					t.Fatal(err)
				}
				versions[o.ResourceVersion] = true
				got := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionAccepted)
				if got == nil || got.Status != tc.status || !strings.Contains(got.Message, tc.message) || got.ObservedGeneration != 3 ||
					o.Status.ObservedGeneration != 3 {
					t.Errorf("%s: %+v", tc.reason, o.Status)
				}
			}
			if len(versions) != 1 {
				t.Error("a status that is right is not written again")
			}
		})
	}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).Build()}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "gone"}}); err != nil {
		t.Errorf("one that is gone is nothing to do: %v", err)
	}
}
