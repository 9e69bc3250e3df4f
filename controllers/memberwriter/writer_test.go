package memberwriter

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

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
		last            sent
		want            string // "": there is nothing to write
	}{
		{"what the template has, onto what was seen", "m1", seen("old", "old"), sent{}, template},
		{"a member may have something else", "m2", seen("old", "old"), sent{}, override},
		{"it is there", "m1", seen("new", "new"), sent{}, ""},
		{"it was changed manually, which KubeFed reverts", "m1", seen("old", "changed"), sent{}, ""},
		{"it says nothing of itself", "m1", seen("", ""), sent{}, ""},
		{"it is not ours", "m1", foreign, sent{}, ""},
		{"KubeFed makes new ones", "m1", federation.Observation{Registered: true, Reachable: true}, sent{}, ""},
		{"nobody knows what is there", "m1", away, sent{}, ""},
		{"it is not placed there", "m3", seen("old", "old"), sent{}, ""},
		{"it was sent, and is not seen yet", "m1", seen("old", "old"), sent{"old", "new"}, ""},
		{"it is there, and what was sent since is taken back", "m1", seen("new", "new"), sent{"new", "old"}, template},
		{"onto what was sent since", "m1", seen("older", "older"), sent{"older", "old"}, template},
		{"what was sent was seen, and KubeFed wrote since", "m1", seen("old", "old"), sent{"older", "mid"}, template},
		{"nor then is there anything to do", "m1", seen("new", "new"), sent{"older", "mid"}, ""},
	} {
		got, err := patchOf(object(), c.cluster, c.seen, c.last)
		if c.want == "" != errors.Is(err, errNothing) {
			t.Errorf("%s: got error %v", c.reason, err)
		}
		if d := cmp.Diff(c.want, string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, d)
		}
	}
}

// TestSendOnlyWhenKubeFedIsBehind checks that KubeFed propagates whatever it can.
func TestSendOnlyWhenKubeFedIsBehind(t *testing.T) {
	members := fleet{{Name: "m1"}, {Name: "m2"}, {Name: "held", Quarantined: true}, {Name: "leaving", Leaving: true}, {Name: "other"}}
	o := &federation.Object{Meta: metav1.ObjectMeta{Name: "acp-x"}, Placement: []string{"m1", "m2", "held", "leaving"}, TemplateSpec: map[string]any{}}
	for behind, want := range map[bool]int{false: 0, true: 2} {
		w := &Writer{Members: members, Host: host{}, Behind: func() bool { return behind }}
		w.begin()
		w.Send(o)
		w.Send(o)
		if got := waiting(w); got != want {
			t.Errorf("KubeFed behind %t: got %d waiting writes, want %d", behind, got, want)
		}
	}
}

// TestOverdue checks that KubeFed has Timeout for an urgent object, and not longer.
func TestOverdue(t *testing.T) {
	object := func(name string, generation int64, done bool) *federation.Object {
		return &federation.Object{Meta: metav1.ObjectMeta{Name: name, Generation: generation}, Placement: []string{"m1"}, TemplateSpec: map[string]any{},
			Propagation: federation.Propagation{Seen: done}}
	}
	on := host{}
	pauses := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	w := &Writer{Members: fleet{{Name: "m1"}}, Host: on, Behind: func() bool { return false }, Timeout: 5 * time.Second, Pauses: pauses}
	w.begin()
	for _, name := range []string{"slow", "done", "deleted", "changed"} {
		w.Send(object(name, 1, false))
	}
	on["slow"], on["done"], on["changed"] = object("slow", 1, false), object("done", 1, true), object("changed", 2, false)
	pauses.Step(w.Timeout - 1)
	w.overdue()
	if waiting(w) != 0 || len(w.urgent) != 2 {
		t.Errorf("before Timeout has passed: got %d waiting writes and %d urgent objects", waiting(w), len(w.urgent))
	}
	pauses.Step(1)
	w.overdue()
	if len(w.urgent) != 0 || waiting(w) != 2 || w.wanted[place{"m1", "changed"}].Meta.Generation != 2 || w.wanted[place{"m1", "slow"}] == nil {
		t.Errorf("after Timeout has passed: got waiting %v and urgent %v", w.wanted, w.urgent)
	}
}

