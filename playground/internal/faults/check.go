package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/playground/internal/enforcement"
	"github.com/acp-io/acp/playground/internal/fleet"
)

// waitForConvergence waits until the healthy members enforce the wanted model and all statuses are true, for at most limit.
func (d *drill) waitForConvergence(ctx context.Context, limit time.Duration) error {
	began := time.Now()
	err := d.poll(ctx, limit, d.check)
	if err == nil {
		d.slowest = max(d.slowest, time.Since(began))
	}
	return err
}

// poll calls check every 100 ms until it succeeds, for at most limit, and then returns its last error.
func (d *drill) poll(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	deadline := time.Now().Add(limit)
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %w", limit, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// check compares the fleet with the wanted model once. On success it narrows the expectations of the probes to the present model.
func (d *drill) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var errs []error
	wrong := map[string]map[string]string{} // by member and server, the first wrong verdict
	for _, m := range fleet.Members() {
		var err error
		if wrong[m], err = d.compareConnections(m); err != nil {
			return err
		}
	}
	frozen := d.outage != nil && d.outage.frozen
	for _, m := range d.healthy() {
		if frozen {
			break
		}
		for server, what := range wrong[m] {
			errs = append(errs, fmt.Errorf("%s in %s has a wrong verdict: %s", server, m, what))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if d.outage != nil && d.outage.noStatus {
		return nil // no program runs that could update statuses
	}
	if err := d.checkStatuses(ctx, wrong); err != nil {
		return err
	}
	if err := d.checkFinding(ctx); err != nil {
		return err
	}
	if err := d.checkTicket(ctx, wrong); err != nil {
		return err
	}
	if err := d.checkUncollectedEvidence(ctx); err != nil {
		return err
	}
	if err := d.checkPolicyStatuses(ctx, wrong); err != nil {
		return err
	}
	if frozen {
		return nil
	}
	if err := d.checkObjects(ctx); err != nil {
		return err
	}
	d.observable.reset(d.model)
	now := time.Now()
	for _, m := range d.healthy() {
		d.probes[m].setExpectation(d.evaluator, now)
	}
	return nil
}

// compareConnections reads the verdict of every connection of a member and returns, by server, a connection whose verdict differs
// from the policies.
func (d *drill) compareConnections(member string) (map[string]string, error) {
	probe := d.probes[member]
	outcomes, err := probe.reader.Outcomes()
	if err != nil {
		return nil, err
	}
	wrong, now := map[string]string{}, d.now()
	for i, a := range probe.attempts {
		if got, want := enforcement.Passes(outcomes[i]), d.evaluator.passes(member, a, now); got != want {
			wrong[a.To] = fmt.Sprintf("%s is %s", a, outcomes[i])
		}
	}
	return wrong, nil
}

// checkStatuses compares the statuses of all ProtectedResources with the verdicts and objects in the members.
func (d *drill) checkStatuses(ctx context.Context, wrong map[string]map[string]string) error {
	list, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("protectedresources")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the statuses: %w", err)
	}
	revisions := map[string][]string{}
	for _, m := range fleet.Members() {
		if present, err := d.presentRevisions(ctx, m); err == nil {
			revisions[m] = present
		}
	}
	found := map[string]bool{}
	for i := range list.Items {
		var o v1alpha1.ProtectedResource
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &o); err != nil {
			return err
		}
		found[o.Name] = true
		if err := d.checkStatus(&o, wrong, revisions); err != nil {
			return fmt.Errorf("ProtectedResource %s: %w", o.Name, err)
		}
		d.statuses++
	}
	for name := range d.model.resources {
		if !found[name] {
			return fmt.Errorf("ProtectedResource %s is lost", name)
		}
	}
	return nil
}

