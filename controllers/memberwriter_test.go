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

// TestUrgentDoesNotWaitForKubeFed: while KubeFed has more to do than it may be given, and when it is not done in time, revocations and
// downgrades are written into the members that can be reached, as KubeFed will write them.
func TestUrgentDoesNotWaitForKubeFed(t *testing.T) {
	c, _ := crowded(t, "express", 8, "m1", "m2")
	c.until("KubeFed has brought all", func() string {
		for i := range c.n {
			c.pushOf(federation.CiliumPolicy, c.objectOf(i))
			if _, o := c.federatedOf(federation.CiliumPolicy, c.objectOf(i)); o == nil || !has("app-888")(o) || !o.Propagation.Seen {
				return c.objectOf(i)
			}
		}
		return ""
	})

	c.pace = writequeue.Limits{MaxPending: 1, PendingTimeout: 2 * time.Second} // so KubeFed is behind with the third
	if err := c.restart(); err != nil {
		t.Fatal(err)
	}
	// From here on nobody plays KubeFed.
	c.members["m2"].wire.set(true)
	defer c.members["m2"].wire.set(false)
	change(c.story, c.host, &v1alpha1.AccessControlPolicy{}, c.service, func(p *v1alpha1.AccessControlPolicy) {
		for i := range p.Spec.Statements {
			p.Spec.Statements[i].Subjects = []v1alpha1.Subject{v1alpha1.Subject("trnv1:rsc:trip-com:" + c.service + ":sa:app/app-999")}
		}
	})
	c.until("the revocations are in m1", func() string {
		if left := c.written(has("app-888")); len(left) > 0 {
			return fmt.Sprint("the host still has ", left)
		}
		if there := c.asTheHost("m1"); there < c.n {
			return fmt.Sprint("only ", there)
		}
		return ""
	})
	if there := c.asTheHost("m2"); there != 0 {
		t.Errorf("%d were written into a member that cannot be reached", there)
	}
	for i := range c.n {
		change(c.story, c.host, &v1alpha1.ProtectedResource{}, fmt.Sprint("r", i), func(r *v1alpha1.ProtectedResource) { r.Spec.Mode = v1alpha1.ModeAudit })
	}
	c.until("all are open in m1", func() string {
		for i := range c.n {
			if _, o := c.federatedOf(
				federation.CiliumPolicy,
				c.objectOf(i),
			); len(o.Overrides) > 0 ||
				!has("enableDefaultDeny:map[egress:false ingress:false]")(o) {
				return fmt.Sprint(o.TemplateSpec)
			}
		}
		if there := c.asTheHost("m1"); there < c.n {
			return fmt.Sprint("only ", there)
		}
		return ""
	})

	// KubeFed comes back and finds in m1 what it was about to write.
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
	c.members["m2"].wire.set(false)
	for i := range c.n {
		c.pushOf(federation.CiliumPolicy, c.objectOf(i))
	}
	if after := versions(); !reflect.DeepEqual(before, after) {
		t.Errorf("KubeFed had to write again: %v, %v", before, after)
	}
	if there := c.asTheHost("m2"); there != c.n {
		t.Errorf("m2 has %d", there)
	}
}

// asTheHost counts the units of which a member has what the Federated object says.
func (c *crowd) asTheHost(cluster string) int {
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
