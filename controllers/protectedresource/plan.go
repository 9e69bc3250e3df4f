package protectedresource

import (
	"maps"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/policy"
)

// plan contains what must be written, and what every member must have afterwards.
type plan struct {
	// Writes are Federated objects to create (without resource version) or to update.
	Writes []*federation.Object
	// Deletes are Federated objects that, according to the caches, no member has any more.
	Deletes []*federation.Object
	// Desired is the revision by object and member. A member that is not listed must have nothing.
	Desired map[string]map[string]string
	// Frozen reports whether the Federated objects stay as they are, because it is not known that the resource may be opened.
	Frozen bool
}

// newPlan computes the plan. It is a pure function of the facts. The plan that it returns with an error is frozen.
func newPlan(f *facts) (p plan, err error) {
	switch {
	case f.Problem != nil && len(f.Rendered) == 0:
		return f.frozen(), nil
	case f.Wanted:
		p, err = planWanted(f)
	case f.wildcard() || len(f.Objects) > 0 && f.released():
		p, err = planRemoval(f, f.Existing)
	default:
		// The ProtectedResource was removed by force, or its class no longer exists. The objects that close the resource stay.
		return f.frozen(), nil
	}
	if err != nil {
		return f.frozen(), err
	}
	return p, nil
}

// frozen returns the plan that leaves every object as it is.
func (f *facts) frozen() plan {
	p := plan{Desired: map[string]map[string]string{}, Frozen: true}
	for _, e := range f.Existing {
		p.Desired[e.Key()] = currentRevisions(e)
	}
	return p
}

func planWanted(f *facts) (plan, error) {
	p := plan{Desired: map[string]map[string]string{}}
	wanted, targets := map[string]bool{}, f.targets()
	for i := range f.Rendered {
		key := renderedKey(&f.Rendered[i])
		wanted[key] = true
		if _, partial := f.RenderedIn[key]; partial {
			continue
		}
		if err := p.place(f, &f.Rendered[i], f.targetsOf(renderedKind(&f.Rendered[i]), targets)); err != nil {
			return plan{}, err
		}
	}
	common := maps.Clone(p.Desired)
	for i := range f.Rendered {
		if _, partial := f.RenderedIn[renderedKey(&f.Rendered[i])]; partial {
			if err := p.placePartial(f, i, f.targetsOf(renderedKind(&f.Rendered[i]), targets), common); err != nil {
				return plan{}, err
			}
		}
	}
	replaced := maps.Clone(p.Desired)
	for i := range f.ReplacedRenderings {
		r := &f.ReplacedRenderings[i]
		kind := renderedKind(r)
		retained := slices.DeleteFunc(f.notReplaced(kind, f.targetsOf(kind, targets), replaced),
			func(c string) bool { return !r.IsIn(c) || !f.placeableAtGateway(r, c) })
		if len(retained) > 0 {
			wanted[renderedKey(r)] = true
			if err := p.place(f, r, retained); err != nil {
				return plan{}, err
			}
		}
	}
	successors := maps.Clone(p.Desired)
	var surplus []*federation.Object
	for _, e := range f.Existing {
		if wanted[e.Key()] {
			continue
		}
		if slices.Contains(f.UnrenderedKinds, e.Kind) {
			p.Desired[e.Key()] = currentRevisions(e)
			continue
		}
		// An object that a rendering no longer contains is covered by its other objects, or only opened something. But
		// it may be what closes a member until the others are there: it is removed where they were read back and, if
		// they belong to another dataplane, where that dataplane enforces them.
		needed := f.notReplaced(e.Kind, e.Placement, replaced)
		needed = slices.DeleteFunc(slices.Clone(e.Placement), func(c string) bool {
			return !slices.Contains(targets, c) || f.forgotten(c) ||
				f.revisionsObservedIn(c, successors) && !f.restrictsWaypoint(e, c) && (!slices.Contains(needed, c) || f.hasReplacedRendering(e.Kind))
		})
		retained, differs := f.retain(e, needed)
		if len(retained.Placement) == 0 {
			surplus = append(surplus, e)
			continue
		}
		if differs {
			p.Writes = append(p.Writes, retained)
		}
		p.Desired[e.Key()] = currentRevisions(retained)
	}
	gone, err := planRemoval(f, surplus)
	if err != nil {
		return plan{}, err
	}
	p.Writes, p.Deletes = append(p.Writes, gone.Writes...), gone.Deletes
	maps.Copy(p.Desired, gone.Desired)
	return p, nil
}