// TestRevertedAtOnce reverts a change before the first write is observed. The earlier state must not stay because it
// was the last one observed.
func TestRevertedAtOnce(t *testing.T) {
	closed, open := map[string]any{"closed": true}, map[string]any{"closed": false}
	object := func(generation int64, revision string, spec map[string]any) *federation.Object {
		return &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x", Generation: generation}, Placement: []string{"m1"},
			TemplateLabels: map[string]string{v1alpha1.LabelRevision: revision}, TemplateSpec: spec}
	}
	there := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "acp-x",
		"labels": map[string]any{v1alpha1.LabelRevision: "closed"}}, "spec": closed}}
	there.SetGroupVersionKind(federation.CiliumPolicy.Target)
	member := fake.NewSimpleDynamicClient(runtime.NewScheme(), there)
	seen := &watched{fleet: fleet{{Name: "m1"}}, label: "closed"}
	w := &Writer{Members: seen, Host: host{}, Behind: func() bool { return true }}
	w.begin()
	w.clients["m1"] = client{member, seen.fleet[0], time.Now().Add(time.Hour)}
	at := place{"m1", federation.CiliumPolicy.Key("acp-x")}
	is := func(want string) {
		t.Helper()
		now, err := member.Resource(federation.CiliumPolicy.TargetResource).Get(t.Context(), "acp-x", metav1.GetOptions{})
		if err != nil || now.GetLabels()[v1alpha1.LabelRevision] != want {
			t.Fatalf("the member has labels %v, want revision %s: %v", now.GetLabels(), want, err)
		}
	}
	for i, step := range []struct {
		revision string
		spec     map[string]any
	}{{"open", open}, {"closed", closed}, {"open", open}, {"closed", closed}} {
		if err := w.write(t.Context(), at, object(int64(i+2), step.revision, step.spec)); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		is(step.revision)
	}
	if err := w.write(t.Context(), at, object(7, "closed", closed)); !errors.Is(err, errNothing) {
		t.Errorf("write of an unchanged object: got %v, want errNothing", err)
	}
	seen.label = "open" // The watch has observed the first write only.
	w.overdue()
	if len(w.sent) != 0 {
		t.Errorf("an observed write is still recorded as sent: %v", w.sent)
	}
}

// TestReplacedObjectsAreNotWritten checks that the content of a Federated object that was deleted and created again is
// not written over that of the new one, whether it waited for KubeFed or in the queue of a member.
func TestReplacedObjectsAreNotWritten(t *testing.T) {
	closed, open := map[string]any{"closed": true}, map[string]any{"closed": false}
	object := func(uid, version, revision string, spec map[string]any) *federation.Object {
		return &federation.Object{
			Kind:           federation.CiliumPolicy,
			Meta:           metav1.ObjectMeta{Name: "acp-x", UID: types.UID(uid), ResourceVersion: version, Generation: 1},
			Placement:      []string{"m1"},
			TemplateLabels: map[string]string{v1alpha1.LabelRevision: revision},
			TemplateSpec:   spec,
		}
	}
	key := federation.CiliumPolicy.Key("acp-x")
	for _, c := range []struct {
		reason string
		sent   *federation.Object
		now    *federation.Object // on the host, as far as the adapter has observed, or nil
		writes bool
	}{
		{"it is there", object("a", "7", "open", open), object("a", "7", "open", open), true},
		{"it was deleted", object("a", "7", "open", open), nil, false},
		{"it was replaced", object("a", "7", "open", open), object("b", "12", "closed", closed), false},
		{"it replaced what the adapter still sees", object("b", "12", "open", open), object("a", "7", "closed", closed), true},
		{"nobody knows which one replaced which", object("a", "?", "open", open), object("b", "12", "closed", closed), false},
	} {
		for _, behind := range []bool{false, true} {
			there := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "acp-x",
				"labels": map[string]any{v1alpha1.LabelRevision: "closed"}}, "spec": closed}}
			there.SetGroupVersionKind(federation.CiliumPolicy.Target)
			member := fake.NewSimpleDynamicClient(runtime.NewScheme(), there)
			metrics, err := NewMetrics(nil)
			if err != nil {
				t.Fatal(err)
			}
			on := host{}
			if c.now != nil {
				on[key] = c.now
			}
			seen := &watched{fleet: fleet{{Name: "m1"}}, label: "closed"}
			pauses := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
			w := &Writer{Members: seen, Host: on, Behind: func() bool { return behind }, Timeout: 5 * time.Second, Metrics: metrics, Pauses: pauses}
			w.begin()
			w.clients["m1"] = client{member, seen.fleet[0], pauses.Now().Add(time.Hour)}
			w.Send(c.sent)
			pauses.Step(w.Timeout)
			w.overdue()
			w.process(t.Context(), place{"m1", key})
			now, err := member.Resource(federation.CiliumPolicy.TargetResource).Get(t.Context(), "acp-x", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if wrote := now.GetLabels()[v1alpha1.LabelRevision] == "open"; wrote != c.writes {
				t.Errorf("%s, KubeFed behind %t: the member has %v", c.reason, behind, now.Object["spec"])
			}
			if len(w.urgent) != 0 {
				t.Errorf("%s: the object is still pending", c.reason)
			}
		}
	}
}

