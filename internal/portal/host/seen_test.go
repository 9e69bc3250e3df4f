package host_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/host"
)

// TestSeenHasCodes checks that the texts of conditions, which have no codes, are messages with codes for the people who wait for them.
func TestSeenHasCodes(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	invalid := &v1alpha1.ApprovalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ApprovalPolicySpec{Match: "request.knd == 1"}}
	_, reason := rules.Acceptance(invalid)
	invalid.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Message: reason.Text}}
	kept := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	kept.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Message: message.ConditionDeleteFromObserve().Text},
	}
	open := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "open"}}
	open.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionRealized, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonObserve, Message: message.ConditionNothingRequired().Text},
	}
	class := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis-2"}, Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:o:redis:*"}}
	older := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: class.Spec}
	problems := slices.DeleteFunc(policy.NewSnapshot(policy.Input{ResourceClasses: []*v1alpha1.ResourceClass{older, class}}).Problems(),
		func(p policy.Problem) bool { return p.Name != class.Name })
	if len(problems) == 0 {
		t.Fatal("two classes of one pattern are no problem")
	}
	class.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Message: problems[0].Message.Text}}
	used := &v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: "application"}}
	inUse := message.ConditionSubjectClassInUse("grants/one")
	used.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Message: inUse.Text}}
	for _, tc := range []struct {
		reason, kind   string
		object         client.Object
		refused, waits message.Message
	}{
		{"an expression that does not compile", "ApprovalPolicy", invalid, reason, message.Message{}},
		{"a resource that cannot be deleted yet", "ProtectedResource", kept, message.ConditionDeleteFromObserve(), message.Message{}},
		{"a class that overlaps another one", "ResourceClass", class, problems[0].Message, message.Message{}},
		{"a class in use that is to be deleted", "SubjectClass", used, inUse, message.Message{}},
		{"a resource in Observe", "ProtectedResource", open, message.Message{}, message.ConditionNothingRequired()},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.object).Build()
		seen, err := host.Seen(t.Context(), c, func() []policy.Problem { return problems }, tc.kind, tc.object.GetName())
		if err != nil {
			t.Fatal(err)
		}
		if seen.Refused != tc.refused || seen.Waits != tc.waits {
			t.Errorf("%s: refused %+v and waits for %+v, want %+v and %+v", tc.reason, seen.Refused, seen.Waits, tc.refused, tc.waits)
		}
	}
}
