package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// protected returns the resources whose protection steps may change: all but the one that is always enforced and the one that
// tickets are about.
func (d *drill) protected() []*v1alpha1.ProtectedResource {
	var out []*v1alpha1.ProtectedResource
	for _, o := range sorted(d.model.resources) {
		if o.Name != alwaysEnforced && o.Name != ticketResource {
			out = append(out, o)
		}
	}
	return out
}

// modes contains Enforce twice, so that it is chosen more often.
var modes = []v1alpha1.Mode{v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce}

// changeMode changes the mode of a resource.
func changeMode(ctx context.Context, d *drill) (string, error) {
	all := d.protected()
	if len(all) == 0 {
		return "", nil
	}
	o, mode := pick(d.Rand, all).DeepCopy(), pick(d.Rand, modes)
	from := o.Spec.Mode
	if from == mode {
		return "", nil
	}
	o.Spec.Mode = mode
	return fmt.Sprintf("%s from %s to %s", o.Name, from, mode), d.apply(ctx, o)
}

// changeClusterMode sets a mode for one member of a resource, or removes it.
func changeClusterMode(ctx context.Context, d *drill) (string, error) {
	all := d.protected()
	if len(all) == 0 {
		return "", nil
	}
	o := pick(d.Rand, all).DeepCopy()
	if len(o.Spec.ClusterModes) > 0 {
		o.Spec.ClusterModes = nil
		return o.Name + " without cluster modes", d.apply(ctx, o)
	}
	c := v1alpha1.ClusterMode{Cluster: v1alpha1.ClusterName(pick(d.Rand, []string{"m1", "m2"})), Mode: pick(d.Rand, modes)}
	o.Spec.ClusterModes = []v1alpha1.ClusterMode{c}
	return fmt.Sprintf("%s to %s in %s", o.Name, c.Mode, c.Cluster), d.apply(ctx, o)
}

// temporaryAudit sets a resource in Enforce to Audit for 3 to 5 s.
func temporaryAudit(ctx context.Context, d *drill) (string, error) {
	var all []*v1alpha1.ProtectedResource
	for _, o := range d.protected() {
		if o.Spec.Mode == v1alpha1.ModeEnforce {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	o, n := pick(d.Rand, all).DeepCopy(), 3+d.IntN(3)
	o.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: *seconds(n), Reason: "drill", By: "drill"}
	if err := d.apply(ctx, o); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s for %d s", o.Name, n), d.sleepUntil(ctx, o.Spec.TemporaryAudit.Until.Time)
}

// whiteList grants an application every resource of a class, or revokes that grant.
func whiteList(ctx context.Context, d *drill) (string, error) {
	const name = "drill-white-list"
	if p, ok := d.model.policies[name]; ok {
		return "removed", d.remove(ctx, p)
	}
	class := pick(d.Rand, []target{{redisStem + "*", "redis:connect", ""}, {"trnv1:rsc:trip-com:mysql:clusters:*", "mysql:connect", ""},
		{"trnv1:rsc:trip-com:kafka:clusters:*", "kafka:connect", ""}})
	app := pick(d.Rand, grantedApps)
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Statements = []v1alpha1.Statement{d.statement(class, app)}
	return app + " to " + class.resource, d.apply(ctx, p)
}

// deny adds a statement that denies an application a resource.
func deny(ctx context.Context, d *drill) (string, error) {
	t, app := pick(d.Rand, d.targets()), pick(d.Rand, grantedApps)
	s := d.statement(t, app)
	s.Effect = v1alpha1.EffectDeny
	return app + " to " + t.short, d.addStatement(ctx, t, s)
}

// changePlacement changes the members that a class is placed in.
func changePlacement(ctx context.Context, d *drill) (string, error) {
	c := d.model.classes[pick(d.Rand, []string{"kafka", "mysql", "queue", "grpc-service"})]
	if c == nil {
		return "", nil
	}
	c = c.DeepCopy()
	var to []v1alpha1.ClusterName
	for _, m := range []string{"m1", "m2"} {
		if d.IntN(2) == 0 {
			to = append(to, v1alpha1.ClusterName(m))
		}
	}
	before := c.Spec.Placement
	c.Spec.Placement = v1alpha1.Placement{Clusters: &to}
	if to == nil {
		c.Spec.Placement = v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}
	}
	if equality.Semantic.DeepEqual(before, c.Spec.Placement) {
		return "", nil
	}
	if to == nil {
		return c.Name + " to all", d.apply(ctx, c)
	}
	return fmt.Sprintf("%s to %v", c.Name, to), d.apply(ctx, c)
}

