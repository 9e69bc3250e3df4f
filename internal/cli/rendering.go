package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// rendered is an object as one enforcer renders it.
type rendered struct {
	enforcer v1alpha1.EnforcerName
	object   *enforcer.Rendered
	// about is the resource, or the subject of an object that several units refer to.
	about string
	mode  v1alpha1.Mode // empty for an object that several units refer to
	modes map[string]v1alpha1.Mode
	// placements are the object's placements; it is pushed to every member of any of them.
	placements []*v1alpha1.Placement
	class      string
}

// rendering is everything that the members get.
type rendering struct {
	objects []rendered
	// refused contains each refusal once, by statement, unit and enforcer.
	refused []refusal
	// granted are refusals that do not apply to a member, to which another one may apply.
	granted []refusal
	// warnings are sentences about limits that will soon be reached.
	warnings []warning
	// notes are sentences about what an enforcer leaves open, regardless of the statements.
	notes []warning
}

type warning struct {
	about   string
	message message.Message
}

// refusal is a refusal with its member.
type refusal struct {
	policy.Refusal
	// cluster is "" for all members, except those in granted.
	cluster string
}

// renderer translates the units of a snapshot.
type renderer struct {
	snapshot *policy.Snapshot
	at       time.Time
	// only is an enforcer that gets every unit, regardless of its class; empty means those of the class.
	only v1alpha1.EnforcerName
}

