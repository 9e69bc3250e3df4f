package approval_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

func (w *world) protecting(mode func() (v1alpha1.Mode, error)) *approval.Worker {
	x := w.worker("a")
	x.DefaultMode = func(string, string) (v1alpha1.Mode, error) { return mode() }
	return x
}

// modeOf is the mode in which a resource is onboarded, or empty.
func (w *world) modeOf(resource string) v1alpha1.Mode {
	w.t.Helper()
	o, ok, err := w.host.Object(approval.ObjectProtectedResource, "p-"+resource)
	if err != nil {
		w.t.Fatal(err)
	}
	var spec v1alpha1.ProtectedResourceSpec
	if ok {
		if err := json.Unmarshal(o.Spec, &spec); err != nil {
			w.t.Fatal(err)
		}
	}
	return spec.Mode
}

func TestTheFirstStatementOnboards(t *testing.T) {
	w := newWorld(t)
	enforce := func() (v1alpha1.Mode, error) { return v1alpha1.ModeEnforce, nil }
	n := w.approved("a", "redis")
	// The host cluster goes away between the two writes: the job is not done, and done again.
	away := errors.New("not known yet")
	if err := w.protecting(func() (v1alpha1.Mode, error) { return "", away }).Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.modeOf("redis"); got != "" || len(w.sids("redis")) != 1 || w.state(n) != approval.StateApproved && w.state(n) != approval.StateApplying {
		t.Fatalf("%q, %v, %s", got, w.sids("redis"), w.state(n))
	}
	w.clock.pass(2 * lease)
	if err := w.protecting(enforce).Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.modeOf("redis"); got != v1alpha1.ModeEnforce || w.state(n) != approval.StateApplying {
		t.Errorf("%q, %s", got, w.state(n))
	}
	// One that is there stays as it is.
	w.host.SetObject(approval.ObjectProtectedResource, "p-redis", json.RawMessage(`{"resource":"name:redis","mode":"Audit"}`))
	second := w.approved("b", "redis")
	if err := w.protecting(enforce).Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.modeOf("redis"); got != v1alpha1.ModeAudit || w.state(second) != approval.StateApplying {
		t.Errorf("%q, %s", got, w.state(second))
	}
	// One that an administrator deleted is not created again without a request for the first statement.
	w.host.SetObject(approval.ObjectProtectedResource, "p-redis", nil)
	w.revoke(second)
	w.approved("c", "redis")
	if err := w.protecting(func() (v1alpha1.Mode, error) { return "", nil }).Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.modeOf("redis"); got != "" {
		t.Errorf("%q", got)
	}
}
