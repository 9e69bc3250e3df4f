package foreignpolicies

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/acp-io/acp/controllers/podlabels"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

type readable map[string]federation.Observation

func (r readable) Registry() (bool, error) { return true, nil }
func (r readable) Clusters() []federation.Cluster {
	return []federation.Cluster{{Name: "m1"}, {Name: "m2"}}
}
func (r readable) Observe(cluster string) federation.Observation { return r[cluster] }

// policyName is the name of the policy that opens every pod in a member, "" if none does.
type policyName string

func (p policyName) OpenedBy(string, string) string { return string(p) }
func (p policyName) Equal(q policyName) bool        { return p == q }

// newTestDetector returns a detector that reads m1 and m2.
func newTestDetector(
	policies readable, pods func(cluster string) federation.Observation, find func(cluster string) (policyName, bool), changed func(),
) *detector[policyName] {
	return &detector[policyName]{policies: policies, pods: pods, find: find, changed: changed, trigger: make(chan struct{}, 1),
		slots: make(chan struct{}, maxEvaluations), requested: map[string]bool{}, evaluations: map[string]*evaluation{},
		members: map[string]policyName{}, unknown: map[string]message.Message{}}
}

// evaluateAll evaluates the members and waits for the results.
func evaluateAll(d *detector[policyName]) bool {
	complete := d.evaluate()
	d.running.Wait()
	return complete
}

func findNothing(string) (policyName, bool) { return "", false }

func podsAreRead(string) federation.Observation { return federation.Observation{Reachable: true} }

// A policy that cannot be read is reported as unknown, so that it is never taken for one that opens nothing.
func TestUnknownReason(t *testing.T) {
	changes := 0
	seen := readable{"m1": {Reachable: true}, "m2": {Unknown: true, Message: message.Verbatim("m2 has not been contacted yet")}}
	o := newTestDetector(seen, podsAreRead, findNothing, func() { changes++ })
	if o.unknownReason("m1").IsZero() {
		t.Error("a member that was not evaluated counts as known")
	}
	if evaluateAll(o) {
		t.Error("the evaluation counts as complete without m2")
	}
	if why := o.unknownReason("m1"); !why.IsZero() || !o.Observe("m2", "").Unknown || o.unknownReason("m2").IsZero() || changes != 1 {
		t.Errorf("m1 %q, m2 %q, %d changes", why, o.unknownReason("m2"), changes)
	}
	seen["m2"] = federation.Observation{Message: message.Verbatim("m2 does not let the adapter read networkpolicies")}
	if !evaluateAll(o) {
		t.Error("the evaluation waits for a member that cannot be read")
	}
	if why := o.unknownReason("m2"); why != seen["m2"].Message || o.Observe("m2", "").Unknown || changes != 2 {
		t.Errorf("forbidden: %q, %d changes", why, changes)
	}
	seen["m2"] = federation.Observation{Reachable: true}
	evaluateAll(o)
	evaluateAll(o)
	if why := o.unknownReason("m2"); !why.IsZero() || changes != 3 {
		t.Errorf("readable: %q, %d changes", why, changes)
	}
}

// TestUnreadableIdentitiesAreUnknown checks that what is opened is unknown while the identities of the pods cannot be read, also
// if they were read before: the last ones may lack pods that a policy opens.
func TestUnreadableIdentitiesAreUnknown(t *testing.T) {
	changes := 0
	pods := federation.Observation{Reachable: true}
	podsIn := func(cluster string) federation.Observation {
		if cluster == "m1" {
			return pods
		}
		return podsAreRead(cluster)
	}
	o := newTestDetector(readable{"m1": {Reachable: true}, "m2": {Reachable: true}}, podsIn, findNothing, func() { changes++ })
	evaluateAll(o)
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
		evaluateAll(o)
		if why := o.unknownReason("m1"); why != c.pods.Message || !o.unknownReason("m2").IsZero() || changes != n+2 {
			t.Errorf("%s: %q, m2 %q, %d changes", c.reason, why, o.unknownReason("m2"), changes)
		}
	}
}