// presentRevisions returns the revisions that a status may report for a member: that of each object, and for a unit with several
// objects, possibly in both dataplanes, their combined revision. The result is empty, not nil, when the member has no objects.
func (d *drill) presentRevisions(ctx context.Context, member string) ([]string, error) {
	present, err := d.managedObjects(ctx, member)
	if err != nil {
		return nil, err
	}
	// The combined revision depends on the adapter's order: Cilium objects, which are cluster-wide, before Istio objects.
	slices.SortFunc(present, func(a, b unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	out, units := []string{}, map[string][]any{}
	for _, u := range present {
		revision, unit := u.GetLabels()[v1alpha1.LabelRevision], u.GetLabels()[v1alpha1.LabelUnit]
		out, units[unit] = append(out, revision), append(units[unit], revision)
	}
	for _, parts := range units {
		if len(parts) > 1 {
			out = append(out, enforcer.Revision(map[string]any{"parts": parts}))
		}
	}
	return out, nil
}

// checkStatus returns an error when the status of a resource contradicts wrong, the wrong verdicts by member and server, or
// revisions, the present revisions by member, or when it is out of date in a healthy member.
func (d *drill) checkStatus(o *v1alpha1.ProtectedResource, wrong map[string]map[string]string, revisions map[string][]string) error {
	states := map[string]v1alpha1.ClusterState{}
	for _, c := range o.Status.States() {
		states[string(c.Name)] = c
		if err := d.checkRealized(o, c, wrong, revisions); err != nil {
			return err
		}
	}
	wanted, ok := d.model.resources[o.Name]
	if d.outage != nil && d.outage.frozen {
		return nil
	}
	if !ok {
		if len(d.healthy()) == len(fleet.Members()) {
			return errors.New("it still exists although it was deleted")
		}
		return nil
	}
	class, covered := d.evaluator.ResourceClassOf(string(wanted.Spec.Resource))
	// While a member is unavailable, the others keep a policy that allows every source until it can be deleted everywhere.
	for _, m := range d.healthy() {
		now := d.now()
		mode := d.evaluator.EffectiveMode(string(wanted.Spec.Resource), m, now)
		needed := covered && placed(class, m) && mode != v1alpha1.ModeObserve
		c, stated := states[m]
		switch {
		case d.outage != nil && d.outage.changesMeaning(m, mode):
		case needed && (!stated || c.State != v1alpha1.MemberRealized):
			return fmt.Errorf("in %s it is enforced, but reported as %q: %s", m, c.State, c.Message)
		case needed && c.Mode != mode:
			return fmt.Errorf("in %s its mode is %s, but reported as %s", m, mode, c.Mode)
		case !needed && d.outage == nil && stated && c.ObservedRevision != "" && mode == v1alpha1.ModeObserve && !neededElsewhere(d, wanted, class, m, now):
			return fmt.Errorf("in %s no object is wanted, but revision %s is reported: %s", m, c.ObservedRevision, c.Message)
		}
	}
	if o.Status.ObservedGeneration != o.Generation {
		return errors.New("its status is of an older generation")
	}
	return nil
}

// checkRealized returns an error when a member's state of a resource is Realized and must not be.
func (d *drill) checkRealized(
	o *v1alpha1.ProtectedResource,
	c v1alpha1.ClusterState,
	wrong map[string]map[string]string,
	revisions map[string][]string,
) error {
	m := string(c.Name)
	if c.State != v1alpha1.MemberRealized {
		return nil
	}
	if d.outage != nil && d.outage.unavailable(m) && d.outage.unreadable {
		return fmt.Errorf("it is reported as Realized in %s, which cannot be read", m)
	}
	if d.outage != nil && d.outage.changesMeaning(m, c.Mode) {
		return fmt.Errorf("it is reported as Realized in %s, whose agent settings change the meaning of %s", m, c.Mode)
	}
	if what, bad := wrong[m][d.serverOf(m, string(o.Spec.Resource))]; bad {
		return fmt.Errorf("it is reported as Realized in %s, but %s", m, what)
	}
	if c.ObservedRevision != "" && revisions[m] != nil && !slices.Contains(revisions[m], c.ObservedRevision) {
		return fmt.Errorf("revision %s is reported in %s, which has %v", c.ObservedRevision, m, revisions[m])
	}
	return nil
}

// neededElsewhere reports whether another member needs the unit of a resource, so that the Federated object keeps its template.
func neededElsewhere(d *drill, o *v1alpha1.ProtectedResource, class *v1alpha1.ResourceClass, member string, now time.Time) bool {
	return slices.ContainsFunc(fleet.Members(), func(m string) bool {
		return m != member && class != nil && placed(class, m) && d.evaluator.EffectiveMode(string(o.Spec.Resource), m, now) != v1alpha1.ModeObserve
	})
}

// serverOf returns the pod of a resource in a member, or "" when it has none.
func (d *drill) serverOf(member, resource string) string {
	for _, s := range d.topology.servers[member] {
		if slices.Contains(d.evaluator.ResourcesOf(s.labels), resource) {
			return s.pod
		}
	}
	return ""
}

// managedObjects returns the objects of a member whose names have ACP's reserved prefix. It does not read through the proxy of the
// member.
func (d *drill) managedObjects(ctx context.Context, member string) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	for _, k := range kinds {
		list, err := d.members[member].Resource(k.target).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, u := range list.Items {
			if strings.HasPrefix(u.GetName(), v1alpha1.ObjectPrefix) {
				out = append(out, u)
			}
		}
	}
	return out, nil
}

// checkPolicyStatuses compares the statuses of all AccessControlPolicies with the verdicts in the members.
func (d *drill) checkPolicyStatuses(ctx context.Context, wrong map[string]map[string]string) error {
	list, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("accesscontrolpolicies")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the policies: %w", err)
	}
	all := map[string]*v1alpha1.AccessControlPolicy{}
	for i := range list.Items {
		if err := decodeInto(all, &list.Items[i]); err != nil {
			return err
		}
	}
	for name := range d.model.policies {
		if all[name] == nil {
			return fmt.Errorf("AccessControlPolicy %s is lost", name)
		}
	}
	for name, p := range all {
		realized := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionRealized)
		current := realized != nil && realized.ObservedGeneration == p.Generation
		if !current && (d.outage == nil || !d.outage.frozen) {
			return fmt.Errorf("AccessControlPolicy %s: its status is of an older generation", name)
		}
		if !current || realized.Status != metav1.ConditionTrue {
			continue
		}
		for _, s := range p.Spec.Statements {
			for _, r := range s.Resources {
				for _, m := range fleet.Members() {
					if what, bad := wrong[m][d.serverOf(m, string(r))]; bad {
						return fmt.Errorf("AccessControlPolicy %s is reported as Realized, but in %s %s", name, m, what)
					}
				}
			}
		}
	}
	return nil
}
