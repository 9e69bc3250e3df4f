package federation

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestBulkDuration(t *testing.T) {
	for n, want := range map[int]time.Duration{-1: 0, 0: 0, 1: 50 * time.Millisecond, 2000: 100 * time.Second} {
		if got := BulkDuration(n); got != want {
			t.Errorf("%d objects: got %s, want %s", n, got, want)
		}
	}
}

// known are members as a test wants them seen.
type known struct {
	held map[string]bool
	seen map[string]Observation
}

func (k known) Registry() (bool, error)                              { return true, nil }
func (k known) Observe(cluster, _ string) Observation                { return k.seen[cluster] }
func (k known) Absent(context.Context, string, string) (bool, error) { return false, nil }
func (k known) Clusters() []Cluster {
	var out []Cluster
	for name := range k.seen {
		out = append(out, Cluster{Name: name, Quarantined: k.held[name]})
	}
	return out
}

func TestPendingMembers(t *testing.T) {
	has := func(label string) Observation {
		return Observation{Registered: true, Reachable: true, Object: &Observed{Label: label, Revision: label}}
	}
	without, away := Observation{Registered: true, Reachable: true}, Observation{Registered: true}
	object := func(change func(*Object)) *Object {
		o := &Object{Meta: metav1.ObjectMeta{Name: "acp-x", Annotations: map[string]string{AnnotationEverPlaced: "m1,m2"}},
			Placement: []string{"m1", "m2"}, TemplateLabels: map[string]string{v1alpha1.LabelRevision: "new"}}
		if change != nil {
			change(o)
		}
		return o
	}
	plain := object(nil)
	unlabelled := object(func(o *Object) {
		o.TemplateLabels = nil
		o.Meta.Annotations[AnnotationRevision] = "new"
	})
	for _, c := range []struct {
		reason  string
		object  *Object
		members known
		want    []string
	}{
		{"one member lacks it", plain, known{nil, map[string]Observation{"m1": has("new"), "m2": has("old")}}, []string{"m2"}},
		{"every member has it, though KubeFed has not said so", plain, known{nil, map[string]Observation{"m1": has("new"), "m2": has("new")}}, nil},
		{"the one that lacks it cannot be read, and may be away for days", plain, known{nil, map[string]Observation{"m1": has("new"), "m2": away}}, nil},
		{
			"one member was not heard of yet, as after a start", plain,
			known{nil, map[string]Observation{"m1": has("new"), "m2": {Registered: true, Unknown: true}}}, []string{"m2"},
		},
		{"the one that lacks it is quarantined", plain, known{map[string]bool{"m2": true}, map[string]Observation{"m1": has("new"), "m2": without}}, nil},
		{"the one that lacks it is not registered", plain, known{nil, map[string]Observation{"m1": has("new")}}, nil},
		{
			"KubeFed has handled it", object(func(o *Object) { o.Propagation.Seen = true }),
			known{nil, map[string]Observation{"m1": without, "m2": without}}, nil,
		},
		{"it is nobody's work any more", object(func(o *Object) { now := metav1.Now(); o.Meta.DeletionTimestamp = &now }),
			known{nil, map[string]Observation{"m1": has("new"), "m2": without}}, nil},
		{
			"a member that has to be rid of it is not", object(func(o *Object) { o.Placement = []string{"m1"} }),
			known{nil, map[string]Observation{"m1": has("new"), "m2": has("new")}}, []string{"m2"},
		},
		{
			"a member that has to be rid of it is", object(func(o *Object) { o.Placement = nil }),
			known{nil, map[string]Observation{"m1": without, "m2": without}}, nil,
		},
		{"a member with a spec of its own has the template's", object(func(o *Object) {
			o.Overrides = map[string]Override{"m2": {Labels: map[string]string{v1alpha1.LabelRevision: "own"}}}
		}), known{nil, map[string]Observation{"m1": has("new"), "m2": has("new")}}, []string{"m2"}},
		{"a member with a spec of its own has that", object(func(o *Object) {
			o.Overrides = map[string]Override{"m2": {Labels: map[string]string{v1alpha1.LabelRevision: "own"}}}
		}), known{nil, map[string]Observation{"m1": has("new"), "m2": has("own")}}, nil},
		{"an object whose labels do not say the revision is compared by its spec", unlabelled,
			known{
				nil,
				map[string]Observation{
					"m1": {Registered: true, Reachable: true, Object: &Observed{Revision: "new"}},
					"m2": {Registered: true, Reachable: true, Object: &Observed{Revision: "old"}},
				},
			},
			[]string{"m2"}},
		{
			"an object of an earlier form says it in its label", unlabelled,
			known{nil, map[string]Observation{"m1": has("new"), "m2": has("old")}}, []string{"m2"},
		},
		{"there is none", nil, known{}, nil},
	} {
		if got := PendingMembers(c.object, c.members); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
		}
	}
}
