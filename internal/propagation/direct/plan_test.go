package direct

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// TestPlan checks the change that an object in a member needs. What would leave a resource open or a revoked grant in place is among
// the cases.
func TestPlan(t *testing.T) {
	const want = "r2"
	there := func(revision, label string) *federation.Observed {
		return &federation.Observed{Name: "acp-x", Revision: revision, Label: label, Managed: true, KubeFed: true}
	}
	unmanaged := there(want, want)
	unmanaged.Managed = false
	hidden := there(want, want)
	hidden.KubeFed = false
	old, current, gone := "r1", want, ""
	placed := func(o *federation.Object) { o.Placement = []string{"m1"} }
	for _, c := range []struct {
		reason string
		change func(*federation.Object)
		seen   *federation.Observed
		wrote  *string
		want   action
	}{
		{"it is not there", placed, nil, nil, apply},
		{"it is as wanted", placed, there(want, want), nil, none},
		{"it has an earlier revision", placed, there("r1", "r1"), nil, apply},
		{"its spec was changed", placed, there("x", want), nil, apply},
		{"its label was changed", placed, there(want, "r1"), nil, apply},
		{"its label was removed", placed, unmanaged, nil, apply},
		{"KubeFed would not find it", placed, hidden, nil, apply},
		{"an earlier revision was written, which is not observed yet", placed, there(want, want), &old, apply},
		{"it was deleted, which is not observed yet", placed, there(want, want), &gone, apply},
		{"it was written, which is not observed yet", placed, there("r1", "r1"), &current, apply},
		{"it is placed elsewhere", func(o *federation.Object) { o.Placement = []string{"m2"} }, there(want, want), nil, remove},
		{"it is placed nowhere, and was written, which is not observed yet", func(*federation.Object) {}, nil, &current, remove},
		{"it is placed nowhere, and was deleted", func(*federation.Object) {}, nil, &gone, none},
		{"it is placed nowhere, and is not there", func(*federation.Object) {}, nil, nil, none},
		{"the record cannot be read in full", func(o *federation.Object) { o.ForeignFields = true }, there(want, want), nil, refuse},
	} {
		o := &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x"}, TemplateLabels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelRevision: want}, TemplateSpec: map[string]any{}}
		c.change(o)
		if got := plan(o, "m1", want, c.seen, c.wrote); got != c.want {
			t.Errorf("%s: got %d, want %d", c.reason, got, c.want)
		}
	}
}