// retain returns an object as it stays in some of the members in which it is placed, although the unit no longer contains it, and whether that differs
// from what is recorded.
func (f *facts) retain(e *federation.Object, members []string) (next *federation.Object, differs bool) {
	var placed []string
	overrides := maps.Clone(e.Overrides)
	for _, c := range members {
		spec := f.retainedSpec(e, c)
		if spec == nil {
			differs = true
			continue
		}
		placed = append(placed, c)
		if revision := enforcer.Revision(spec); revision != enforcer.Revision(e.SpecIn(c)) {
			differs = true
			if overrides == nil {
				overrides = map[string]federation.Override{}
			}
			overrides[c] = federation.Override{Spec: spec, Labels: map[string]string{v1alpha1.LabelRevision: revision}}
		}
	}
	if !differs && len(placed) == len(e.Placement) {
		return e, false
	}
	next = e.PlacedIn(placed, append(slices.Clone(e.Placement), f.notSeenWithout(e)...))
	next.Overrides = overrides
	return next, true
}

// retainedSpec returns the spec with which an object that the unit no longer contains stays in a member until the other objects of the unit were read
// back there; nil if it need not stay. In a member that cannot be reached, this takes until the member is back, and then its engine writes the objects
// in any order, also one that the member never had. What is revoked meanwhile must not be allowed by that, so the object stays there only to close
// the member. Until the others are there, too, the member may refuse clients whose allows moved from one object to another.
func (f *facts) retainedSpec(e *federation.Object, cluster string) map[string]any {
	spec, seen := e.SpecIn(cluster), f.Observed.of(cluster, e.Key())
	withoutAllows := registry.Of(objectkind.EnforcerOf(e.Kind)).WithoutAllows
	if seen.Reachable || seen.Unknown || withoutAllows == nil {
		return spec
	}
	for _, r := range f.renderings() {
		if renderedKind(r) == e.Kind {
			return withoutAllows(spec)
		}
	}
	return spec // The unit has no other object of this kind, so only this one has the allows of the clients.
}

// place adds to the plan what is necessary to place a rendered object in some members.
func (p *plan) place(f *facts, r *enforcer.Rendered, targets []string) error {
	key := renderedKey(r)
	p.Desired[key] = desired(r, targets)
	e := f.existing(key)
	placed := f.placeable(e, targets)
	if e == nil && len(placed) == 0 {
		return nil
	}
	next := compose(f, r, e, placed)
	differs, err := federation.Differs(e, next)
	if err != nil {
		return err
	}
	if differs || e.ReleasesMember(next, f.Clusters) {
		p.Writes = append(p.Writes, next)
	}
	return nil
}

// notReplaced returns the members in which objects of a kind that the class no longer names still close the resource,
// because their replacement was not read back or is not enforced.
func (f *facts) notReplaced(kind federation.Kind, among []string, replaced map[string]map[string]string) []string {
	if f.enforcedByKind(kind) {
		return nil // objects of one dataplane are enforced together
	}
	closed, targets := f.membersClosedBy(kind), f.targets()
	return slices.DeleteFunc(slices.Clone(among), func(c string) bool {
		if !closed[c] || !slices.Contains(targets, c) || f.forgotten(c) || f.mode(c) == v1alpha1.ModeAudit {
			return true
		}
		if !f.revisionsObservedIn(c, replaced) {
			return false
		}
		state, _ := f.enforcementState(c)
		return state == v1alpha1.MemberRealized
	})
}

// enforcedByKind reports whether the unit's class names the enforcer of a kind.
func (f *facts) enforcedByKind(kind federation.Kind) bool {
	for name, k := range kinds {
		if k == kind && f.enforcedBy(name) {
			return true
		}
	}
	return false
}

// hasReplacedRendering reports whether the unit was rendered for a dataplane that its class no longer names.
func (f *facts) hasReplacedRendering(kind federation.Kind) bool {
	return slices.ContainsFunc(f.ReplacedRenderings, func(r enforcer.Rendered) bool { return renderedKind(&r) == kind })
}

