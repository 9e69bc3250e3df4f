package direct

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

func TestPatch(t *testing.T) {
	object := func() *federation.Object {
		return &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x"}, Placement: []string{"m1", "m2"},
			TemplateLabels: map[string]string{v1alpha1.LabelRevision: "new", "other~one": "x"}, TemplateSpec: map[string]any{"a": 1},
			Overrides: map[string]federation.Override{"m2": {Spec: map[string]any{"b": 2}, Labels: map[string]string{v1alpha1.LabelRevision: "own"}}}}
	}
	seen := func(label, revision string) federation.Observation {
		return federation.Observation{Registered: true, Reachable: true, Object: &federation.Observed{Managed: true, Label: label, Revision: revision}}
	}
	away, foreign := seen("old", "old"), seen("old", "old")
	away.Reachable, foreign.Object.Managed = false, false
	const template = `[{"op":"test","path":"/metadata/labels/acp.io~1revision","value":"old"},{"op":"replace","path":"/spec","value":{"a":1}},` +
		`{"op":"add","path":"/metadata/labels/acp.io~1revision","value":"new"},{"op":"add","path":"/metadata/labels/other~0one","value":"x"}]`
	const override = `[{"op":"test","path":"/metadata/labels/acp.io~1revision","value":"old"},{"op":"replace","path":"/spec","value":{"b":2}},` +
		`{"op":"add","path":"/metadata/labels/acp.io~1revision","value":"own"},{"op":"add","path":"/metadata/labels/other~0one","value":"x"}]`
	for _, c := range []struct {
		reason, cluster string
		seen            federation.Observation
		want            string // "": nothing
	}{
		{"what the template has, onto what was seen", "m1", seen("old", "old"), template},
		{"a member may have something else", "m2", seen("old", "old"), override},
		{"it is there", "m1", seen("new", "new"), ""},
		{"a hand changed it, which KubeFed mends", "m1", seen("old", "changed"), ""},
		{"it says nothing of itself", "m1", seen("", ""), ""},
		{"it is not ours", "m1", foreign, ""},
		{"KubeFed makes new ones", "m1", federation.Observation{Registered: true, Reachable: true}, ""},
		{"nobody knows what is there", "m1", away, ""},
		{"it is not placed there", "m3", seen("old", "old"), ""},
	} {
		got, err := patchOf(object(), c.cluster, c.seen)
		if c.want == "" != errors.Is(err, errNothing) {
			t.Errorf("%s: %v", c.reason, err)
		}
		if d := cmp.Diff(c.want, string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, d)
		}
	}
}

// TestSendOnlyWhenKubeFedIsBehind: KubeFed carries what it can.
func TestSendOnlyWhenKubeFedIsBehind(t *testing.T) {
	members := fleet{{Name: "m1"}, {Name: "m2"}, {Name: "held", Held: true}, {Name: "leaving", Leaving: true}, {Name: "other"}}
	o := &federation.Object{Meta: metav1.ObjectMeta{Name: "acp-x"}, Placement: []string{"m1", "m2", "held", "leaving"}, TemplateSpec: map[string]any{}}
	for behind, want := range map[bool]int{false: 0, true: 2} {
		w := &Writer{Members: members, Host: host{}, Behind: func() bool { return behind }}
		w.begin()
		w.Send(o)
		w.Send(o)
		if got := w.queue.Len(); got != want {
			t.Errorf("behind %t: %d wait, want %d", behind, got, want)
		}
	}
}

// TestOverdue: KubeFed has its time for what is urgent, and not more.
func TestOverdue(t *testing.T) {
	object := func(name string, generation int64, done bool) *federation.Object {
		return &federation.Object{Meta: metav1.ObjectMeta{Name: name, Generation: generation}, Placement: []string{"m1"}, TemplateSpec: map[string]any{},
			Propagation: federation.Propagation{Seen: done}}
	}
	on := host{}
	w := &Writer{Members: fleet{{Name: "m1"}}, Host: on, Behind: func() bool { return false }, Patience: 5 * time.Second}
	w.begin()
	for _, name := range []string{"slow", "done", "deleted", "changed"} {
		w.Send(object(name, 1, false))
	}
	on["slow"], on["done"], on["changed"] = object("slow", 1, false), object("done", 1, true), object("changed", 2, false)
	now := time.Now()
	w.overdue(now.Add(4 * time.Second))
	if w.queue.Len() != 0 || len(w.urgent) != 2 {
		t.Errorf("in time: %d sent, %d waited for", w.queue.Len(), len(w.urgent))
	}
	w.overdue(now.Add(6 * time.Second))
	if len(w.urgent) != 0 || w.queue.Len() != 2 || w.wanted[place{"m1", "changed"}].Meta.Generation != 2 || w.wanted[place{"m1", "slow"}] == nil {
		t.Errorf("too late: %v sent, %v waited for", w.wanted, w.urgent)
	}
}

// host are the Federated objects by name.
type host map[string]*federation.Object

func (h host) Get(key string) (*federation.Object, bool) { o, ok := h[key]; return o, ok }

// fleet are members of which nothing more is known.
type fleet []federation.Cluster

func (f fleet) Clusters() []federation.Cluster { return f }

func (f fleet) Observe(string, string) federation.Observation { return federation.Observation{} }
