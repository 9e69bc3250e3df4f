package direct

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	clocktesting "k8s.io/utils/clock/testing"

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

// TestReportIsSettledAfterUncertainty checks that a request without an answer is not reported as settled while it may still take effect.
func TestReportIsSettledAfterUncertainty(t *testing.T) {
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
		settled bool
	}{{0, false}, {uncertainty, false}, {time.Nanosecond, true}} {
		now.Step(step.after)
		if got := e.Report(o, "m1"); got.Settled != step.settled || got.Applied || got.Reason != "no answer" {
			t.Errorf("%s after: %+v", now.Since(time.Unix(1_000_000, 0)), got)
		}
	}
	o.Meta.Generation = 3
	if got := e.Report(o, "m1"); got.Settled {
		t.Errorf("a version that was not handled is reported as settled: %+v", got)
	}
}
