package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
)

// conditionMet decides as kubectl wait --for=condition=NAME does (k8s.io/kubectl, pkg/cmd/wait/condition.go): the condition is True, and its
// generation, or else that of the status, is not older than that of the object. The module deploy/charts tests with kubectl itself.
func conditionMet(u *unstructured.Unstructured, name string) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] != name {
			continue
		}
		observed, found, _ := unstructured.NestedInt64(condition, "observedGeneration")
		if !found {
			observed, found, _ = unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		}
		return (!found || observed >= u.GetGeneration()) && condition["status"] == string(metav1.ConditionTrue)
	}
	return false
}

// waiter follows one object as kubectl wait does, and records the generations for which Realized was met.
type waiter struct {
	mu  sync.Mutex
	met map[int64]bool
}

func (w *waiter) has(generation int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.met[generation]
}

// wait follows an object of the scenario until the test ends. Every version in which Realized is met is passed to check, which returns what is
// wrong, or "".
func (s *scenario) wait(resource string, check func(generation int64) string) *waiter {
	s.Helper()
	client, err := dynamic.NewForConfig(s.hostConfig)
	if err != nil {
		s.Fatal(err)
	}
	w := &waiter{met: map[int64]bool{}}
	ctx, cancel := context.WithCancel(s.ctx)
	watch, err := client.Resource(v1alpha1.GroupVersion.WithResource(resource)).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", s.service).String(),
	})
	if err != nil {
		cancel()
		s.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok || !conditionMet(u, v1alpha1.ConditionRealized) {
				continue
			}
			if problem := check(u.GetGeneration()); problem != "" {
				s.Errorf("%s of generation %d is realized for kubectl wait: %s", resource, u.GetGeneration(), problem)
			}
			w.mu.Lock()
			w.met[u.GetGeneration()] = true
			w.mu.Unlock()
		}
	}()
	s.Cleanup(func() {
		cancel()
		watch.Stop()
		<-done
	})
	return w
}

func (s *scenario) untilMet(w *waiter, what string, generation int64) {
	s.Helper()
	s.until(what, func() string {
		if !w.has(generation) {
			return fmt.Sprintf("not met for generation %d", generation)
		}
		return ""
	})
}

// TestWaitingDoesNotEndWithAnEarlierGeneration checks that no version of a policy or resource satisfies kubectl wait before every member has
// what the present spec means, however the statuses are written meanwhile.
func TestWaitingDoesNotEndWithAnEarlierGeneration(t *testing.T) {
	s := newScenario(t, shared, "waits")
	var mu sync.Mutex
	pushed := map[string]int64{} // the generations that are in the members, by resource
	let := func(resource string, generation int64) {
		mu.Lock()
		defer mu.Unlock()
		pushed[resource] = generation
	}
	check := func(resource string) func(int64) string {
		return func(generation int64) string {
			mu.Lock()
			defer mu.Unlock()
			if generation > pushed[resource] {
				return fmt.Sprintf("the members have generation %d", pushed[resource])
			}
			return ""
		}
	}
	policies, resources := s.wait("accesscontrolpolicies", check("accesscontrolpolicies")), s.wait("protectedresources", check("protectedresources"))

	s.protect(v1alpha1.ModeEnforce)
	s.grant(s.statement("one", "888"))
	s.until("the grant is in the unit", func() string { return s.unitHas("one") })
	let("accesscontrolpolicies", 1)
	let("protectedresources", 1)
	s.pushUntilStates("the first generation is in the members", bothRealized)
	s.untilMet(policies, "the policy", 1)
	s.untilMet(resources, "the resource", 1)

	// The status may still describe the former generation for half a second, and the members lack the change for longer.
	var sids []string
	for generation := int64(2); generation <= 4; generation++ {
		p := &v1alpha1.AccessControlPolicy{}
		sid := fmt.Sprint("more-", generation)
		change(s, s.host, p, s.service, func(p *v1alpha1.AccessControlPolicy) {
			p.Spec.Statements = append(p.Spec.Statements, s.statement(sid, fmt.Sprint(900+generation)))
		})
		if p.Generation != generation {
			t.Fatalf("the policy has generation %d, want %d", p.Generation, generation)
		}
		sids = append(sids, sid)
		s.until("the change is reported", func() string { return s.unitHas(append(slices.Clone(sids), "one")...) })
		if policies.has(generation) {
			t.Errorf("generation %d was realized before it was pushed", generation)
		}
		let("accesscontrolpolicies", generation)
		s.push()
		s.untilMet(policies, "the changed policy", generation)
	}

	r := &v1alpha1.ProtectedResource{}
	change(s, s.host, r, s.service, func(r *v1alpha1.ProtectedResource) { r.Spec.Mode = v1alpha1.ModeAudit })
	time.Sleep(time.Second) // longer than a status may be deferred
	if resources.has(r.Generation) {
		t.Error("the mode was realized before it was pushed")
	}
	let("protectedresources", r.Generation)
	s.push()
	s.untilMet(resources, "the changed mode", r.Generation)
}

