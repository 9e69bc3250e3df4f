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
	"github.com/acp-io/acp/playground/internal/fleet"
)

// settle waits until the healthy members are as wanted, and everything that is said of all members is true.
func (d *drill) settle(ctx context.Context, limit time.Duration) error {
	began := time.Now()
	err := d.until(ctx, limit, d.judge)
	if err == nil {
		d.slowest = max(d.slowest, time.Since(began))
	}
	return err
}

// until looks again and again until nothing is wrong.
func (d *drill) until(ctx context.Context, limit time.Duration, look func(context.Context) error) error {
	deadline := time.Now().Add(limit)
	for {
		err := look(ctx)
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

// judge looks once.
func (d *drill) judge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var errs []error
	wrong := map[string]map[string]string{} // member -> server -> what is wrong
	for _, m := range fleet.Members() {
		var err error
		if wrong[m], err = d.compare(m); err != nil {
			return err
		}
	}
	moving := d.outage != nil && d.outage.frozen
	for _, m := range d.healthy() {
		if moving {
			break
		}
		for server, what := range wrong[m] {
			errs = append(errs, fmt.Errorf("%s in %s is not as wanted: %s", server, m, what))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if d.outage != nil && d.outage.mute {
		return nil // nobody is there who could tell the truth
	}
	if err := d.honest(ctx, wrong); err != nil {
		return err
	}
	if err := d.ticketHonest(ctx, wrong); err != nil {
		return err
	}
	if err := d.unwatchedHonest(ctx); err != nil {
		return err
	}
	if err := d.policiesHonest(ctx, wrong); err != nil {
		return err
	}
	if moving {
		return nil
	}
	if err := d.asAsked(ctx); err != nil {
		return err
	}
	d.seen.begin(d.world)
	now := time.Now()
	for _, m := range d.healthy() {
		d.dogs[m].expect(d.meaning, now)
	}
	return nil
}

// compare asks a member's dataplane for every connection, and returns by server what is not as the policies mean it.
func (d *drill) compare(member string) (map[string]string, error) {
	dog := d.dogs[member]
	outcomes, err := dog.witness.ask()
	if err != nil {
		return nil, err
	}
	wrong, now := map[string]string{}, d.now()
	for i, a := range dog.attempts {
		if got, want := passes(outcomes[i]), d.meaning.passes(member, a, now); got != want {
			wrong[a.To] = fmt.Sprintf("%s is %s", a, outcomes[i])
		}
	}
	return wrong, nil
}

// honest compares what the statuses say with what is there.
func (d *drill) honest(ctx context.Context, wrong map[string]map[string]string) error {
	list, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("protectedresources")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the statuses: %w", err)
	}
	revisions := map[string][]string{}
	for _, m := range fleet.Members() {
		if present, err := d.revisions(ctx, m); err == nil {
			revisions[m] = present
		}
	}
	seen := map[string]bool{}
	for i := range list.Items {
		var o v1alpha1.ProtectedResource
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &o); err != nil {
			return err
		}
		seen[o.Name] = true
		if err := d.honestOf(&o, wrong, revisions); err != nil {
			return fmt.Errorf("ProtectedResource %s: %w", o.Name, err)
		}
		d.statuses++
	}
	for name := range d.world.resources {
		if !seen[name] {
			return fmt.Errorf("ProtectedResource %s is lost", name)
		}
	}
	return nil
}

// revisions are those that a status can rightly say of a member: of each object, and of a unit that has several, perhaps in
// both dataplanes, that of all together. It is empty, not nil, where nothing is.
func (d *drill) revisions(ctx context.Context, member string) ([]string, error) {
	present, err := d.managed(ctx, member)
	if err != nil {
		return nil, err
	}
	// As the adapter orders them: Cilium's before Istio's, which are in a namespace.
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

func (d *drill) honestOf(o *v1alpha1.ProtectedResource, wrong map[string]map[string]string, revisions map[string][]string) error {
	said := map[string]v1alpha1.ClusterState{}
	for _, c := range o.Status.States() {
		m := string(c.Name)
		said[m] = c
		away := d.outage != nil && d.outage.away(m)
		switch {
		case c.State == v1alpha1.MemberRealized && away && d.outage.unreadable:
			return fmt.Errorf("it is said to be realized in %s, which cannot be read", m)
		case c.State == v1alpha1.MemberRealized && d.outage != nil && d.outage.void == m:
			return fmt.Errorf("it is said to be realized in %s, whose settings void policies", m)
		case c.State != v1alpha1.MemberRealized:
			continue
		}
		if what, bad := wrong[m][d.serverOf(m, string(o.Spec.Resource))]; bad {
			return fmt.Errorf("it is said to be realized in %s, but %s", m, what)
		}
		if c.ObservedRevision != "" && revisions[m] != nil && !slices.Contains(revisions[m], c.ObservedRevision) {
			return fmt.Errorf("revision %s is said to be in %s, which has %v", c.ObservedRevision, m, revisions[m])
		}
	}
	wanted, ok := d.world.resources[o.Name]
	if d.outage != nil && d.outage.frozen {
		return nil
	}
	if !ok {
		if len(d.healthy()) == len(fleet.Members()) {
			return errors.New("it is still there though nobody wants it")
		}
		return nil
	}
	class, covered := d.meaning.ResourceClassOf(string(wanted.Spec.Resource))
	// While a member is away, the others keep what lets everybody in until it can be removed everywhere.
	for _, m := range d.healthy() {
		now := d.now()
		mode := d.meaning.EffectiveMode(string(wanted.Spec.Resource), m, now)
		needed := covered && placed(class, m) && mode != v1alpha1.ModeObserve
		c, told := said[m]
		switch {
		case d.outage != nil && d.outage.void == m:
		case needed && (!told || c.State != v1alpha1.MemberRealized):
			return fmt.Errorf("in %s it is in force, but said to be %q: %s", m, c.State, c.Message)
		case needed && c.Mode != mode:
			return fmt.Errorf("in %s its mode is %s, but said to be %s", m, mode, c.Mode)
		case !needed && d.outage == nil && told && c.ObservedRevision != "" && mode == v1alpha1.ModeObserve && !anyOther(d, wanted, class, m, now):
			return fmt.Errorf("in %s nothing is wanted, but revision %s said to be there: %s", m, c.ObservedRevision, c.Message)
		}
	}
	if o.Status.ObservedGeneration != o.Generation {
		return errors.New("its status is about an older generation")
	}
	return nil
}

// anyOther member may need the unit, so that the template stays in its Federated object.
func anyOther(d *drill, o *v1alpha1.ProtectedResource, class *v1alpha1.ResourceClass, member string, now time.Time) bool {
	return slices.ContainsFunc(fleet.Members(), func(m string) bool {
		return m != member && class != nil && placed(class, m) && d.meaning.EffectiveMode(string(o.Spec.Resource), m, now) != v1alpha1.ModeObserve
	})
}

// serverOf is the pod of a resource in a member; "": it has none.
func (d *drill) serverOf(member, resource string) string {
	for _, s := range d.scene.servers[member] {
		if slices.Contains(d.meaning.ResourcesOf(s.labels), resource) {
			return s.pod
		}
	}
	return ""
}

// managed are the objects under ACP's reserved name in a member, read past every wire.
func (d *drill) managed(ctx context.Context, member string) ([]unstructured.Unstructured, error) {
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

// policiesHonest compares what the policies' own statuses say with what is there.
func (d *drill) policiesHonest(ctx context.Context, wrong map[string]map[string]string) error {
	list, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("accesscontrolpolicies")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the policies: %w", err)
	}
	all := map[string]*v1alpha1.AccessControlPolicy{}
	for i := range list.Items {
		if err := take(all, &list.Items[i]); err != nil {
			return err
		}
	}
	for name := range d.world.policies {
		if all[name] == nil {
			return fmt.Errorf("AccessControlPolicy %s is lost", name)
		}
	}
	for name, p := range all {
		realized := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionRealized)
		current := realized != nil && realized.ObservedGeneration == p.Generation
		if !current && (d.outage == nil || !d.outage.frozen) {
			return fmt.Errorf("AccessControlPolicy %s: its status is about an older generation", name)
		}
		if !current || realized.Status != metav1.ConditionTrue {
			continue
		}
		for _, s := range p.Spec.Statements {
			for _, r := range s.Resources {
				for _, m := range fleet.Members() {
					if what, bad := wrong[m][d.serverOf(m, string(r))]; bad {
						return fmt.Errorf("AccessControlPolicy %s is said to be realized, but in %s %s", name, m, what)
					}
				}
			}
		}
	}
	return nil
}
