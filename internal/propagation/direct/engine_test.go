package direct

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/propagation"
)

// noMembers, noHost and noClients are what an engine needs that is never started.
type (
	noMembers struct{ propagation.Registry }
	noHost    struct{ federation.Host }
	noClients struct{}
)

func (noMembers) Observe(string, string) federation.Observation { return federation.Observation{} }

func (noClients) Of(context.Context, federation.Cluster) (dynamic.Interface, error) {
	return nil, errNoCredentials
}
func (noClients) Forget(string) {}

// TestReportIsHandledAfterUncertainty checks that a request without an answer is not reported as handled while it may still take effect.
func TestReportIsHandledAfterUncertainty(t *testing.T) {
	metrics, err := NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	e, err := New(Config{Of: "policies", Host: noHost{}, Members: noMembers{}, Clients: noClients{}, Metrics: metrics, Clock: now,
		Revision: func(map[string]any) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	o := &federation.Object{Meta: metav1.ObjectMeta{Namespace: "acp-system", Name: "acp-x", UID: "u", Generation: 2}}
	e.results[place{"m1", o.Key()}] = result{uid: "u", generation: 2, reason: "no answer", uncertain: now.Now().Add(uncertainty)}
	for _, step := range []struct {
		after   time.Duration
		handled bool
	}{{0, false}, {uncertainty, false}, {time.Nanosecond, true}} {
		now.Step(step.after)
		if got := e.Report(o, "m1"); got.Handled != step.handled || got.Applied || got.Reason != "no answer" {
			t.Errorf("%s after: %+v", now.Since(time.Unix(1_000_000, 0)), got)
		}
	}
	o.Meta.Generation = 3
	if got := e.Report(o, "m1"); got.Handled {
		t.Errorf("a version that was not handled is reported as handled: %+v", got)
	}
}

// oneMember is a registry with one member of the engine.
type oneMember struct {
	propagation.Registry
	seen federation.Observation
}

func (oneMember) Cluster(name string) (federation.Cluster, bool) {
	return federation.Cluster{Name: name, Engine: federation.EngineDirect}, true
}

func (m oneMember) Observe(string, string) federation.Observation { return m.seen }

type oneObject struct {
	federation.Host
	object *federation.Object
}

func (h oneObject) Get(string) (*federation.Object, bool) { return h.object, true }

// TestAWriteWaitsForItsObservation checks that an object which was just written is not written again before the member was read after
// that write, but is when it was and does not have it.
func TestAWriteWaitsForItsObservation(t *testing.T) {
	for _, c := range []struct {
		name  string
		asOf  string
		after time.Duration
		want  next
	}{
		{"the observation is older than the write", "9", 2 * time.Second, next{after: 8 * time.Second}},
		{"it stays older for long", "9", 11 * time.Second, next{failed: true}},
		{"another writer removed the object", "11", 200 * time.Millisecond, next{after: 800 * time.Millisecond}},
		{"it removed the object a while ago", "11", 2 * time.Second, next{failed: true}},
		{"the version of the observation is not known", "", 2 * time.Second, next{failed: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			metrics, err := NewMetrics(nil)
			if err != nil {
				t.Fatal(err)
			}
			now := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
			revision := "r1"
			o := &federation.Object{Meta: metav1.ObjectMeta{Name: "acp-x", UID: "u", Generation: 2}, Placement: []string{"m1"},
				TemplateLabels: map[string]string{v1alpha1.LabelRevision: revision}}
			members := oneMember{seen: federation.Observation{Registered: true, Reachable: true, AsOf: c.asOf}}
			e, err := New(Config{Of: "policies", Host: oneObject{object: o}, Members: members, Clients: noClients{}, Metrics: metrics, Clock: now,
				Revision: func(map[string]any) string { return revision }})
			if err != nil {
				t.Fatal(err)
			}
			at := place{"m1", o.Key()}
			e.results[at] = result{uid: "u", generation: 2, wrote: &revision, version: "10", at: now.Now()}
			now.Step(c.after)
			// The engine has no credentials, so that a write fails.
			if got := e.handle(t.Context(), at); got != c.want {
				t.Errorf("handled with %+v, want %+v", got, c.want)
			}
		})
	}
}
