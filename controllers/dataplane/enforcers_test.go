package dataplane

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/testenv"
)

const (
	services = "trnv1:rsc:trip-com:grpc:services:"
	jobs     = "trnv1:rsc:trip-com:batch:jobs:"
	apps     = "trnv1:rsc:trip-com:iam:sa:app/"
	able     = `{"dataplane": "sidecar", "version": "1.31.1", "strictMTLS": true}`
	lax      = `{"dataplane": "sidecar", "version": "1.31.1"}`
)

var at = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is an index with two classes that Istio enforces, and an enforced resource of each.
func world(t *testing.T, more ...client.Object) (*policycache.Cache, *testenv.Objects) {
	t.Helper()
	x, cache := policycache.New(policycache.NewQueues(clock.RealClock{})), &testenv.Objects{}
	if _, err := x.Listen(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	class := func(name, stem, key string) *v1alpha1.ResourceClass {
		return &v1alpha1.ResourceClass{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.ResourceClassSpec{Pattern: v1alpha1.NamePattern(stem + "*"), LabelKey: v1alpha1.LabelKey(key),
				Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}, Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
				Actions: []v1alpha1.ClassAction{{Name: name + ":call", Ports: []v1alpha1.Port{{Port: 9000, Protocol: v1alpha1.ProtocolTCP}}}}},
		}
	}
	protect := func(name, resource string) *v1alpha1.ProtectedResource {
		return &v1alpha1.ProtectedResource{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(resource), Mode: v1alpha1.ModeEnforce},
		}
	}
	for _, o := range append([]client.Object{class("grpc", services, "s"), class("batch", jobs, "j"), protect("a", services+"a"), protect("b", jobs+"b"),
		&v1alpha1.SubjectClass{
			ObjectMeta: metav1.ObjectMeta{Name: "application"},
			Spec:       v1alpha1.SubjectClassSpec{Pattern: apps + "*", LabelKey: "a", ServiceAccountTemplate: "app-{id}"},
		},
		statement("anyone", v1alpha1.EffectAllow, "*", "grpc:call", services+"a")}, more...) {
		if err := cache.Change(nil, o); err != nil {
			t.Fatal(err)
		}
	}
	return x, cache
}

func statement(name string, effect v1alpha1.Effect, subject, action, resource string) *v1alpha1.AccessControlPolicy {
	return &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
		{
			SID:       "s",
			Effect:    effect,
			Subjects:  []v1alpha1.Subject{v1alpha1.Subject(subject)},
			Actions:   []v1alpha1.Action{v1alpha1.Action(action)},
			Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)},
		},
	}}}
}

func members(declared ...string) []federation.Cluster {
	var out []federation.Cluster
	for i, d := range declared {
		out = append(out, federation.Cluster{Name: "m" + string(rune('1'+i)), Istio: d})
	}
	return out
}

// rules of the first object that a resource is given for its base mode.
func rules(t *testing.T, d *Enforcers, x *policycache.Cache, clusters []federation.Cluster, now time.Time) int {
	t.Helper()
	e, why := d.Of(v1alpha1.EnforcerIstio, x.View(), clusters, now)
	if why != nil {
		t.Fatalf("%+v", why)
	}
	u, ok := x.View().CompileResource(services+"a", now)
	if !ok {
		t.Fatal("no unit")
	}
	r, err := e.Render(u)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := r.Objects[0].Object.Spec["rules"].([]any)
	// The rule that matches nobody has no operation.
	return len(slices.DeleteFunc(list, func(rule any) bool { return rule.(map[string]any)["to"] == nil }))
}