func (r *renderer) render() (rendering, error) {
	units := r.snapshot.Compile(r.at)
	var out rendering
	type reason struct {
		ref     policy.Ref
		reason  string
		message message.Message
	}
	reported := map[reason]bool{}
	for _, f := range r.snapshot.Refusals() {
		reported[reason{f.Ref, f.Reason, f.Message}] = true
		out.refused = append(out.refused, refusal{Refusal: f})
	}
	wanted := map[v1alpha1.EnforcerName][]policy.Unit{}
	for i := range units {
		for _, f := range units[i].Refused {
			if !reported[reason{f.Ref, f.Reason, f.Message}] {
				out.refused = append(out.refused, refusal{Refusal: f})
			}
		}
		for _, w := range units[i].Warnings {
			out.warnings = append(out.warnings, warning{units[i].Resource, w})
		}
		names := units[i].Enforcers
		if r.only != "" {
			names = []v1alpha1.EnforcerName{r.only}
		}
		for _, name := range names {
			wanted[name] = append(wanted[name], units[i])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		plan, err := registry.Prepare(name, registry.Job{Snapshot: r.snapshot, Units: wanted[name], At: r.at})
		if err != nil {
			return rendering{}, invalid(fmt.Errorf("render for %s: %w", name, err))
		}
		if err := out.add(name, &plan); err != nil {
			return rendering{}, err
		}
	}
	for _, list := range []*[]refusal{&out.refused, &out.granted} {
		slices.SortStableFunc(*list, func(a, b refusal) int {
			return cmp.Or(
				cmp.Compare(a.Ref.Policy, b.Ref.Policy),
				cmp.Compare(a.Ref.SID, b.Ref.SID),
				cmp.Compare(
					a.Reason,
					b.Reason,
				),
				cmp.Compare(a.Resource, b.Resource),
				cmp.Compare(a.cluster, b.cluster),
				cmp.Compare(a.Message.Text, b.Message.Text),
			)
		})
		*list = slices.Compact(*list)
	}
	return out, nil
}

// add renders an enforcer's units, and before them the objects that they refer to.
func (out *rendering) add(name v1alpha1.EnforcerName, plan *registry.Plan) error {
	for _, s := range plan.Shared {
		var placements []*v1alpha1.Placement
		for i := range plan.Units {
			if s.UsedBy(&plan.Units[i]) {
				placements = append(placements, &plan.Units[i].Placement)
			}
		}
		if len(placements) == 0 {
			continue
		}
		for i := range s.Rendering.Objects {
			out.objects = append(out.objects, rendered{enforcer: name, object: &s.Rendering.Objects[i], about: s.Subject, placements: placements})
		}
	}
	var unenforced []message.Message
	for i := range plan.Units {
		u := &plan.Units[i]
		r, err := plan.Enforcer.Render(*u)
		if err != nil {
			return invalid(fmt.Errorf("render %s for %s: %w", u.Resource, name, err))
		}
		for j := range r.Objects {
			out.objects = append(out.objects, rendered{enforcer: name, object: &r.Objects[j], about: u.Resource, mode: u.Mode, modes: u.ClusterModes,
				placements: []*v1alpha1.Placement{&u.Placement}, class: u.Class})
		}
		out.refuse(&r)
		unenforced = append(unenforced, r.Unenforced...)
	}
	slices.SortFunc(unenforced, func(a, b message.Message) int { return cmp.Compare(a.Text, b.Text) })
	for _, sentence := range slices.Compact(unenforced) {
		out.notes = append(out.notes, warning{string(name), sentence})
	}
	return nil
}

// refuse records the refusals of a rendering, and those of members that differ.
func (out *rendering) refuse(r *enforcer.Rendering) {
	for _, f := range r.Refused {
		out.refused = append(out.refused, refusal{Refusal: f})
	}
	for cluster, refused := range r.RefusedIn {
		for _, f := range refused {
			if !slices.Contains(r.Refused, f) {
				out.refused = append(out.refused, refusal{f, cluster})
			}
		}
		for _, f := range r.Refused {
			if !slices.Contains(refused, f) {
				out.granted = append(out.granted, refusal{f, cluster})
			}
		}
	}
}

// plain returns the object as a member gets it; spec and revision may be those of an override.
func plain(o *enforcer.Object, spec map[string]any, revision string) map[string]any {
	objectLabels := map[string]any{}
	for k, v := range o.Labels {
		objectLabels[k] = v
	}
	if _, ok := o.Labels[v1alpha1.LabelRevision]; ok {
		objectLabels[v1alpha1.LabelRevision] = revision
	}
	metadata := map[string]any{"name": o.Name, "labels": objectLabels}
	if o.Namespace != "" {
		metadata["namespace"] = o.Namespace
	}
	return map[string]any{"apiVersion": o.GroupVersion, "kind": o.Kind, "metadata": metadata, "spec": spec}
}

// in returns the object as one member gets it; false if it gets none, because its mode is Observe there, or because only others have it.
func (r *rendered) in(cluster string) (map[string]any, bool) {
	if r.modeIn(cluster) == v1alpha1.ModeObserve || !r.object.IsIn(cluster) {
		return nil, false
	}
	spec := r.object.Object.Spec
	if other, ok := r.object.Overrides[cluster]; ok {
		spec = other
	}
	return plain(&r.object.Object, spec, r.object.RevisionIn(cluster)), true
}

func (r *rendered) modeIn(cluster string) v1alpha1.Mode {
	if m, ok := r.modes[cluster]; ok {
		return m
	}
	return r.mode
}

// differing returns the members with a spec of their own.
func (r *rendered) differing() []string { return slices.Sorted(maps.Keys(r.object.Overrides)) }

// placed returns the members in which the object is placed; false if they are selected by label, and no member is
// known.
func (r *rendered) placed(members []manifest.Member) ([]string, bool, error) {
	out := []string{}
	if r.object.Only != nil && len(members) == 0 {
		return r.object.Only, true, nil
	}
	for _, p := range r.placements {
		names, known, err := placed(p, members)
		if err != nil || !known {
			return nil, false, err
		}
		out = append(out, names...)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(c string) bool { return !r.object.IsIn(c) || r.lacksEnforcer(c, members) }), true, nil
}

// lacksEnforcer reports whether a member declares that it lacks what enforces the object, so that it does not get it.
func (r *rendered) lacksEnforcer(cluster string, members []manifest.Member) bool {
	return r.enforcer == v1alpha1.EnforcerIstio && slices.ContainsFunc(members, func(m manifest.Member) bool {
		return m.Name == cluster && istio.DeclaresNone(m.Annotations[federation.AnnotationIstio])
	})
}

// selector returns the selector of a placement of members that are not known. Several different selectors cannot be
// combined and are replaced by one for all members: a shared object has no effect alone.
func (r *rendered) selector() *metav1.LabelSelector {
	if len(r.placements) == 1 && r.placements[0].ClusterSelector != nil {
		return r.placements[0].ClusterSelector
	}
	return &metav1.LabelSelector{}
}

func placed(p *v1alpha1.Placement, members []manifest.Member) ([]string, bool, error) {
	var out []string
	if p.Clusters != nil {
		for _, c := range *p.Clusters {
			out = append(out, string(c))
		}
		return out, true, nil
	}
	if len(members) == 0 {
		return nil, false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(p.ClusterSelector)
	if err != nil {
		return nil, false, fmt.Errorf("clusterSelector: %w", err)
	}
	for _, m := range members {
		if selector.Matches(labels.Set(m.Labels)) {
			out = append(out, m.Name)
		}
	}
	return out, true, nil
}