// planRemoval takes one step of the removal: render as Audit without rules, remove the placement, delete. Each step
// waits until the previous one is read back from every member, so that a member that is unreachable now finds nothing
// closed when it returns, and a wildcard's last statement is revoked by an update, which is faster than a deletion. The
// placement is not removed before the former engines of members that move cannot create the object again. The
// step depends on the object and the members alone, so that it is the same after a restart.
func planRemoval(f *facts, objects []*federation.Object) (plan, error) {
	p := plan{Desired: map[string]map[string]string{}}
	for _, e := range objects {
		open, renderable := f.Open[e.Key()]
		if len(e.Placement) > 0 && renderable {
			placement := slices.DeleteFunc(slices.Clone(e.Placement), f.forgotten)
			next := compose(f, &open, e, placement)
			differs, err := federation.Differs(e, next)
			if err != nil {
				return plan{}, err
			}
			if differs {
				p.Writes = append(p.Writes, next)
			}
			want := desired(&open, placement)
			if differs || !f.revisionsObserved(map[string]map[string]string{e.Key(): want}) || mayBeCreatedAgain(e, placement) {
				p.Desired[e.Key()] = want
				continue
			}
		}
		p.Desired[e.Key()] = nil
		switch {
		case e.Meta.DeletionTimestamp != nil:
		case len(e.Placement) > 0 || e.ForeignFields:
			p.Writes = append(p.Writes, e.WithoutPlacement(append(slices.Clone(e.Placement), f.notSeenWithout(e)...)))
		case f.absentEverywhere(e):
			p.Deletes = append(p.Deletes, e)
		}
	}
	return p, nil
}

// mayBeCreatedAgain reports whether one of some members moves from an engine whose agent may still create the object there when it is missing, with the
// content of an earlier version. While the object is there, the agent changes only its owners.
func mayBeCreatedAgain(e *federation.Object, members []string) bool {
	return slices.ContainsFunc(members, func(c string) bool { return e.ReportIn(c).SharedWith.Pulls() })
}

// compose builds the Federated object of a rendering, as the successor of e, which may be nil.
func compose(f *facts, r *enforcer.Rendered, e *federation.Object, targets []string) *federation.Object {
	o := &federation.Object{Kind: renderedKind(r), TemplateLabels: r.Object.Labels, TemplateSpec: r.Object.Spec, Placement: targets}
	ever := slices.Clone(targets)
	policies := policiesOf(f.Unit.From)
	if e != nil {
		o.Kind, o.Meta = e.Kind, *e.Meta.DeepCopy()
		ever = append(ever, f.notSeenWithout(e)...)
		policies = append(policies, f.remainingPolicies(e)...)
	}
	o.Meta.Name, o.Meta.Namespace = r.Object.Name, o.Kind.Namespace
	o.Meta.Labels = federation.Overlay(o.Meta.Labels, r.Object.Labels)
	o.Meta.Annotations = federation.Overlay(o.Meta.Annotations, map[string]string{
		federation.AnnotationResource:   f.Resource,
		federation.AnnotationEverPlaced: federation.JoinNames(ever),
		federation.AnnotationPolicies:   federation.JoinNames(policies),
	})
	for _, c := range targets {
		spec, ok := r.Overrides[c]
		if !ok {
			continue
		}
		if o.Overrides == nil {
			o.Overrides = map[string]federation.Override{}
		}
		// The label must be overridden with the spec, or the member's object would look changed.
		o.Overrides[c] = federation.Override{Spec: spec, Labels: map[string]string{v1alpha1.LabelRevision: r.Revisions[c]}}
	}
	return o
}

func desired(r *enforcer.Rendered, targets []string) map[string]string {
	out := map[string]string{}
	for _, c := range targets {
		out[c] = r.RevisionIn(c)
	}
	return out
}

// existing returns the Federated object with a key, or nil.
func (f *facts) existing(key string) *federation.Object {
	for _, e := range f.Existing {
		if e.Key() == key {
			return e
		}
	}
	return nil
}

func policiesOf(refs []policy.Ref) []string {
	var out []string
	for _, r := range refs {
		out = append(out, r.Policy)
	}
	return out
}
