package externalgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
)

// ErrTaken means that the object's name belongs to another subject. Names contain a short hash, so two subjects can
// be made to have the same one.
var ErrTaken = errors.New("the group's name is another subject's: choose another name for one of the two")

// Object is a group that the members have to have or, without revision, one that has to be removed.
type Object struct {
	Name, Revision string
	// Spec is the spec that members have to have, or nil without revision.
	Spec map[string]any
	// Federated is its object on the host, or nil.
	Federated *federation.Object
}

// Of returns the objects of a subject.
func (r *Reconciler) Of(view *policycache.View, subject string) ([]Object, error) {
	rendered, err := r.render(view, subject)
	if err != nil {
		return nil, err
	}
	var out []Object
	for i := range rendered {
		o := Object{Name: rendered[i].Object.Name, Revision: rendered[i].Revision, Spec: rendered[i].Object.Spec}
		o.Federated, _ = r.Federated.Get(o.Name)
		out = append(out, o)
	}
	return out, nil
}

// PendingRemovals returns the objects with a label that have to be removed and are still on the host. Until then, a rule that
// selects groups by the label includes their addresses.
func (r *Reconciler) PendingRemovals(view *policycache.View, label string) []Object {
	var out []Object
	for _, e := range r.Federated.List() {
		if _, labelled := e.TemplateLabels[label]; !labelled || e.Resource() == "" {
			continue
		}
		if wanted, err := r.render(view, e.Resource()); err == nil && !contains(wanted, e.Meta.Name) {
			out = append(out, Object{Name: e.Meta.Name, Federated: e})
		}
	}
	return out
}

// render renders a subject's group once for each change of it, because a unit about a whole class needs all groups.
func (r *Reconciler) render(view *policycache.View, subject string) ([]enforcer.Rendered, error) {
	g, ok := view.Group(subject)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok {
		delete(r.rendered, subject)
		return nil, nil
	}
	if known, ok := r.rendered[subject]; ok && known.group.Equal(g) {
		return known.objects, nil
	}
	out, err := r.Render(g)
	if err != nil {
		return nil, fmt.Errorf("render the group of %s: %w", subject, err)
	}
	if r.rendered == nil {
		r.rendered = map[string]rendering{}
	}
	r.rendered[subject] = rendering{g, out.Objects}
	return out.Objects, nil
}

// contains reports whether one of some rendered objects has a name.
func contains(rendered []enforcer.Rendered, name string) bool {
	return slices.ContainsFunc(rendered, func(o enforcer.Rendered) bool { return o.Object.Name == name })
}

// Ensure writes the objects of a subject to the host if they differ from what they have to be. Addresses that wait for their next
// subject stay in them.
func (r *Reconciler) Ensure(ctx context.Context, view *policycache.View, subject string) error {
	rendered, err := r.render(view, subject)
	if err != nil {
		return err
	}
	writes, err := r.writes(view, subject, rendered)
	if err != nil {
		return err
	}
	if r.revokes(writes) && r.awaitsHandover(view, subject) {
		if writes, err = r.writesBeforeHandover(view, subject); err != nil { // Reconcile writes the rest.
			return err
		}
	}
	return r.write(ctx, subject, writes, r.takesAccessAway(view, subject, writes))
}

// writes returns the objects of a subject that have to be written to the host.
func (r *Reconciler) writes(view *policycache.View, subject string, rendered []enforcer.Rendered) ([]*federation.Object, error) {
	var out []*federation.Object
	for i := range rendered {
		next, err := r.next(view, subject, &rendered[i])
		if err != nil {
			return nil, err
		}
		if next != nil {
			out = append(out, next)
		}
	}
	return out, nil
}

// placement returns all members except those that are leaving. A quarantined member keeps its groups, and gets no new ones.
func (r *Reconciler) placement(e *federation.Object) []string {
	var out []string
	for _, c := range r.Fleet.Clusters() {
		if !c.Leaving && (!c.Quarantined || e != nil && slices.Contains(e.Placement, c.Name)) {
			out = append(out, c.Name)
		}
	}
	return out
}

// next returns an object as it has to be, or nil if it is so already.
func (r *Reconciler) next(view *policycache.View, subject string, rendered *enforcer.Rendered) (*federation.Object, error) {
	o, revision := &rendered.Object, rendered.Revision
	e, exists := r.Federated.Get(o.Name)
	clusters := r.placement(e)
	next := &federation.Object{Kind: federation.CiliumGroup, TemplateLabels: o.Labels, TemplateSpec: o.Spec, Placement: clusters}
	ever := slices.Clone(clusters)
	if exists {
		if other := e.Resource(); other != "" && other != subject {
			if _, alive := view.Group(other); alive {
				return nil, fmt.Errorf("group %s of %s: %w", o.Name, subject, ErrTaken)
			}
		}
		next.Kind, next.Meta = e.Kind, *e.Meta.DeepCopy()
		ever = append(ever, r.notSeenWithout(e)...)
	}
	next.Meta.Name = o.Name
	next.Meta.Labels = federation.Overlay(next.Meta.Labels, o.Labels)
	delete(next.Meta.Labels, v1alpha1.LabelRevision) // Objects of an earlier release have this label.
	next.Meta.Annotations = federation.Overlay(next.Meta.Annotations, map[string]string{
		federation.AnnotationResource: subject, federation.AnnotationEverPlaced: federation.JoinNames(ever),
		federation.AnnotationRevision: revision})
	differs, err := federation.Differs(e, next)
	if err != nil || !differs && !e.ReleasesMember(next, r.Fleet.Clusters()) {
		return nil, err
	}
	return next, nil
}

func (r *Reconciler) write(ctx context.Context, subject string, writes []*federation.Object, urgent bool) error {
	for _, next := range writes {
		written, err := r.Federated.Apply(ctx, next)
		if err != nil {
			return err
		}
		if urgent && r.Engines != nil {
			r.Engines.DeliverUrgent(written)
		}
		r.PendingWrites(written.Meta.Name)
		log.FromContext(ctx).Info("Wrote federated group", "name", written.Meta.Name, "subject", subject,
			"revision", written.Meta.Annotations[federation.AnnotationRevision], "placement", written.Placement)
	}
	return nil
}