// TestMembersAreEvaluatedIndependently checks that what is opened in a member is recorded and reported while the evaluation of another one is
// still running, also in later rounds, and that what changed in that one meanwhile is evaluated afterwards.
func TestMembersAreEvaluatedIndependently(t *testing.T) {
	began, end, ended, reported := make(chan struct{}, 2), make(chan struct{}), make(chan struct{}), make(chan struct{}, 10)
	var mu sync.Mutex
	results := map[string]policyName{}
	set := func(cluster string, found policyName) {
		mu.Lock()
		defer mu.Unlock()
		results[cluster] = found
	}
	find := func(cluster string) (policyName, bool) {
		if cluster == "m1" {
			began <- struct{}{}
			<-end
		} else {
			defer func() { ended <- struct{}{} }()
		}
		mu.Lock()
		defer mu.Unlock()
		return results[cluster], false
	}
	pauses := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	o := newTestDetector(readable{"m1": {Reachable: true}, "m2": {Reachable: true}}, podsAreRead, find, func() { reported <- struct{}{} })
	o.pauses = pauses
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		podlabels.Repeat(ctx, o.trigger, o.pauses, func() time.Duration {
			o.evaluate()
			return podlabels.MinReadInterval
		})
	}()
	// next lets the pause after a round pass.
	next := func() {
		for !pauses.HasWaiters() {
			runtime.Gosched()
		}
		pauses.Step(podlabels.MinReadInterval)
	}
	o.requeue("")
	<-began
	<-ended
	next() // the round after it reports m2
	<-reported
	if !o.unknownReason("m2").IsZero() || o.unknownReason("m1").IsZero() {
		t.Errorf("m1 is being evaluated: %q, m2 was: %q", o.unknownReason("m1"), o.unknownReason("m2"))
	}
	set("m2", "theirs")
	o.requeue("")
	next()
	<-ended
	next()
	<-reported
	if o.openedBy("m2", "key", "value") != "theirs" {
		t.Error("a policy that opens pods in m2 is not known while m1 is being evaluated")
	}
	if !o.Observe("m1", "").Unknown {
		t.Error("m1 counts as evaluated")
	}
	set("m1", "theirs")
	close(end)
	<-reported
	next() // m1 was requested while it was evaluated
	<-began
	cancel()
	<-stopped
	o.running.Wait()
	if o.openedBy("m1", "key", "value") != "theirs" {
		t.Error("a policy that opens pods in m1 is not known")
	}
}

// TestEvaluationIsNotNewerThanItsRead checks that what is opened stays unknown while a result is computed from what was read before the member
// could be read again, and that a result is dropped if the member was removed meanwhile.
func TestEvaluationIsNotNewerThanItsRead(t *testing.T) {
	clusters := readable{"m1": {Reachable: true}, "m2": {Reachable: true}}
	began, end, changed := make(chan string, 4), make(chan struct{}), func() {}
	o := newTestDetector(clusters, podsAreRead, findNothing, changed)
	evaluateAll(o)
	o.find = func(cluster string) (policyName, bool) {
		began <- cluster
		<-end
		return "", false
	}
	unread := message.Verbatim("m1 does not answer")
	clusters["m1"] = federation.Observation{Message: unread}
	o.requeue("m1")
	o.evaluate()
	<-began
	clusters["m1"] = federation.Observation{Reachable: true}
	o.evaluate()
	close(end)
	o.running.Wait()
	if why := o.unknownReason("m1"); why != unread {
		t.Errorf("m1 was evaluated before it was read again: %q", why)
	}
	evaluateAll(o)
	if why := o.unknownReason("m1"); !why.IsZero() {
		t.Errorf("m1 was evaluated after it was read again: %q", why)
	}
	end = make(chan struct{})
	o.requeue("m2")
	o.evaluate()
	<-began
	<-began
	o.policies = gone{clusters}
	o.evaluate()
	close(end)
	o.running.Wait()
	if o.unknownReason("m2").IsZero() || !o.Observe("m2", "").Unknown {
		t.Error("m2 is known, and it was removed")
	}
	o.policies = clusters
	if evaluateAll(o); !o.unknownReason("m2").IsZero() {
		t.Errorf("m2 is registered again: %q", o.unknownReason("m2"))
	}
}

// gone are members without m2.
type gone struct{ readable }

func (gone) Clusters() []federation.Cluster { return []federation.Cluster{{Name: "m1"}} }

// TestPendingMembersAreEvaluatedAgain checks that a member is evaluated again without a change if that was not possible in one round.
func TestPendingMembersAreEvaluatedAgain(t *testing.T) {
	rounds := 0
	o := newTestDetector(readable{"m1": {Reachable: true}, "m2": {}}, podsAreRead, func(cluster string) (policyName, bool) {
		if cluster == "m1" {
			rounds++
		}
		return "", cluster == "m1" && rounds < 3
	}, func() {})
	for range 5 {
		evaluateAll(o)
	}
	if rounds != 3 {
		t.Errorf("%d evaluations", rounds)
	}
}