// TestOlderObjectReplacesNoNewer checks that an older object does not replace a newer one in the queue.
func TestOlderObjectReplacesNoNewer(t *testing.T) {
	w := &Writer{Members: fleet{{Name: "m1"}}, Host: host{}, Behind: func() bool { return true }}
	w.begin()
	o := func(uid string, generation int64) *federation.Object {
		return &federation.Object{
			Meta:         metav1.ObjectMeta{Name: "x", UID: types.UID(uid), Generation: generation},
			Placement:    []string{"m1"},
			TemplateSpec: map[string]any{},
		}
	}
	for _, step := range []struct{ sent, want *federation.Object }{
		{o("a", 6), o("a", 6)}, {o("a", 5), o("a", 6)}, {o("a", 7), o("a", 7)}, {o("b", 1), o("b", 1)},
	} {
		w.Send(step.sent)
		if got := w.wanted[place{"m1", step.sent.Key()}]; got.Meta.Generation != step.want.Meta.Generation || got.Meta.UID != step.want.Meta.UID {
			t.Errorf("after Send of %s/%d got %s/%d", step.sent.Meta.UID, step.sent.Meta.Generation, got.Meta.UID, got.Meta.Generation)
		}
	}
}

// watched is a fleet in which one revision is observed everywhere.
type watched struct {
	fleet
	label string
}

func (w *watched) Observe(string, string) federation.Observation {
	return federation.Observation{Registered: true, Reachable: true, Object: &federation.Observed{Managed: true, Label: w.label, Revision: w.label}}
}

// host has the Federated objects by name.
type host map[string]*federation.Object

func (h host) Get(key string) (*federation.Object, bool) { o, ok := h[key]; return o, ok }

// fleet has members of which only the registration is known.
type fleet []federation.Cluster

func (f fleet) Clusters() []federation.Cluster { return f }

func (f fleet) Observe(string, string) federation.Observation { return federation.Observation{} }

// waiting returns the number of writes in all queues.
func waiting(w *Writer) int {
	n := 0
	for _, q := range w.queues {
		n += q.Len()
	}
	return n
}

