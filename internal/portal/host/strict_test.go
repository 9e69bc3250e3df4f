package host

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// TestStatementsAreWrittenStrictly checks that an API server with an older custom resource definition is asked to refuse a statement with
// hours: if it dropped them, the access would be given at any hour.
func TestStatementsAreWrittenStrictly(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var writes, lenient int
	count := func(validation string) {
		writes++
		if validation != metav1.FieldValidationStrict {
			lenient++
		}
	}
	w := &Writer{Client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			count((&client.CreateOptions{}).ApplyOptions(opts).FieldValidation)
			return c.Create(ctx, o)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			count((&client.UpdateOptions{}).ApplyOptions(opts).FieldValidation)
			return c.Update(ctx, o)
		},
	}).Build()}
	s := grantOf("t-1-0")
	s.Hours = &v1alpha1.WeeklyHours{TimeZone: "UTC", Periods: []v1alpha1.DailyPeriod{{Days: []v1alpha1.Weekday{"Mon"}, From: "09:00", To: "18:00"}}}
	for _, statement := range []v1alpha1.Statement{s, grantOf("t-2-0")} {
		if _, err := w.Put(t.Context(), policy.PolicyNameFor(shardedResource), shardedResource, []v1alpha1.Statement{statement}, always); err != nil {
			t.Fatal(err)
		}
	}
	if writes < 2 || lenient > 0 {
		t.Errorf("%d of %d writes would drop fields", lenient, writes)
	}
}
