package protectedresource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/controllers/pace"
	"github.com/acp-io/acp/internal/federation"
)

// TestOrder: what a plan is shows in what is written, member by member, whoever asked and however.
func TestOrder(t *testing.T) {
	spec := func(closed bool, apps ...any) map[string]any {
		rules := []any{map[string]any{}}
		if len(apps) > 0 {
			rules = []any{map[string]any{"fromEndpoints": []any{map[string]any{"matchExpressions": []any{
				map[string]any{"key": "k8s:app", "operator": "In", "values": apps}}}}}}
		}
		return map[string]any{"enableDefaultDeny": map[string]any{"ingress": closed, "egress": false}, "ingress": rules}
	}
	object := func(spec map[string]any, placement ...string) *federation.Object {
		return &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x"}, TemplateSpec: spec, Placement: placement}
	}
	with := func(o *federation.Object, change func(*federation.Object)) *federation.Object { change(o); return o }
	one, both := spec(true, "1"), spec(true, "1", "2")
	for _, c := range []struct {
		reason    string
		was, next *federation.Object
		asked     bool
		want      pace.Kind
	}{
		{"a new unit that nobody waits for", nil, object(one, "m1"), false, pace.Bulk},
		{"a new unit that somebody waits for", nil, object(one, "m1"), true, pace.Grant},
		{"another client", object(one, "m1"), object(both, "m1"), true, pace.Grant},
		{"a client less, in the middle of a change of everything", object(both, "m1"), object(one, "m1"), false, pace.Revocation},
		{"a client less in one member only", object(both, "m1", "m2"), with(object(both, "m1", "m2"), func(o *federation.Object) {
			o.Overrides = map[string]federation.Override{"m2": {Spec: one}}
		}), false, pace.Revocation},
		{"one member is opened while a client is taken away in another", object(both, "m1", "m2"), with(object(one, "m1", "m2"), func(o *federation.Object) {
			o.Overrides = map[string]federation.Override{"m2": {Spec: spec(false, "1")}}
		}), false, pace.Downgrade},
		{"a temporary audit", object(both, "m1"), object(spec(false, "1", "2"), "m1"), false, pace.Downgrade},
		{"its end", object(spec(false, "1", "2"), "m1"), object(both, "m1"), true, pace.Grant},
		{"another member gets it", object(both, "m1"), object(both, "m1", "m2"), true, pace.Grant},
		{"a member that it closed is left", object(both, "m1", "m2"), object(both, "m1"), false, pace.Downgrade},
		{"a member is left by what only allowed", object(spec(false, "1"), "m1", "m2"), object(spec(false, "1"), "m1"), false, pace.Revocation},
		{"what was emptied before goes", object(spec(false), "m1"), object(spec(false)), false, pace.Bulk},
		{"somebody else's hand was in it", with(object(one, "m1"), func(o *federation.Object) { o.Foreign = true }), object(one, "m1"), false, pace.Revocation},
		{"a kind that is not understood here", with(object(one, "m1"), func(o *federation.Object) { o.Kind = federation.CiliumGroup }), object(both, "m1"), true, pace.Revocation},
	} {
		f := &facts{}
		if c.was != nil {
			f.Existing = []*federation.Object{c.was}
		}
		if got := order(f, &plan{Writes: []*federation.Object{c.next}}, c.asked); got != c.want {
			t.Errorf("%s: it is a %s, not a %s", c.reason, got, c.want)
		}
	}
}
