package foreignpolicies

import (
	"testing"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

type readable map[string]federation.Observation

func (r readable) Registry() (bool, error) { return true, nil }
func (r readable) Clusters() []federation.Cluster {
	return []federation.Cluster{{Name: "m1"}, {Name: "m2"}}
}
func (r readable) Observe(cluster string) federation.Observation { return r[cluster] }

// A policy that cannot be read is reported as unknown, so that it is never taken for one that opens nothing.
func TestUnknownReason(t *testing.T) {
	changes := 0
	o := &detector[federation.IstioExposure]{changed: func() { changes++ }, requested: map[string]bool{}, trigger: make(chan struct{}, 1),
		members: map[string]federation.IstioExposure{}, unknown: map[string]message.Message{},
		pods: func(string) federation.Observation { return federation.Observation{Reachable: true} },
		find: func(string) federation.IstioExposure { return federation.IstioExposure{} }}
	seen := readable{"m1": {Reachable: true}, "m2": {Unknown: true, Message: message.Verbatim("m2 has not been contacted yet")}}
	o.policies = seen
	if o.unknownReason("m1").IsZero() {
		t.Error("a member that was not evaluated counts as known")
	}
	if o.evaluate() {
		t.Error("the evaluation counts as complete without m2")
	}
	if why := o.unknownReason("m1"); !why.IsZero() || !o.Observe("m2", "").Unknown || o.unknownReason("m2").IsZero() || changes != 1 {
		t.Errorf("m1 %q, m2 %q, %d changes", why, o.unknownReason("m2"), changes)
	}
	seen["m2"] = federation.Observation{Message: message.Verbatim("m2 does not let the adapter read networkpolicies")}
	if !o.evaluate() {
		t.Error("the evaluation waits for a member that cannot be read")
	}
	if why := o.unknownReason("m2"); why != seen["m2"].Message || o.Observe("m2", "").Unknown || changes != 2 {
		t.Errorf("forbidden: %q, %d changes", why, changes)
	}
	seen["m2"] = federation.Observation{Reachable: true}
	o.evaluate()
	o.evaluate()
	if why := o.unknownReason("m2"); !why.IsZero() || changes != 3 {
		t.Errorf("readable: %q, %d changes", why, changes)
	}
}

// TestUnreadableIdentitiesAreUnknown checks that what is opened is unknown while the identities of the pods cannot be read, also
// if they were read before: the last ones may lack pods that a policy opens.
func TestUnreadableIdentitiesAreUnknown(t *testing.T) {
	changes := 0
	pods := federation.Observation{Reachable: true}
	o := &detector[federation.IstioExposure]{changed: func() { changes++ }, requested: map[string]bool{}, trigger: make(chan struct{}, 1),
		members: map[string]federation.IstioExposure{}, unknown: map[string]message.Message{},
		policies: readable{"m1": {Reachable: true}, "m2": {Reachable: true}},
		pods: func(cluster string) federation.Observation {
			if cluster == "m1" {
				return pods
			}
			return federation.Observation{Reachable: true}
		},
		find: func(string) federation.IstioExposure { return federation.IstioExposure{} }}
	o.evaluate()
	for n, c := range []struct {
		reason string
		pods   federation.Observation
	}{
		{"they may not be read", federation.Observation{Message: message.Verbatim("m1 does not let the adapter read ciliumidentities")}},
		{"the member is contacted again", federation.Observation{Unknown: true, Message: message.Verbatim("m1 is being listed")}},
		{"they are read", federation.Observation{Reachable: true}},
	} {
		pods = c.pods
		o.requeue("m1")
		o.evaluate()
		if why := o.unknownReason("m1"); why != c.pods.Message || !o.unknownReason("m2").IsZero() || changes != n+2 {
			t.Errorf("%s: %q, m2 %q, %d changes", c.reason, why, o.unknownReason("m2"), changes)
		}
	}
}
