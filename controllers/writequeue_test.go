package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// bulkScenario is a scenario with n resources.
type bulkScenario struct {
	*scenario
	n int
}

func (c *bulkScenario) name(i int) v1alpha1.ResourceName {
	return v1alpha1.ResourceName(fmt.Sprintf("trnv1:rsc:trip-com:%s:clusters:r%d", c.service, i))
}

func (c *bulkScenario) objectOf(i int) string {
	return v1alpha1.ObjectPrefix + policy.UnitID(string(c.name(i)))
}

// written returns the resources whose Federated object satisfies a condition.
func (c *bulkScenario) written(is func(*federation.Object) bool) []int {
	c.Helper()
	var out []int
	for i := range c.n {
		if _, o := c.federatedOf(federation.CiliumPolicy, c.objectOf(i)); o != nil && is(o) {
			out = append(out, i)
		}
	}
	return out
}

func specContains(what string) func(*federation.Object) bool {
	return func(o *federation.Object) bool { return strings.Contains(fmt.Sprint(o.TemplateSpec), what) }
}

// newBulkScenario creates a fleet of its own with n enforced resources and a grant for app-888 to each, all in one policy.
func newBulkScenario(t *testing.T, service string, n int, members ...string) (*bulkScenario, []v1alpha1.Statement) {
	t.Helper()
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host"}, members...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	c := &bulkScenario{newScenario(t, f, service), n}
	var statements []v1alpha1.Statement
	for i := range n {
		c.create(&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", i)},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: c.name(i), Mode: v1alpha1.ModeEnforce}})
		s := c.statement(fmt.Sprint("s", i), "app-888")
		s.Resources = []v1alpha1.ResourceName{c.name(i)}
		statements = append(statements, s)
	}
	c.grant(statements...)
	return c, statements
}

// TestBulkWritesWaitAndRevocationsDoNot checks that of a change of a class only as many objects are written as may be pending in KubeFed,
// that a revocation is written at once, that an adapter that starts counts the pending objects, and that everything is written in the end.
func TestBulkWritesWaitAndRevocationsDoNot(t *testing.T) {
	c, statements := newBulkScenario(t, "bulk", 12, "m1")
	propagate := func(what string, is func(*federation.Object) bool) {
		t.Helper()
		c.until(what, func() string {
			for i := range c.n {
				c.pushOf(federation.CiliumPolicy, c.objectOf(i))
			}
			if there := c.written(is); len(there) < c.n {
				return fmt.Sprint("only ", there)
			}
			return ""
		})
		c.until("nothing is pending in KubeFed", func() string {
			for i := range c.n {
				c.pushOf(federation.CiliumPolicy, c.objectOf(i))
				if _, o := c.federatedOf(federation.CiliumPolicy, c.objectOf(i)); !o.Propagation.Seen {
					return c.objectOf(i)
				}
			}
			return ""
		})
	}
	propagate("all have their grant", specContains("app-888"))

	const maxPending = 3
	c.writeLimits = writequeue.Limits{MaxPending: maxPending, PendingTimeout: time.Hour}
	if err := c.restart(); err != nil {
		t.Fatal(err)
	}
	change(c.scenario, c.host, &v1alpha1.ResourceClass{}, c.service, func(class *v1alpha1.ResourceClass) {
		class.Spec.Actions[0].Ports = append(class.Spec.Actions[0].Ports, v1alpha1.Port{Port: 6380})
	})
	waits := func(i int) string {
		var o v1alpha1.ProtectedResource
		if err := c.host.Get(c.ctx, types.NamespacedName{Name: fmt.Sprint("r", i)}, &o); err != nil {
			t.Fatal(err)
		}
		if p := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionPropagated); p == nil || p.Status == metav1.ConditionTrue {
			return fmt.Sprint(i, " is reported as propagated")
		}
		for _, m := range o.Status.Clusters {
			if m.State != v1alpha1.MemberPending {
				return fmt.Sprint(i, " is ", m)
			}
		}
		return ""
	}
	c.until("every resource is reconciled", func() string {
		for i := range c.n {
			if problem := waits(i); problem != "" {
				return problem
			}
		}
		return ""
	})
	first := c.written(specContains("6380"))
	if len(first) != maxPending {
		t.Fatalf("%v were written, and %d may be pending", first, maxPending)
	}

	if err := c.restart(); err != nil {
		t.Fatal(err)
	}
	last := -1
	for i := range c.n {
		if len(first) > 0 && first[0] == i {
			first = first[1:]
			continue
		}
		last = i
	}
	change(c.scenario, c.host, &v1alpha1.AccessControlPolicy{}, c.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = append(p.Spec.Statements[:last:last], p.Spec.Statements[last+1:]...)
	})
	c.until("the revocation is written", func() string {
		if _, o := c.federatedOf(federation.CiliumPolicy, c.objectOf(last)); specContains("app-888")(o) {
			return "it is not"
		}
		return ""
	})
	if there := c.written(specContains("6380")); len(there) != maxPending {
		t.Errorf("after a restart, without progress of KubeFed, %v are written, and %d may be pending", there, maxPending)
	}
	change(c.scenario, c.host, &v1alpha1.AccessControlPolicy{}, c.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = append(p.Spec.Statements, statements[last])
	})
	propagate("all have the new port", specContains("6380"))
}