// TestSlowMemberDelaysNoOther checks that the other members get their writes while all workers of one member hang.
func TestSlowMemberDelaysNoOther(t *testing.T) {
	seen := &watched{fleet: fleet{{Name: "slow"}, {Name: "m2"}}, label: "old"}
	metrics, err := NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	objects := func(n int) (all []*federation.Object) {
		for i := range n {
			all = append(
				all,
				&federation.Object{
					Kind:           federation.CiliumPolicy,
					Meta:           metav1.ObjectMeta{Name: fmt.Sprint("acp-", i), Generation: 1},
					Placement:      []string{"slow", "m2"},
					TemplateLabels: map[string]string{v1alpha1.LabelRevision: "new"},
					TemplateSpec:   map[string]any{},
				},
			)
		}
		return all
	}
	on := host{}
	for _, o := range objects(10) {
		on[o.Key()] = o
	}
	w := &Writer{Members: seen, Host: on, Behind: func() bool { return true }, Timeout: time.Second, PerMember: 2, Metrics: metrics}
	w.begin()
	hangs, written := make(chan struct{}), make(chan string, 100)
	for _, c := range seen.fleet {
		member := fake.NewSimpleDynamicClient(runtime.NewScheme())
		member.PrependReactor("patch", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
			if c.Name == "slow" {
				<-hangs
			}
			written <- c.Name
			return true, &unstructured.Unstructured{}, nil
		})
		w.clients[c.Name] = client{member, c, time.Now().Add(time.Hour)}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Start(ctx) }()
	const n = 10
	for _, o := range objects(n) {
		w.Send(o)
	}
	for i := range n {
		select {
		case name := <-written:
			if name != "m2" {
				t.Fatalf("%s was written", name)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("got only %d of %d writes while the other member hangs", i, n)
		}
	}
	close(hangs)
	for range n {
		if name := <-written; name != "slow" {
			t.Errorf("%s was written twice", name)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestRetries checks that a write that the member refused for the moment is repeated after a pause, and how often.
func TestRetries(t *testing.T) {
	busy, conflict := apierrors.NewTooManyRequests("busy", 1), apierrors.NewConflict(federation.CiliumPolicy.TargetResource.GroupResource(), "acp-x", nil)
	for _, c := range []struct {
		reason  string
		answers []error // of the member, in order; the last one is repeated
		want    int     // writes
	}{
		{"it was written", []error{nil}, 1},
		{"the member was busy once", []error{busy, nil}, 2},
		{"the member stays busy", []error{busy}, attempts},
		{"KubeFed wrote at the same time", []error{conflict}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			member, writes := fake.NewSimpleDynamicClient(runtime.NewScheme()), 0
			member.PrependReactor("patch", "*", func(k8stesting.Action) (bool, runtime.Object, error) {
				writes++
				return true, &unstructured.Unstructured{}, c.answers[min(writes, len(c.answers))-1]
			})
			metrics, err := NewMetrics(nil)
			if err != nil {
				t.Fatal(err)
			}
			o := &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x", Generation: 1}, Placement: []string{"m1"},
				TemplateLabels: map[string]string{v1alpha1.LabelRevision: "new"}, TemplateSpec: map[string]any{}}
			seen, pauses := &watched{fleet: fleet{{Name: "m1"}}, label: "old"}, clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
			w := &Writer{Members: seen, Host: host{o.Key(): o}, Behind: func() bool { return true }, Timeout: time.Second, Metrics: metrics, Pauses: pauses}
			w.begin()
			w.clients["m1"] = client{member, seen.fleet[0], pauses.Now().Add(time.Hour)}
			w.Send(o)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				w.process(t.Context(), place{"m1", o.Key()})
			}()
			for n := 1; n < c.want; n++ {
				synctest.Wait()
				pauses.Step(retryPause - 1)
				synctest.Wait()
				if writes != n {
					t.Errorf("%s: %d writes during pause %d", c.reason, writes, n)
				}
				pauses.Step(1)
			}
			<-ended
			if writes != c.want {
				t.Errorf("%s: %d writes, want %d", c.reason, writes, c.want)
			}
		})
	}
}

// TestTokensAreReadAgain checks that a rotated token is used after clientLifetime.
func TestTokensAreReadAgain(t *testing.T) {
	core := kubernetesfake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "m1-token", Namespace: "fed"},
		Data: map[string][]byte{tokenKey: []byte("t")}})
	pauses := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	w := &Writer{Secrets: core.CoreV1(), KubeFedNamespace: "fed", Pauses: pauses}
	w.begin()
	for _, c := range []struct {
		after time.Duration
		reads int
	}{{0, 1}, {clientLifetime - 1, 1}, {1, 2}} {
		pauses.Step(c.after)
		if _, err := w.client(t.Context(), federation.Cluster{Name: "m1", Endpoint: "https://m1.example", Secret: "m1-token"}); err != nil {
			t.Fatal(err)
		}
		if reads := len(core.Actions()); reads != c.reads {
			t.Errorf("%s later the token was read %d times, want %d", c.after, reads, c.reads)
		}
	}
}
