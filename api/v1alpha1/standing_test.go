package v1alpha1_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMemberClusterStatus(t *testing.T) {
	o := object(t, "MemberCluster", nil)
	if err := host.Create(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Delete(context.Background(), o); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range standing {
		t.Run(c.reason, func(t *testing.T) {
			next := o.DeepCopy()
			change(t, next, c.changes)
			verdict(
				t,
				host.Status().
					Update(context.Background(), next, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{"All"}}}),
				c.want,
			)
		})
	}
}
