package protectedresource

import (
	"errors"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/dataplane"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// errNotReady means that the host's objects are not listed yet. The reconcile is triggered when they are.
var errNotReady = errors.New("the host's federated objects and members are not listed yet")

// gather reads all facts about a resource: first what has to be in the members, then what they have.
func (r *Reconciler) gather(resource string) (*facts, error) {
	// The lists are read after the check that they are complete: without members, the objects would be placed nowhere.
	problem, err := r.propagatorProblem()
	if err != nil {
		return nil, err
	}
	f := &facts{
		Resource: resource, Now: r.Clock.Now(), RequestedAt: r.Units.PendingSince(resource), View: r.Cache.View(), Objects: r.Cache.Protecting(resource),
		Clusters: r.Fleet.Clusters(), Existing: r.existing(resource), Problem: problem, NotEnforcing: map[v1alpha1.EnforcerName]map[string]message.Message{},
		RenderedIn: map[string][]string{},
	}
	f.Changes = r.changesOf(resource, f.Now)
	for _, o := range f.Objects {
		for c := range o.Status.All() {
			if !seenWithoutIstio(&c) {
				f.StatusMembers = append(f.StatusMembers, string(c.Name))
			}
		}
	}
	if err := r.compile(f); err != nil {
		return nil, err
	}
	if f.Wanted && (f.enforcedBy(v1alpha1.EnforcerIstio) || f.hasReplacedRendering(federation.IstioPolicy)) {
		f.Waypoints = r.Enforcers.Dedications(resource, f.Clusters)
	}
	f.LastReport, _ = r.Reports.Get(resource)
	f.LastStates = lastStates(append([][]v1alpha1.ClusterState{f.LastReport.Clusters}, r.reportedStates(f)...)...)
	r.observe(f)
	f.useInterimSpecs()
	return f, nil
}

// seenWithoutIstio reports whether a state says that the member, which declares no Istio, has no object of the unit and gets none. It is written only
// while nothing records that the member may have one, or after the member was read without it. Such a state is no record either: otherwise a member
// would have to let Istio's policies be read only because it once had this state.
func seenWithoutIstio(c *v1alpha1.ClusterState) bool {
	return c.MessageCode == message.StateWithoutIstio().Code && c.DesiredRevision == "" && c.ObservedRevision == ""
}

// compile computes what the members must have of the resource.
func (r *Reconciler) compile(f *facts) error {
	if taken := r.conflictingResource(f.Resource); taken != "" {
		f.Problem = &statuscache.Problem{Reason: v1alpha1.ReasonInvalid, Message: message.UnitNameTaken(objectName(f.Resource), taken)}
		return nil
	}
	f.Unit, f.Wanted = f.View.CompileResource(f.Resource, f.Now)
	f.compileSettled()
	f.foldWildcards()
	if f.Wanted {
		if f.Problem == nil {
			// Without the list of members, a class that selects members by labels would select none.
			r.render(f)
		}
		if err := r.groups(f); err != nil {
			return err
		}
	}
	switch {
	case f.wildcard():
		f.Open = withoutAllows(f.Existing)
	case !f.Wanted:
		f.Open = r.renderOpen(f)
	}
	return nil
}

// reportedStates returns the members in the statuses of the ProtectedResources, or of a wildcard's policies.
func (r *Reconciler) reportedStates(f *facts) [][]v1alpha1.ClusterState {
	var out [][]v1alpha1.ClusterState
	for _, o := range f.Objects {
		out = append(out, o.Status.States())
	}
	if !f.wildcard() {
		return out
	}
	for _, ref := range f.Unit.From {
		p, _, ok := r.Cache.Policy(ref.Policy)
		if !ok {
			continue
		}
		for i := range p.Status.Units {
			if u := &p.Status.Units[i]; string(u.Resource) == f.Resource {
				out = append(out, u.States())
			}
		}
	}
	return out
}

// existing returns the Federated objects of the resource: those with its annotation, and the one with its name.
func (r *Reconciler) existing(resource string) []*federation.Object {
	out := slices.Clone(r.Federated.Of(resource))
	if r.conflictingResource(resource) != "" {
		return out
	}
	for _, key := range objectKeys(resource) {
		if byName, ok := r.Federated.Get(key); ok && !slices.ContainsFunc(out, func(o *federation.Object) bool { return o.Key() == key }) {
			out = append(out, byName)
		}
	}
	return out
}

// conflictingResource returns the other resource that the unit's object protects, which only manual changes can cause.
// The first resource keeps its protection.
func (r *Reconciler) conflictingResource(resource string) string {
	for _, key := range objectKeys(resource) {
		byName, ok := r.Federated.Get(key)
		if !ok {
			continue
		}
		other := byName.Resource()
		if other != "" && other != resource && (len(r.Cache.Protecting(other)) > 0 || r.Cache.View().HasWildcardUnit(other)) {
			return other
		}
	}
	return ""
}

// propagatorProblem returns why nothing can be propagated, or nil: the host's Federated objects or the registrations of the members cannot be read.
// It returns errNotReady while they are being listed.
func (r *Reconciler) propagatorProblem() (*statuscache.Problem, error) {
	for _, state := range []func() (bool, error){r.Federated.State, r.Fleet.Registry} {
		listed, err := state()
		switch {
		case listed:
		case err == nil:
			return nil, errNotReady
		case federation.IsKindNotInstalled(err):
			return &statuscache.Problem{Reason: v1alpha1.ReasonNoPropagator, Message: message.UnitNoKubefed()}, nil
		default:
			return &statuscache.Problem{Reason: v1alpha1.ReasonNoPropagator, Message: message.UnitKubefedUnreadable()}, nil
		}
	}
	return nil, nil //nolint:nilnil // no problem
}

// render renders the unit for the dataplanes that its class names, for the members in which it is placed.
func (r *Reconciler) render(f *facts) {
	clusters, err := federation.Resolve(f.Unit.Placement, f.Clusters)
	if err != nil {
		f.Problem = &statuscache.Problem{Reason: v1alpha1.ReasonInvalid, Message: message.UnitClassInvalid(f.Unit.Class, message.Of(err))}
		return
	}
	f.Placement, f.Placed = clusters, true
	f.placeSettled()
	if f.enforcedBy(v1alpha1.EnforcerCilium) {
		f.MissingLabels, f.UnmatchedRules = r.missingLabels(&f.Unit, f.openMembers()), r.unmatchedRules(&f.Unit)
	}
	f.Delay = f.delayEnforcement()
	for _, name := range f.Unit.Enforcers {
		e, why := r.Enforcers.Of(name, f.View, f.Clusters, f.Now)
		switch {
		case why != nil && why.Absent:
			f.Refused = append(f.Refused, unsupported(f.Unit, name, why.Message)...)
			f.Problem = &statuscache.Problem{
				Reason:  v1alpha1.ReasonStatementsRefused,
				Message: message.EnforcerOfClass(f.Unit.Class, string(name), why.Message),
			}
			continue
		case why != nil:
			f.Problem = &statuscache.Problem{Reason: v1alpha1.ReasonNoPropagator, Message: message.EnforcerUnavailable(string(name), why.Message)}
			f.UnrenderedKinds = append(f.UnrenderedKinds, kindOf(name))
			continue
		}
		out, err := r.renderVersions(f, name, e)
		if err != nil {
			f.Problem = &statuscache.Problem{Reason: v1alpha1.ReasonInvalid, Message: message.EnforcerFails(string(name), message.Of(err))}
			f.UnrenderedKinds = append(f.UnrenderedKinds, kindOf(name))
			continue
		}
		f.Rendered = append(f.Rendered, out.Objects...)
		for _, o := range out.Objects {
			if only, listed := out.Members[o.Object.Name]; listed {
				f.RenderedIn[renderedKey(&o)] = only
			}
		}
		f.Refused = append(f.Refused, out.RefusedAmong(f.targets())...)
		f.Unenforced = append(f.Unenforced, out.Unenforced...)
		f.NotEnforcing[name] = r.Enforcers.NotEnforcing(name, f.Clusters)
	}
	r.renderReplaced(f)
}

// renderReplaced renders the unit for dataplanes that its class no longer names, while one of their objects closes a member.
// The object stays until another dataplane enforces the unit, and until then it gets every change, including
// revocations.
func (r *Reconciler) renderReplaced(f *facts) {
	for name, kind := range kinds {
		if f.enforcedBy(name) || len(f.membersClosedBy(kind)) == 0 {
			continue
		}
		e, why := r.Enforcers.Of(name, f.View, f.Clusters, f.Now)
		if why != nil {
			continue // the object then stays as it is
		}
		u := f.Unit
		u.Enforcers = []v1alpha1.EnforcerName{name}
		switch {
		case name != v1alpha1.EnforcerCilium:
			u = f.View.WithStatements(u, f.Now)
		case !f.wildcard():
			// The class no longer has wildcard units for Cilium.
			u.Rules = slices.Concat(u.Rules, u.Inherited)
		}
		e, _ = r.withMeshes(f, f.View, &f.Unit, e)
		if out, err := e.Render(u); err == nil {
			f.ReplacedRenderings = append(f.ReplacedRenderings, out.Objects...)
		}
	}
}

// withMeshes returns the enforcer for members that cannot identify the pods of other cluster meshes, and what it cannot
// express there of a unit, which was compiled from a view.
func (r *Reconciler) withMeshes(f *facts, v *policycache.View, u *policy.Unit, e enforcer.Enforcer) (enforcer.Enforcer, policy.CrossMeshLimits) {
	c, ok := e.(cilium.Enforcer)
	if !ok || r.Has == nil {
		return e, policy.CrossMeshLimits{}
	}
	return c.ForUnit(
		v.Snapshot,
		u,
		dataplane.Meshes(f.Clusters, r.Has),
		f.targets(),
		func(member string) bool { return f.mode(member) == v1alpha1.ModeEnforce },
		f.Now,
	)
}

// groups collects the groups that take effect together with the unit.
func (r *Reconciler) groups(f *facts) error {
	if !f.enforcedBy(v1alpha1.EnforcerCilium) && !f.hasReplacedRendering(federation.CiliumPolicy) {
		return nil // other dataplanes write the addresses into the policies
	}
	f.Subjects = f.View.GroupsOf(&f.Unit)
	for i := range f.Settled {
		f.Subjects = append(f.Subjects, f.View.GroupsOf(&f.Settled[i].Unit)...)
	}
	slices.Sort(f.Subjects)
	f.Subjects = slices.Compact(f.Subjects)
	for _, subject := range f.Subjects {
		objects, err := r.Groups.Of(f.View, subject)
		if err != nil {
			return err
		}
		f.Groups = append(f.Groups, objects...)
	}
	var classes []string
	for i := range f.Unit.Rules {
		classes = append(classes, f.Unit.Rules[i].ExternalClasses...)
	}
	slices.Sort(classes)
	for _, class := range slices.Compact(classes) {
		f.Groups = append(f.Groups, r.Groups.PendingRemovals(f.View, cilium.LabelClass(class))...)
	}
	return nil
}

// unsupported refuses every statement of a unit for a dataplane that is not available.
func unsupported(u policy.Unit, name v1alpha1.EnforcerName, why message.Message) []policy.Refusal {
	var out []policy.Refusal
	refused := message.EnforcerOfClass(u.Class, string(name), why)
	for _, ref := range u.From {
		out = append(out, policy.Refusal{Ref: ref, Reason: v1alpha1.RefusedUnsupported, Resource: u.Resource, Message: refused})
	}
	return out
}

// withoutAllows returns the objects of a wildcard without their allows, derived from the objects themselves because the class
// may no longer exist.
func withoutAllows(existing []*federation.Object) map[string]enforcer.Rendered {
	out := map[string]enforcer.Rendered{}
	for _, e := range existing {
		// An object whose allows cannot be removed by an update is deleted without that step.
		if e.Kind != federation.CiliumPolicy {
			continue
		}
		if r, ok := cilium.EmptyWildcardObject(e.Meta.Name, e.TemplateLabels[v1alpha1.LabelUnit], e.TemplateSpec); ok {
			out[e.Key()] = r
		}
	}
	return out
}

// renderOpen renders the resource in Audit without rules, by compiling it without any statement.
func (r *Reconciler) renderOpen(f *facts) map[string]enforcer.Rendered {
	if len(f.Existing) == 0 || len(f.Objects) == 0 {
		return nil
	}
	in := r.Cache.ClassesOnly()
	o := f.Objects[0].DeepCopy()
	o.Spec.Mode, o.Spec.ClusterModes, o.Spec.TemporaryAudit = v1alpha1.ModeAudit, nil, nil
	in.Resources = []*v1alpha1.ProtectedResource{o}
	unit, ok := policy.NewSnapshot(in).CompileResource(f.Resource, f.Now)
	if !ok {
		return nil
	}
	out := map[string]enforcer.Rendered{}
	for _, name := range unit.Enforcers {
		e, why := r.Enforcers.Of(name, f.View, f.Clusters, f.Now)
		if why != nil {
			continue
		}
		rendering, err := e.Render(unit)
		if err != nil {
			continue // the object is then removed without that step
		}
		for _, o := range rendering.Objects {
			out[renderedKey(&o)] = o
		}
	}
	return out
}