// onboard adds a resource that is not protected yet.
func onboard(ctx context.Context, d *drill) (string, error) {
	var free []target
	for _, t := range d.targets() {
		if _, ok := d.model.resources[t.short]; !ok && !d.removed[t.short] {
			free = append(free, t)
		}
	}
	if len(free) == 0 {
		return "", nil
	}
	t, mode := pick(d.Rand, free), pick(d.Rand, modes[1:])
	o := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: t.short},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(t.resource), Mode: mode}}
	return fmt.Sprintf("%s in %s", t.short, mode), d.apply(ctx, o)
}

// queueClass returns the class that toggleQueueClass deletes and creates.
func queueClass() *v1alpha1.ResourceClass {
	return &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "queue"}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: queueStem + "*", LabelKey: queueKey, Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
		Actions: []v1alpha1.ClassAction{{Name: "queue:publish", Ports: []v1alpha1.Port{{Port: 7070, Protocol: v1alpha1.ProtocolTCP}}}},
	}}
}

// toggleQueueClass deletes the queue class with all resources and policies about it, or creates the class again.
func toggleQueueClass(ctx context.Context, d *drill) (string, error) {
	c, exists := d.model.classes["queue"]
	if !exists {
		if d.removed["queue"] {
			return "", nil
		}
		return "queue created", d.apply(ctx, queueClass())
	}
	for _, o := range sorted(d.model.resources) {
		if strings.HasPrefix(string(o.Spec.Resource), queueStem) {
			if err := d.offboardResource(ctx, o); err != nil {
				return "", err
			}
		}
	}
	for _, p := range sorted(d.model.policies) {
		if slices.ContainsFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return strings.HasPrefix(string(s.Resources[0]), queueStem) }) {
			if err := d.remove(ctx, p); err != nil {
				return "", err
			}
		}
	}
	return "queue deleted", d.remove(ctx, c)
}

// offboardResource sets a resource to Observe and deletes it.
func (d *drill) offboardResource(ctx context.Context, o *v1alpha1.ProtectedResource) error {
	o = o.DeepCopy()
	o.Spec.Mode, o.Spec.ClusterModes, o.Spec.TemporaryAudit = v1alpha1.ModeObserve, nil, nil
	if err := d.apply(ctx, o); err != nil {
		return err
	}
	return d.remove(ctx, o)
}

// offboard removes a random resource, unless fewer than three are left.
func offboard(ctx context.Context, d *drill) (string, error) {
	all := d.protected()
	if len(all) < 3 {
		return "", nil
	}
	o := pick(d.Rand, all)
	return o.Name, d.offboardResource(ctx, o)
}

// changeExternalWorkload creates an external workload, changes its addresses, or deletes it.
func changeExternalWorkload(ctx context.Context, d *drill) (string, error) {
	name := pick(d.Rand, []string{"drill-vm-1", "drill-vm-2"})
	w, known := d.model.workloads[name]
	if known && d.IntN(3) == 0 {
		return name + " deleted", d.remove(ctx, w)
	}
	next := &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: name}}
	next.Spec.Subject = v1alpha1.ResourceName(appStem + pick(d.Rand, []string{"888", "777", "206"}))
	if known {
		next.Spec.Subject = w.Spec.Subject
	}
	next.Spec.Addresses = []string{pick(d.Rand, []string{"172.30.0.1", "172.30.0.0/24", "172.30.0.2", "172.30.1.1"})}
	return fmt.Sprintf("%s is %s at %v", name, next.Spec.Subject, next.Spec.Addresses), d.apply(ctx, next)
}
