package rollout_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/waves"
)

const others = "trnv1:rsc:o:redis:clusters:others"

// classInWaves returns a world in which a change of the class has begun in m1, and m2 waits for its wave.
func classInWaves(t *testing.T) *world {
	w := newWorld(t, v1alpha1.ModeEnforce)
	w.members("m1", "m2")
	w.look()
	w.pass(48 * time.Hour) // the guard of the resource does not count any more
	w.class = redis()
	w.class.Status.Rollout = &v1alpha1.ClassRolloutStatus{Settled: v1alpha1.ClassRules{OtherPorts: v1alpha1.OtherPortsAllow},
		Progress: &v1alpha1.RolloutProgress{StartedAt: metav1.NewTime(w.now), Wave: 1, Waves: 2,
			Begun: v1alpha1.MemberSet{Clusters: []v1alpha1.ClusterName{"m1"}}, Waiting: 1}}
	w.pass(time.Minute)
	return w
}

func (w *world) classInstruction() *waves.Instruction {
	w.t.Helper()
	i, err := waves.InstructionOf(w.class)
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

// refuse stores refused connections of a client to a resource.
func (w *world) refuse(cluster, subject, resource string, n int64) {
	w.seeEdge(audit.Edge{Cluster: cluster, Subject: subject, Resource: resource, Port: 6380, Protocol: "TCP", Decision: policy.DefaultDenied,
		Verdict: audit.VerdictDropped}, n)
}

// TestGuardHaltsClasses checks which connections halt the waves of a change of a class.
func TestGuardHaltsClasses(t *testing.T) {
	limit := func(resource string, n int64) func(*world) {
		return func(w *world) {
			_, err := w.store.Change(t.Context(), resource, func(s *rollout.State) (rollout.News, error) {
				s.Guard.Limit = &n
				return rollout.News{}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		reason string
		before func(*world) // in the minute in which the rollout began
		see    func(*world)
		want   v1alpha1.HaltReason // empty if the waves are not halted
	}{
		{"more clients are refused than the guard tolerates", nil, func(w *world) { w.refuse("m1", cart, orders, 21) }, v1alpha1.HaltClientsRefused},
		{"as many as it tolerates", nil, func(w *world) { w.refuse("m1", cart, orders, 20) }, ""},
		{"more by all resources of the class together", nil, func(w *world) {
			w.refuse("m1", cart, orders, 11)
			w.refuse("m1", cart, others, 10)
		}, v1alpha1.HaltClientsRefused},
		{"in a member that waits for its wave", nil, func(w *world) { w.refuse("m2", cart, orders, 100) }, ""},
		{"by a resource of another class", nil, func(w *world) { w.refuse("m1", cart, "trnv1:rsc:o:mysql:clusters:orders", 100) }, ""},
		{"of a client without a name", nil, func(w *world) { w.refuse("m1", "", orders, 100) }, ""},
		{"of a client that was refused before", func(w *world) { w.refuse("m1", cart, orders, 1) }, func(w *world) { w.refuse("m1", cart, orders, 100) }, ""},
		{"of another client than before", func(w *world) { w.refuse("m1", cart, orders, 1) }, func(w *world) { w.refuse("m1", search, orders, 21) },
			v1alpha1.HaltClientsRefused},
		{"below the limit of the resource", limit(orders, 50), func(w *world) { w.refuse("m1", cart, orders, 50) }, ""},
		{"above a lower limit of the resource", limit(orders, 5), func(w *world) { w.refuse("m1", cart, orders, 6) }, v1alpha1.HaltClientsRefused},
		{"by a resource whose guard is off", func(w *world) {
			off := false
			if _, err := w.SetGuard(t.Context(), sam, w.entity(), rollout.Set{Enabled: &off, Reason: "r"}); err != nil {
				t.Fatal(err)
			}
		}, func(w *world) { w.refuse("m1", cart, orders, 100) }, ""},
		{"the dataplane contradicts the policies", nil, func(w *world) {
			w.seeEdge(audit.Edge{Cluster: "m1", Subject: cart, Resource: orders, Action: "redis:connect", Port: 6379, Protocol: "TCP",
				Decision: policy.Allowed, Verdict: audit.VerdictDropped}, 21)
		}, v1alpha1.HaltVerdictsDisagree},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := classInWaves(t)
			if tc.before != nil {
				w.now = w.now.Add(-2 * time.Minute)
				tc.before(w)
				w.now = w.now.Add(2 * time.Minute)
			}
			w.pass(time.Minute)
			tc.see(w)
			w.pass(time.Minute)
			w.look()
			w.look()
			i := w.classInstruction()
			switch {
			case tc.want == "" && i != nil:
				t.Errorf("the waves are halted: %+v", i)
			case tc.want != "" && (i == nil || i.Action != waves.Pause || i.Halt != tc.want || i.Cluster != "m1" || i.By != waves.Guard || i.Code == ""):
				t.Errorf("the instruction is %+v, want a halt because of %s", i, tc.want)
			}
		})
	}
}

// TestGuardLeavesAClassToAPerson checks that what was seen before an instruction of a person does not halt the waves again.
func TestGuardLeavesAClassToAPerson(t *testing.T) {
	w := classInWaves(t)
	w.refuse("m1", cart, orders, 100)
	w.pass(time.Minute)
	byHand := waves.New(waves.Skip, "admin", "looked at it", w.now)
	if err := w.InstructClass(t.Context(), "redis", byHand); err != nil {
		t.Fatal(err)
	}
	w.look()
	if got := w.classInstruction(); got.ID != byHand.ID {
		t.Errorf("the guard halts although a person continued: %+v", got)
	}
}

// TestHaltsOfClassesAreRecorded checks that an automatic halt is in the ledger and notified once, and that what people do is not.
func TestHaltsOfClassesAreRecorded(t *testing.T) {
	for _, tc := range []struct {
		reason v1alpha1.HaltReason
		want   int
	}{
		{v1alpha1.HaltMemberUnhealthy, 1}, {v1alpha1.HaltClientsRefused, 1}, {v1alpha1.HaltVerdictsDisagree, 1}, {v1alpha1.HaltClassWithoutWaves, 1},
		{v1alpha1.HaltPaused, 0}, {v1alpha1.HaltRolledBack, 0},
	} {
		t.Run(string(tc.reason), func(t *testing.T) {
			w := classInWaves(t)
			w.class.Spec.Organization = "shop"
			w.organizations = []*v1alpha1.Organization{{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
				Spec: v1alpha1.OrganizationSpec{Administrators: []v1alpha1.OrganizationAdministrator{"person:erin"}}}}
			w.class.Status.Rollout.Progress.Halt = &v1alpha1.RolloutHalt{Reason: tc.reason, At: metav1.NewTime(w.now), Cluster: "m1", Message: "why"}
			w.look()
			w.look()
			n := 0
			for _, e := range w.lines() {
				if e.Action == "class.waves-halted" && e.Object == "ResourceClass/redis" && e.Details["cluster"] == "m1" {
					n++
				}
			}
			var people []string
			if tc.want > 0 {
				people = []string{"erin", "sam"}
			}
			if told := w.told()["class-waves-halted"]; n != tc.want || !slices.Equal(told, people) {
				t.Errorf("%d lines in the ledger, %v were notified", n, told)
			}
		})
	}
}

// TestInstructClass checks who may give which instruction.
func TestInstructClass(t *testing.T) {
	for _, tc := range []struct {
		reason string
		actor  approval.Actor
		class  string
		action waves.Action
		text   string
		change func(*world)
		want   approval.Code
	}{
		{"the security team", sam, "redis", waves.Finish, "r", nil, ""},
		{"an administrator of the organization", erin, "redis", waves.RollBack, "r", nil, ""},
		{"who may not begin a wave early", erin, "redis", waves.Skip, "r", nil, approval.CodeForbidden},
		{"an owner of a resource", bob, "redis", waves.Pause, "r", nil, approval.CodeForbidden},
		{"an auditor", otto, "redis", waves.Pause, "r", nil, approval.CodeForbidden},
		{"no reason", sam, "redis", waves.Pause, " ", nil, approval.CodeInvalid},
		{"no class", sam, "mysql", waves.Pause, "r", nil, approval.CodeNotFound},
		{"not halted", sam, "redis", waves.Resume, "r", nil, approval.CodeConflict},
		{"no rollout", sam, "redis", waves.Pause, "r", func(w *world) { w.class.Status.Rollout = nil }, approval.CodeConflict},
		{"the host cluster does not answer", sam, "redis", waves.Pause, "r", func(w *world) { w.down = errors.New("no route") }, approval.CodeUnavailable},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := classInWaves(t)
			w.class.Spec.Organization = "shop"
			w.organizations = []*v1alpha1.Organization{{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
				Spec: v1alpha1.OrganizationSpec{Administrators: []v1alpha1.OrganizationAdministrator{"person:erin"}}}}
			if tc.change != nil {
				tc.change(w)
			}
			err := w.Service.InstructClass(t.Context(), tc.actor, tc.class, tc.action, tc.text)
			var ours *approval.Error
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if i := w.classInstruction(); i == nil || i.Action != tc.action || i.By != tc.actor.ID || !slices.Contains(w.actions(), "class.waves") {
					t.Errorf("the instruction is %+v, the ledger has %v", i, w.actions())
				}
				return
			}
			if !errors.As(err, &ours) || ours.Code != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if i := w.classInstruction(); i != nil {
				t.Errorf("the adapter is instructed: %+v", i)
			}
		})
	}
}

// TestGuardHaltsAClassOnce checks that the guard gives no further instruction while the adapter has not carried out the last one.
func TestGuardHaltsAClassOnce(t *testing.T) {
	w := classInWaves(t)
	contradict := func() {
		w.seeEdge(audit.Edge{Cluster: "m1", Subject: cart, Resource: orders, Action: "redis:connect", Port: 6379, Protocol: "TCP",
			Decision: policy.Allowed, Verdict: audit.VerdictDropped}, 21)
		w.pass(time.Minute)
		w.look()
	}
	contradict()
	first := w.classInstruction()
	if first == nil {
		t.Fatal("the waves are not halted")
	}
	contradict()
	contradict()
	if i := w.classInstruction(); i.ID != first.ID {
		t.Errorf("the guard gave the instruction %+v after %+v", i, first)
	}
	w.class.Status.Rollout.Instruction = first.ID
	contradict()
	if i := w.classInstruction(); i.ID == first.ID {
		t.Error("the guard does not act again after its instruction was carried out without a halt")
	}
}
