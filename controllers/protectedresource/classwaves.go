package protectedresource

import (
	"fmt"
	"maps"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// settledUnit is the unit as members have it in which the change of its class has not begun.
type settledUnit struct {
	View *policycache.View
	Unit policy.Unit
	// In are the members that have it, sorted.
	In []string
}

// compileSettled compiles the unit for the members in which the change of a class has not begun. A version that has no unit is one without
// rules: only the allows of a wildcard can be in one version and not in another.
func (f *facts) compileSettled() {
	names := make([]string, 0, len(f.Clusters))
	for i := range f.Clusters {
		names = append(names, f.Clusters[i].Name)
	}
	for _, name := range names {
		v := f.View.For(name)
		if v == f.View {
			continue
		}
		i := slices.IndexFunc(f.Settled, func(s settledUnit) bool { return s.View.Snapshot == v.Snapshot })
		if i < 0 {
			i = len(f.Settled)
			f.Settled = append(f.Settled, settledUnit{View: v})
		}
		f.Settled[i].In = append(f.Settled[i].In, name)
	}
	if len(f.Settled) == 0 {
		return
	}
	wanted := make([]bool, len(f.Settled))
	for i := range f.Settled {
		s := &f.Settled[i]
		if s.Unit, wanted[i] = s.View.CompileResource(f.Resource, f.Now); wanted[i] && !f.Wanted {
			f.Unit, f.Wanted = withoutRules(s.Unit), true
		}
	}
	if !f.Wanted {
		f.Settled = nil
		return
	}
	for i := range f.Settled {
		s := &f.Settled[i]
		if !wanted[i] {
			s.Unit = withoutRules(f.Unit)
		}
		f.Unit.From = union(f.Unit.From, s.Unit.From)
	}
}

// unitIn returns the version of the unit that counts in a member.
func (f *facts) unitIn(cluster string) *policy.Unit {
	for i := range f.Settled {
		if slices.Contains(f.Settled[i].In, cluster) {
			return &f.Settled[i].Unit
		}
	}
	return &f.Unit
}

func withoutRules(u policy.Unit) policy.Unit {
	u.Rules, u.Inherited, u.From, u.Refused, u.Entries, u.Overfull = nil, nil, nil, nil, 0, nil
	return u
}

func union(a, b []policy.Ref) []policy.Ref {
	out := slices.Clone(a)
	for _, ref := range b {
		if !slices.Contains(a, ref) {
			out = append(out, ref)
		}
	}
	return out
}

// placeSettled drops the versions of members in which the unit is not placed, and adds what only the others leave out.
func (f *facts) placeSettled() {
	f.Settled = slices.DeleteFunc(f.Settled, func(s settledUnit) bool { return len(f.placedOf(s.In)) == 0 })
	for i := range f.Settled {
		s := &f.Settled[i]
		s.In = f.placedOf(s.In)
		for _, refusal := range s.Unit.Refused {
			if !slices.Contains(f.Unit.Refused, refusal) {
				refusal.Message = message.RefusalInMembers(message.NamesOf(s.In, maxNamedMembers), refusal.Message)
				f.Refused = append(f.Refused, refusal)
			}
		}
	}
}

func (f *facts) placedOf(members []string) []string {
	return slices.DeleteFunc(slices.Clone(members), func(c string) bool { return !slices.Contains(f.Placement, c) })
}

// renderVersions renders the unit for one enforcer: the version of the present rules of its class, and those of members in which the
// change of a class has not begun.
func (r *Reconciler) renderVersions(f *facts, name v1alpha1.EnforcerName, e enforcer.Enforcer) (enforcer.Versions, error) {
	out, err := r.combineVersions(f, name, e, 0)
	if others := f.settledMembers(); err == nil && others > 0 && name == v1alpha1.EnforcerCilium && out.Size() > cilium.MaxObjectBytes {
		return r.combineVersions(f, name, e, others) // each member of another version needs a spec of its own
	}
	return out, err
}

func (f *facts) settledMembers() int {
	n := 0
	for i := range f.Settled {
		n += len(f.Settled[i].In)
	}
	return n
}

// combineVersions renders all versions, with room for a number of further specs in each object.
func (r *Reconciler) combineVersions(f *facts, name v1alpha1.EnforcerName, e enforcer.Enforcer, specs int) (enforcer.Versions, error) {
	present, err := r.renderVersion(f, name, f.View, f.Unit, e, specs)
	if err != nil {
		return enforcer.Versions{}, err
	}
	if len(f.Settled) == 0 {
		return enforcer.Combine(present, f.Placement, nil), nil
	}
	var others []enforcer.Version
	for i := range f.Settled {
		s := &f.Settled[i]
		e, why := r.Enforcers.Of(name, s.View, f.Clusters, f.Now)
		if why != nil {
			return enforcer.Versions{}, fmt.Errorf("render for members in which the change of the class has not begun: %w", why.Message.Err())
		}
		other, err := r.renderVersion(f, name, s.View, s.Unit, e, specs)
		if err != nil {
			return enforcer.Versions{}, err
		}
		others = append(others, enforcer.Version{Rendering: other, In: s.In})
	}
	return enforcer.Combine(present, f.Placement, others), nil
}

// renderVersion renders one version of the unit, which was compiled from a view.
func (r *Reconciler) renderVersion(
	f *facts, name v1alpha1.EnforcerName, v *policycache.View, u policy.Unit, e enforcer.Enforcer, specs int,
) (enforcer.Rendering, error) {
	e, apart := r.withMeshes(f, v, &u, e)
	if name == v1alpha1.EnforcerCilium {
		u = f.Delay.withAudit(u, f.targets())
	}
	if c, ok := e.(cilium.Enforcer); ok {
		c.Specs = specs
		e = c
	}
	out, err := e.Render(u)
	if err != nil {
		return enforcer.Rendering{}, err
	}
	if len(apart.RefusedIn) > 0 {
		refusedIn := map[string][]policy.Refusal{}
		maps.Copy(refusedIn, out.RefusedIn)
		for c, refused := range apart.RefusedIn {
			refusedIn[c] = slices.Concat(out.RefusedBy(c), refused)
		}
		out.RefusedIn = refusedIn
	}
	out.Unenforced = append(slices.Clone(apart.Notes), out.Unenforced...)
	return out, nil
}

// renderedMembers returns the members in which a rendered object is placed among some members.
func (f *facts) renderedMembers(r *enforcer.Rendered, targets []string) []string {
	only, listed := f.RenderedIn[renderedKey(r)]
	if !listed {
		return targets
	}
	return slices.DeleteFunc(slices.Clone(targets), func(c string) bool { return !slices.Contains(only, c) || !f.placeableAtGateway(r, c) })
}

// placePartial places an object that not every version of the unit has. Where it is not wanted any more, it stays as retainedSpec returns it until the
// other objects of the unit, which common contains, were read back.
func (p *plan) placePartial(f *facts, i int, targets []string, common map[string]map[string]string) error {
	r := &f.Rendered[i]
	members := f.renderedMembers(r, targets)
	if e := f.existing(renderedKey(r)); e != nil {
		retained := map[string]map[string]any{}
		for _, c := range e.Placement {
			if slices.Contains(targets, c) && !slices.Contains(members, c) && !f.forgotten(c) &&
				(!f.revisionsObservedIn(c, common) || f.restrictsWaypoint(e, c)) {
				if spec := f.retainedSpec(e, c); spec != nil {
					retained[c] = spec
				}
			}
		}
		r = retainedAs(r, retained)
		members = slices.AppendSeq(members, maps.Keys(retained))
		slices.Sort(members)
	}
	return p.place(f, r, members)
}

// retainedAs returns a rendered object with the specs with which it stays in some members. The template may be that of other members, and decide nothing.
func retainedAs(r *enforcer.Rendered, specs map[string]map[string]any) *enforcer.Rendered {
	out := *r
	out.Overrides, out.Revisions = maps.Clone(r.Overrides), maps.Clone(r.Revisions)
	if out.Overrides == nil {
		out.Overrides, out.Revisions = map[string]map[string]any{}, map[string]string{}
	}
	for c, spec := range specs {
		delete(out.Overrides, c)
		delete(out.Revisions, c)
		if revision := enforcer.Revision(spec); revision != r.Revision {
			out.Overrides[c], out.Revisions[c] = spec, revision
		}
	}
	return &out
}
