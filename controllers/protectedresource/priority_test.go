package protectedresource

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
)

// TestPriorityOf checks that the priority follows from the effect of the writes in each member, whatever was requested.
func TestPriorityOf(t *testing.T) {
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
		want      writequeue.Priority
	}{
		{"a new unit that nobody waits for", nil, object(one, "m1"), false, writequeue.Bulk},
		{"a new unit that somebody waits for", nil, object(one, "m1"), true, writequeue.Grant},
		{"another client", object(one, "m1"), object(both, "m1"), true, writequeue.Grant},
		{"a client less, in the middle of a change of everything", object(both, "m1"), object(one, "m1"), false, writequeue.Revocation},
		{"a client less in one member only", object(both, "m1", "m2"), with(object(both, "m1", "m2"), func(o *federation.Object) {
			o.Overrides = map[string]federation.Override{"m2": {Spec: one}}
		}), false, writequeue.Revocation},
		{"one member is opened while a client is taken away in another", object(both, "m1", "m2"), with(object(one, "m1", "m2"), func(o *federation.Object) {
			o.Overrides = map[string]federation.Override{"m2": {Spec: spec(false, "1")}}
		}), false, writequeue.Opening},
		{"a temporary audit", object(both, "m1"), object(spec(false, "1", "2"), "m1"), false, writequeue.Opening},
		{"its end", object(spec(false, "1", "2"), "m1"), object(both, "m1"), true, writequeue.Grant},
		{"another member gets it", object(both, "m1"), object(both, "m1", "m2"), true, writequeue.Grant},
		{"a member that it closed is left", object(both, "m1", "m2"), object(both, "m1"), false, writequeue.Opening},
		{"a member is left by what only allowed", object(spec(false, "1"), "m1", "m2"), object(spec(false, "1"), "m1"), false, writequeue.Revocation},
		{"what was emptied before goes", object(spec(false), "m1"), object(spec(false)), false, writequeue.Bulk},
		{
			"somebody else's hand was in it", with(object(one, "m1"), func(o *federation.Object) { o.ForeignFields = true }),
			object(one, "m1"), false, writequeue.Revocation,
		},
		{
			"a kind that is not understood here", with(object(one, "m1"), func(o *federation.Object) { o.Kind = federation.CiliumGroup }),
			object(both, "m1"), true, writequeue.Revocation,
		},
	} {
		f := &facts{}
		if c.was != nil {
			f.Existing = []*federation.Object{c.was}
		}
		if got := priorityOf(f, &plan{Writes: []*federation.Object{c.next}}, c.asked); got != c.want {
			t.Errorf("%s: it is a %s, not a %s", c.reason, got, c.want)
		}
	}
}

// TestMissingGroupOf checks that a resource is not closed in a member that is known to lack a group which it allows.
func TestMissingGroupOf(t *testing.T) {
	spec := func(closed bool) map[string]any {
		return map[string]any{"enableDefaultDeny": map[string]any{"ingress": closed}}
	}
	object := func(closed bool, placement ...string) *federation.Object {
		return &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x"}, TemplateSpec: spec(closed), Placement: placement}
	}
	there := func(revision string) federation.Observation {
		return federation.Observation{Registered: true, Reachable: true, Object: &federation.Observed{Revision: revision}}
	}
	absent := federation.Observation{Registered: true, Reachable: true}
	group := externalgroup.Object{Name: "acp-g", Revision: "r"}
	for _, c := range []struct {
		reason    string
		was, next *federation.Object
		group     externalgroup.Object
		seen      federation.Observation
		held      bool
		want      string
	}{
		{"a hand deleted the group, and it is to be closed", object(false, "m1"), object(true, "m1"), group, absent, false, "acp-g"},
		{"closed from the beginning", nil, object(true, "m1"), group, absent, false, "acp-g"},
		{"the member has what it was before", object(false, "m1"), object(true, "m1"), group, there("q"), false, "acp-g"},
		{"it is there", object(false, "m1"), object(true, "m1"), group, there("r"), false, ""},
		{"it was closed before", object(true, "m1"), object(true, "m1"), group, absent, false, ""},
		{"it stays open", object(false, "m1"), object(false, "m1"), group, absent, false, ""},
		{"a member more is closed", object(true, "m2"), object(true, "m1", "m2"), group, absent, false, "acp-g"},
		{"nobody can see it", object(false, "m1"), object(true, "m1"), group, federation.Observation{Registered: true}, false, ""},
		{"nothing comes there for now", object(false, "m1"), object(true, "m1"), group, absent, true, ""},
		{"the group is to go", object(false, "m1"), object(true, "m1"), externalgroup.Object{Name: "acp-g"}, there("r"), false, ""},
	} {
		f := &facts{Groups: []externalgroup.Object{c.group}, Clusters: []federation.Cluster{{Name: "m1", Quarantined: c.held}, {Name: "m2"}},
			ObservedGroups: map[string]map[string]federation.Observation{"m1": {"acp-g": c.seen}, "m2": {}}}
		if c.was != nil {
			f.Existing = []*federation.Object{c.was}
		}
		if got := missingGroupOf(f, &plan{Writes: []*federation.Object{c.next}}); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