// TestWaitingContinuesWhileAMemberIsUnknown checks that Realized is False while a member cannot be read, and that it does not become True for a
// changed policy before that member was read with the change.
func TestWaitingContinuesWhileAMemberIsUnknown(t *testing.T) {
	s := enforced(t, "waitsaway")
	s.members["m2"].proxy.Disconnect()
	defer s.members["m2"].proxy.Reconnect()
	s.untilStates("m2 is unreachable", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberUnreachable})
	s.until("the policy says so, too", func() string {
		if c := meta.FindStatusCondition(s.policy().Status.Conditions, v1alpha1.ConditionRealized); c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Sprint(c)
		}
		return ""
	})
	policies := s.wait("accesscontrolpolicies", func(int64) string {
		if s.members["m2"].proxy.IsDisconnected() {
			return "m2 cannot be read"
		}
		return ""
	})
	p := &v1alpha1.AccessControlPolicy{}
	change(s, s.host, p, s.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = append(p.Spec.Statements, s.statement("two", "889"))
	})
	s.until("the change is reported", func() string { return s.unitHas("one", "two") })
	s.push()
	s.until("m1 has the change", func() string {
		for _, c := range s.policy().Status.Units[0].Clusters {
			if c.Name == "m1" && c.State != v1alpha1.MemberRealized {
				return fmt.Sprint(c)
			}
		}
		return ""
	})
	if policies.has(p.Generation) {
		t.Error("the policy is realized although m2 cannot be read")
	}
	s.members["m2"].proxy.Reconnect()
	s.pushUntilStates("m2 is back", bothRealized)
	s.untilMet(policies, "the policy", p.Generation)
}

// TestObserveIsNotWaitedFor checks that a resource in Observe is never Realized, and says so about its present generation, so that a pipeline
// can tell it from one whose change is on its way.
func TestObserveIsNotWaitedFor(t *testing.T) {
	s := enforced(t, "waitsobserve")
	r := &v1alpha1.ProtectedResource{}
	change(s, s.host, r, s.service, func(r *v1alpha1.ProtectedResource) { r.Spec.Mode = v1alpha1.ModeObserve })
	resources := s.wait("protectedresources", func(generation int64) string {
		if generation < r.Generation {
			return "" // the watch begins with the object as it was
		}
		return "it is in Observe"
	})
	s.until("nothing is left in the members", func() string {
		if _, o := s.federated(); o != nil {
			s.pushOf(o.Kind, o.Meta.Name)
		}
		for _, c := range s.protected().Status.Conditions {
			if c.Type == v1alpha1.ConditionRealized && c.Reason == v1alpha1.ReasonObserve && c.ObservedGeneration == r.Generation {
				return ""
			}
		}
		return fmt.Sprint(s.protected().Status.Conditions)
	})
	if resources.has(r.Generation) {
		t.Error("a resource in Observe was realized")
	}
}