// TestDeniesOfOtherClassesAreKnown checks that a deny of another class that members cannot express removes the allows that it
// could override on a pod of both classes, and that every unit is requeued when such a deny appears.
func TestDeniesOfOtherClassesAreKnown(t *testing.T) {
	x, cache := world(t)
	changed := 0
	d := &Enforcers{
		IstioSupport: func() (bool, message.Message) { return true, message.Message{} },
		Changed:      func() { changed++ },
		NoHTTP:       func(string) message.Message { return message.Message{} },
	}
	fleet := members(lax, lax)
	if n := rules(t, d, x, fleet, at); n != 1 {
		t.Fatalf("%d rules before there is a deny, want 1", n)
	}
	if err := cache.Change(nil, statement("deny", v1alpha1.EffectDeny, apps+"888", "batch:call", jobs+"*")); err != nil {
		t.Fatal(err)
	}
	if n := rules(t, d, x, fleet, at); n != 0 || changed != 1 {
		t.Errorf("%d rules beside a deny by name that a pod without name gets past, want 0; changed %d times, want 1", n, changed)
	}
	if n := rules(t, d, x, fleet, at.Add(time.Minute)); n != 0 || changed != 1 {
		t.Errorf("a minute later: %d rules, changed %d times", n, changed)
	}
	if n := rules(t, d, x, members(able, able), at.Add(time.Minute)); n != 1 || changed != 2 {
		t.Errorf("%d rules in members that let nobody in without name, want 1; changed %d times, want 2", n, changed)
	}
}

// third is an enforcer that this package does not name.
type third struct{ enforcer.Enforcer }

// TestThirdEnforcer checks that the registration of an enforcer is enough for the adapter to use it, with the snapshot of its view.
func TestThirdEnforcer(t *testing.T) {
	x, _ := world(t)
	v := x.View()
	var job registry.Job
	broken := message.Verbatim("it does not start")
	d := &Enforcers{}
	prepare := func(j registry.Job) (registry.Plan, error) {
		job = j
		return registry.Plan{Enforcer: third{}}, nil
	}
	defer registry.Register("third", registry.Entry{Prepare: prepare})()
	e, why := d.Of("third", v, members(able), at)
	if why != nil || e != (third{}) || job.Snapshot != v.Snapshot || job.At != at {
		t.Errorf("Of(third) = %v, %+v, prepared for %+v", e, why, job)
	}
	defer registry.Register("broken", registry.Entry{Prepare: func(registry.Job) (registry.Plan, error) { return registry.Plan{}, broken.Err() }})()
	if e, why := d.Of("broken", v, members(able), at); e != nil || why == nil || why.Absent || why.Message != broken {
		t.Errorf("Of(broken) = %v, %+v", e, why)
	}
}

func TestAvailableEnforcers(t *testing.T) {
	x, _ := world(t)
	carried, why := false, message.Verbatim("apply it")
	d := &Enforcers{
		NoHTTP:       func(string) message.Message { return message.Message{} },
		Changed:      func() {},
		IstioSupport: func() (bool, message.Message) { return carried, why },
	}
	of := func(name v1alpha1.EnforcerName) *Reason {
		_, r := d.Of(name, x.View(), members(able), at)
		return r
	}
	if r := of(v1alpha1.EnforcerCilium); r != nil {
		t.Errorf("Cilium is not driven: %+v", r)
	}
	if r := of("iptables"); r == nil || !r.Absent {
		t.Errorf("an unknown enforcer: %+v", r)
	}
	if r := of(v1alpha1.EnforcerIstio); r == nil || !r.Absent || r.Message != why {
		t.Errorf("nothing carries Istio's policies: %+v", r)
	}
	if carried = true; of(v1alpha1.EnforcerIstio) == nil || of(v1alpha1.EnforcerIstio).Absent {
		t.Error("what cannot be carried just now counts as absent, or as fine")
	}
	if why = (message.Message{}); of(v1alpha1.EnforcerIstio) != nil {
		t.Error("Istio is not driven")
	}
	lacking := d.NotEnforcing(v1alpha1.EnforcerIstio, members(able, "", "{"))
	if len(lacking) != 2 || !strings.Contains(lacking["m2"].Text, "declares no Istio") || !strings.Contains(lacking["m3"].Text, "cannot be read") {
		t.Errorf("%q", lacking)
	}
	if l := d.NotEnforcing(v1alpha1.EnforcerCilium, members("")); l != nil {
		t.Errorf("Cilium's is found out by looking: %q", l)
	}
}
