package controllers_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
)

// TestRevocationsAndOpeningsAreWrittenDirectlyWhenKubeFedLags checks that revocations and changes that open are written into the members that can
// be reached, exactly as KubeFed will write them, while KubeFed has more pending objects than its limit or exceeds its time limit.
func TestRevocationsAndOpeningsAreWrittenDirectlyWhenKubeFedLags(t *testing.T) {
	c, _ := newBulkScenario(t, "direct", 8, "m1", "m2")
	c.until("everything is propagated", func() string {
		for i := range c.n {
			c.pushOf(federation.CiliumPolicy, c.objectOf(i))
			if _, o := c.federatedOf(federation.CiliumPolicy, c.objectOf(i)); o == nil || !specContains("app-888")(o) || !o.Propagation.Seen {
				return c.objectOf(i)
			}
		}
		return ""
	})

	c.writeLimits = writequeue.Limits{MaxPending: 1, PendingTimeout: 2 * time.Second} // so KubeFed is behind from the third object on
	if err := c.restart(); err != nil {
		t.Fatal(err)
	}
	// From here on nothing acts as KubeFed.
	c.members["m2"].proxy.Disconnect()
	defer c.members["m2"].proxy.Reconnect()
	change(c.scenario, c.host, &v1alpha1.AccessControlPolicy{}, c.service, func(p *v1alpha1.AccessControlPolicy) {
		for i := range p.Spec.Statements {
			p.Spec.Statements[i].Subjects = []v1alpha1.Subject{v1alpha1.Subject("trnv1:rsc:trip-com:" + c.service + ":sa:app/app-999")}
		}
	})
	c.until("the revocations are in m1", func() string {
		if left := c.written(specContains("app-888")); len(left) > 0 {
			return fmt.Sprint("the host still has ", left)
		}
		if there := c.upToDate("m1"); there < c.n {
			return fmt.Sprint("only ", there)
		}
		return ""
	})
	if there := c.upToDate("m2"); there != 0 {
		t.Errorf("%d were written into a member that cannot be reached", there)
	}
	for i := range c.n {
		change(c.scenario, c.host, &v1alpha1.ProtectedResource{}, fmt.Sprint("r", i), func(r *v1alpha1.ProtectedResource) { r.Spec.Mode = v1alpha1.ModeAudit })
	}
	c.until("all are open in m1", func() string {
		for i := range c.n {
			_, o := c.federatedOf(federation.CiliumPolicy, c.objectOf(i))
			if len(o.Overrides) > 0 || !specContains("enableDefaultDeny:map[egress:false ingress:false]")(o) {
				return fmt.Sprint(o.TemplateSpec)
			}
		}
		if there := c.upToDate("m1"); there < c.n {
			return fmt.Sprint("only ", there)
		}
		return ""
	})

	// When KubeFed works again, m1 already has what it would write.
	versions := func() (out []string) {
		for i := range c.n {
			have := target(federation.CiliumPolicy, c.objectOf(i))
			if err := c.members["m1"].client.Get(c.ctx, types.NamespacedName{Name: have.GetName()}, have); err != nil {
				t.Fatal(err)
			}
			out = append(out, have.GetResourceVersion())
		}
		return out
	}
	before := versions()
	c.members["m2"].proxy.Reconnect()
	for i := range c.n {
		c.pushOf(federation.CiliumPolicy, c.objectOf(i))
	}
	if after := versions(); !reflect.DeepEqual(before, after) {
		t.Errorf("KubeFed had to write again: %v, %v", before, after)
	}
	if there := c.upToDate("m2"); there != c.n {
		t.Errorf("m2 has %d", there)
	}
}

// upToDate returns the number of units of which a member has the spec and the revision of the Federated object.
func (c *bulkScenario) upToDate(cluster string) int {
	c.Helper()
	n := 0
	for i := range c.n {
		_, o := c.federatedOf(federation.CiliumPolicy, c.objectOf(i))
		have := target(federation.CiliumPolicy, c.objectOf(i))
		if err := c.members[cluster].client.Get(c.ctx, types.NamespacedName{Name: have.GetName()}, have); err != nil {
			c.Fatal(err)
		}
		got, err := json.Marshal(have.Object["spec"])
		if err != nil {
			c.Fatal(err)
		}
		want, err := json.Marshal(o.SpecIn(cluster))
		if err != nil {
			c.Fatal(err)
		}
		if string(got) == string(want) && have.GetLabels()[v1alpha1.LabelRevision] == o.TemplateLabels[v1alpha1.LabelRevision] {
			n++
		}
	}
	return n
}
