package protectedresource

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// assess computes the report about the unit after the plan was executed or deferred. It is pure.
func assess(done *outcome) statuscache.Report {
	f, p, existing := done.Facts, &done.Plan, done.Existing
	r := statuscache.Report{Resource: f.Resource, Version: f.View.Version, Wanted: f.Wanted, Problem: done.Problem,
		SIDs: map[string][]string{}, Objects: objectNames(f, p, existing)}
	switch {
	case p.Frozen:
		// The objects are not changed, so the members still have the revision of the last report, although the policies may have changed.
		r.SIDs, r.Revision, r.Entries = f.LastReport.SIDs, f.LastReport.Revision, f.LastReport.Entries
	case f.Wanted:
		for _, ref := range f.Unit.From {
			r.SIDs[ref.Policy] = append(r.SIDs[ref.Policy], ref.SID)
		}
		r.Refused = append(slices.Clone(f.Unit.Refused), f.Refused...)
		r.Unenforced = f.Unenforced
		r.Revision, r.Entries = f.templateRevision(), f.Unit.Entries
	}
	for _, g := range f.Groups {
		r.Groups = append(r.Groups, g.Name)
	}
	if len(r.Groups) > 0 {
		r.Desired = p.Desired
	}
	r.Clusters, r.Pushed = f.clusterStates(done, r.Objects)
	r.Nodes = f.nodes(p.Desired)
	if !r.Realized() {
		r.FormerPolicies = formerPolicies(r.SIDs, existing)
	}
	return r
}

// objectNames returns the keys of the objects that the unit has, gets, or may have in a member, sorted.
func objectNames(f *facts, p *plan, existing []*federation.Object) []string {
	names := []string{objectName(f.Resource)}
	names = slices.AppendSeq(names, maps.Keys(p.Desired))
	for _, e := range existing {
		names = append(names, e.Key())
	}
	for _, key := range objectKeys(f.Resource)[1:] {
		// The object is no longer wanted, and a member still has it.
		if slices.ContainsFunc(f.Clusters, func(c federation.Cluster) bool { return f.Observed.of(c.Name, key).Object != nil }) {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (f *facts) templateRevision() string {
	var all []string
	for i := range f.Rendered {
		all = append(all, f.Rendered[i].Revision)
	}
	return combinedRevision(all)
}

// combinedRevision combines the revisions of several objects into one.
func combinedRevision(revisions []string) string {
	if len(revisions) == 1 {
		return revisions[0]
	}
	if strings.Join(revisions, "") == "" {
		return ""
	}
	parts := make([]any, len(revisions))
	for i, r := range revisions {
		parts[i] = r
	}
	return enforcer.Revision(map[string]any{"parts": parts})
}

// formerPolicies returns the policies that an object on the host names and of which the unit has no statement any more, sorted.
func formerPolicies(sids map[string][]string, existing []*federation.Object) []string {
	var out []string
	for _, e := range existing {
		for _, p := range federation.SplitNames(e.Meta.Annotations[federation.AnnotationPolicies]) {
			if len(sids[p]) == 0 {
				out = append(out, p)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// clusterStates returns the state of every member that must have the unit, has it, or may have it, and which of them
// have it according to their engines.
func (f *facts) clusterStates(done *outcome, objects []string) (out []v1alpha1.ClusterState, pushed map[string]bool) {
	reported, objectsByKey := f.everPlaced(nil), map[string]hostObject{}
	for _, name := range objects {
		objectsByKey[name] = hostObject{everPlaced: reported}
	}
	clusters := slices.Clone(reported)
	for _, e := range done.Existing {
		o := hostObject{e, f.everPlaced(e)}
		objectsByKey[e.Key()] = o
		clusters = append(clusters, o.everPlaced...)
	}
	for _, d := range done.Plan.Desired {
		clusters = slices.AppendSeq(clusters, maps.Keys(d))
	}
	for _, c := range f.Placement {
		if slices.ContainsFunc(objects, func(o string) bool { return f.Observed.of(c, o).Object != nil }) {
			clusters = append(clusters, c)
		}
	}
	unprotected := f.unprotected()
	clusters = append(clusters, unprotected...)
	slices.Sort(clusters)
	pushed = map[string]bool{}
	for _, c := range slices.Compact(clusters) {
		if s, confirmed, relevant := f.clusterState(done, objectsByKey, objects, c, slices.Contains(unprotected, c)); relevant {
			out, pushed[c] = append(out, s), confirmed
		}
	}
	return out, pushed
}

// hostObject is a Federated object, which is nil if there is none, with the members that may have it, sorted.
type hostObject struct {
	*federation.Object
	everPlaced []string
}

// clusterState returns the state of the unit in one member, and whether the member's engine confirms it. The worst state of the unit's
// objects counts, then whether the member enforces them, and at last whether the member's policies are suspended. relevant is false for
// a member that has nothing of the unit and needs nothing. unprotected is set for a member that gets nothing because it lacks what enforces the unit.
func (f *facts) clusterState(
	done *outcome,
	byKey map[string]hostObject,
	objects []string,
	cluster string,
	unprotected bool,
) (out v1alpha1.ClusterState, confirmed, relevant bool) {
	observations := f.objectStates(done, byKey, objects, cluster)
	if len(observations) == 0 && !unprotected {
		return v1alpha1.ClusterState{}, false, false
	}
	before := f.LastStates[cluster]
	out = v1alpha1.ClusterState{Name: v1alpha1.ClusterName(cluster), Mode: f.mode(cluster)}
	why := f.worstState(&out, observations, before)
	confirmed = out.Propagated
	// An object that was read back has arrived. The engine reports it some milliseconds later, which would cause another
	// status write for every unit.
	out.Propagated = out.Propagated || out.State == v1alpha1.MemberRealized && out.DesiredRevision != ""
	switch {
	case len(observations) == 0:
		out.State, why = v1alpha1.MemberPending, message.StateWithoutIstio()
	case out.State == v1alpha1.MemberRealized && f.Wanted:
		out.State, why = f.effectState(&done.Plan, &out)
	}
	if state, reason := f.suspendedState(cluster); state != "" {
		out.State, why = state, reason
	}
	statusfields.SetMessage(&out, why)
	if out.State == v1alpha1.MemberUnreachable {
		// The last known revision is better than a claim that the object does not exist.
		out.ObservedRevision = before.ObservedRevision
	}
	out.Since = before.Since
	if out.Since == nil || before.State != out.State || before.ObservedRevision != out.ObservedRevision {
		now := metav1.NewMicroTime(f.Now.Truncate(time.Millisecond)) // groups of members keep milliseconds
		out.Since = &now
	}
	return out, confirmed, true
}

// objectStates returns the states of those objects of the unit that a member must have, has, or may have.
func (f *facts) objectStates(done *outcome, byKey map[string]hostObject, objects []string, cluster string) []objectState {
	p := &done.Plan
	var out []objectState
	for _, name := range objects {
		s := objectState{
			Label:        objectLabel(name),
			Name:         name,
			Engine:       f.engineOf(cluster),
			Desired:      p.Desired[name][cluster],
			Observation:  f.Observed.of(cluster, name),
			Handled:      true,
			Frozen:       p.Frozen,
			Orphan:       p.Frozen && f.orphaned(),
			Wildcard:     f.wildcard(),
			Deferred:     done.deferred(),
			MissingGroup: done.MissingGroup,
		}
		e := byKey[name]
		_, s.MayExist = slices.BinarySearch(e.everPlaced, cluster)
		if e.Object != nil {
			// Until the plan is written, the engine's report refers to the previous write.
			report := e.ReportIn(cluster)
			s.Propagated, s.Handled, s.EngineStatus = report.Applied && !done.deferred(), report.Handled && !done.deferred(), report.Reason
			s.SharedWith, s.Unanswered = report.SharedWith, report.MayRevert
		}
		if s.relevant() {
			out = append(out, s)
		}
	}
	return out
}

// worstState sets the revisions of the unit in a member, whether all of its objects and groups are propagated, and the worst of their states,
// and returns the reason for the state. before is the state of the last report.
func (f *facts) worstState(out *v1alpha1.ClusterState, observations []objectState, before v1alpha1.ClusterState) (why message.Message) {
	out.State, out.Propagated = v1alpha1.MemberRealized, true
	var desired, observed []string
	worst := func(s *objectState) {
		state, reason := s.state()
		if slices.Index(severity, state) > slices.Index(severity, out.State) {
			out.State, why = state, reason
		}
		out.Propagated = out.Propagated && s.Propagated
	}
	for _, s := range observations {
		desired = append(desired, s.Desired)
		if s.Observation.Object != nil {
			observed = append(observed, s.Observation.Object.Revision)
		} else {
			observed = append(observed, "")
		}
	}
	out.DesiredRevision, out.ObservedRevision = combinedRevision(desired), combinedRevision(observed)
	was := before.DesiredRevision == out.DesiredRevision && (before.State == v1alpha1.MemberRealized || before.State == v1alpha1.MemberDrifted)
	for _, s := range observations {
		s.WasRealized = was
		worst(&s)
	}
	if strings.Join(desired, "") != "" {
		for _, s := range f.groupsIn(string(out.Name)) {
			s.WasRealized = was && slices.Contains(f.LastReport.Groups, s.Name)
			worst(&s)
		}
	}
	return why
}

// effectState returns the state of a member that has all objects of the unit as it is wanted, by whether they have their effect there.
func (f *facts) effectState(p *plan, in *v1alpha1.ClusterState) (v1alpha1.MemberState, message.Message) {
	cluster := string(in.Name)
	switch {
	case in.Mode == v1alpha1.ModeEnforce:
		state, why := f.enforcementState(cluster)
		if object := f.closedByReplaced(p, cluster); object != "" && state != v1alpha1.MemberRealized {
			why = message.StateStillClosed(object, why)
		}
		return state, why
	case in.DesiredRevision != "":
		return f.auditState(cluster)
	}
	return v1alpha1.MemberRealized, message.Message{}
}

// suspendedState returns the state of a member that does not receive further changes, whatever it has now, or "".
func (f *facts) suspendedState(cluster string) (v1alpha1.MemberState, message.Message) {
	if why := f.quarantined(cluster); !why.IsZero() {
		return v1alpha1.MemberQuarantined, why
	}
	if why := f.downgraded(cluster); !why.IsZero() {
		return v1alpha1.MemberDowngraded, why
	}
	return "", message.Message{}
}

// groupsIn returns the groups that the unit refers to, in a member that must have it. Without them the unit is not in
// force.
func (f *facts) groupsIn(cluster string) []objectState {
	var out []objectState
	for _, g := range f.Groups {
		s := objectState{Group: true, Name: g.Name, Engine: f.engineOf(cluster), Desired: g.Revision, Observation: f.observedGroup(cluster, &g), Handled: true}
		if g.Federated != nil {
			report := g.Federated.ReportIn(cluster)
			s.Propagated, s.Handled, s.EngineStatus = report.Applied || g.Revision == "", report.Handled, report.Reason
			s.SharedWith, s.Unanswered, s.MayExist = report.SharedWith, report.MayRevert, g.Revision == ""
		}
		if s.relevant() {
			out = append(out, s)
		}
	}
	return out
}

// engineOf returns the engine of a member, or "" if it is not registered.
func (f *facts) engineOf(cluster string) federation.Engine {
	if c := f.cluster(cluster); c != nil {
		return c.Engine
	}
	return ""
}

// orphaned reports whether no ProtectedResource of the unit exists any more.
func (f *facts) orphaned() bool { return len(f.Objects) == 0 && !f.wildcard() }

// severity orders states: if a member has several objects, the worst state counts.
var severity = []v1alpha1.MemberState{
	v1alpha1.MemberRealized, v1alpha1.MemberPending, v1alpha1.MemberDrifted, v1alpha1.MemberLeaked, v1alpha1.MemberUnreachable,
}

// objectState compares the wanted and the observed state of one object in one member.
type objectState struct {
	// Group reports whether it is a group of addresses, which has no revision label.
	Group bool
	// Label names the object in messages by its kind and name. It is empty for a Cilium policy and for a group.
	Label string
	// Name is the name of the object.
	Name        string
	Desired     string
	Observation federation.Observation
	// Propagated reports whether, according to the member's engine, it has the present version. EngineStatus is the engine's reason
	// otherwise.
	Propagated   bool
	EngineStatus string
	// Engine is the member's engine, or "" for a member that is not registered.
	Engine federation.Engine
	// Handled reports whether the engine has handled the present version.
	Handled bool
	// SharedWith is another engine that may still write into the member, or "".
	SharedWith federation.Engine
	// Unanswered reports whether a request of the member's engine for another version, which got no answer, may change the object.
	Unanswered bool
	// WasRealized reports whether, at the last report, the unit was realized as it is wanted now, or was found changed in
	// the member.
	WasRealized bool
	// MayExist reports whether the member has had, or may have had, the object.
	MayExist bool
	// Frozen reports whether the object stays as it is, because the wanted state cannot be decided now.
	Frozen bool
	// Deferred reports whether the wanted state was not written yet, because KubeFed is at its limit, or because of the
	// group MissingGroup.
	Deferred     bool
	MissingGroup string
	// Orphan reports whether the object stays because its ProtectedResource was removed by force.
	Orphan bool
	// Wildcard reports whether the object belongs to a wildcard, which has no ProtectedResource.
	Wildcard bool
}

func (s *objectState) relevant() bool {
	if s.Desired != "" || s.Observation.Object != nil {
		return true
	}
	// Nothing is wanted and nothing exists: done, once that was observed and the engine will not create the object.
	return s.MayExist && (!s.Handled || !s.Observation.Reachable)
}

// state returns the state of an object in a member, and why: whether the member can be reached, and has the wanted revision. Whether
// the member enforces it is decided by enforcementState and auditState.
func (s *objectState) state() (v1alpha1.MemberState, message.Message) {
	o := s.Observation
	switch {
	case !o.Registered && s.Desired == "":
		return v1alpha1.MemberUnreachable, message.StateForget(o.Message, AnnotationForget, s.owner())
	case !o.Reachable:
		return v1alpha1.MemberUnreachable, o.Message
	case s.Orphan && o.Object != nil:
		return v1alpha1.MemberLeaked, message.StateOrphan()
	case s.Desired == "":
		return s.removalState()
	case o.Object == nil && s.WasRealized && !s.Deferred:
		// The deleted object contained the only record of its last writer.
		return v1alpha1.MemberDrifted, message.StateDeleted(s.fullName())
	case o.Object == nil:
		return v1alpha1.MemberPending, s.withDelay(message.StateNotThereYet(s.subject()))
	case o.Object.Revision == s.Desired && o.Object.Invalid != "":
		return v1alpha1.MemberPending, message.StateNotAccepted(s.subject(), message.Recognize(o.Object.Invalid, "rejection"))
	case o.Object.Revision == s.Desired && s.Frozen:
		return v1alpha1.MemberPending, message.StateKept()
	case o.Object.Revision == s.Desired && s.mayRevert():
		return v1alpha1.MemberPending, s.revertReason()
	case o.Object.Revision == s.Desired:
		return v1alpha1.MemberRealized, message.Message{}
	case s.changed():
		if by := o.Object.LastWriter.String(); by != "" {
			return v1alpha1.MemberDrifted, message.StateChangedBy(s.fullName(), by)
		}
		return v1alpha1.MemberDrifted, message.StateChanged(s.fullName())
	default:
		return v1alpha1.MemberPending, s.withDelay(s.outdatedMessage())
	}
}

// removalState returns the state of an object that a reachable member must not have, and why.
func (s *objectState) removalState() (v1alpha1.MemberState, message.Message) {
	switch {
	case s.Deferred:
		return v1alpha1.MemberPending, s.withDelay(message.StateToBeRemoved(s.subject()))
	case s.Observation.Object == nil:
		return v1alpha1.MemberPending, message.StateRemovalUnconfirmed()
	case !s.Handled || s.EngineStatus == federation.WaitingForRemoval:
		return v1alpha1.MemberPending, message.StateNotRemovedYet(s.subject())
	}
	return v1alpha1.MemberLeaked, message.StateLeaked(s.fullName())
}

// mayRevert reports whether an earlier version may still be written. KubeFed may write one over that of the direct engine while the member moves,
// because it decides by what it read of the record and of the member, and has not handled the present version. A work agent may, as long as it has a
// ManifestWork of the object, and the agent of the member's own engine until it has handled the present version. A request of the direct engine
// may that got no answer.
func (s *objectState) mayRevert() bool {
	return s.Unanswered || !s.Handled && (s.SharedWith != "" || s.Engine.Pulls() || s.Engine.IsKubeFed() && s.Observation.Object.WrittenDirectly)
}

// revertReason returns the reason why an earlier version may still overwrite what the member has.
func (s *objectState) revertReason() message.Message {
	switch {
	case s.Unanswered:
		return message.StateWriteUnanswered(s.subject())
	case s.SharedWith.Pulls():
		return message.StateAgentMayRevert(s.subject())
	case s.Engine.Pulls() && s.SharedWith == "":
		return message.StateAgentBehind(s.subject())
	}
	return message.StateKubefedMayRevert(s.subject())
}

// changed reports whether the object was changed in the member. For an object with a revision label, the label shows that. A
// group of addresses has no such label, because its labels must not change: it counts as changed if it was as wanted
// before, and the engine reports that it wrote the wanted state.
func (s *objectState) changed() bool {
	if o := s.Observation.Object; !s.Group || o.Label != "" {
		return o.Revision != o.Label
	}
	return s.WasRealized && s.Handled && s.Propagated
}

// withDelay adds to a message why the object is delayed: the missing group, the write queue, or the engine's status.
func (s *objectState) withDelay(what message.Message) message.Message {
	switch {
	case s.MissingGroup != "":
		return message.StateWaitsForGroup(what, s.MissingGroup)
	case s.Deferred:
		return message.StateQueued(what)
	case s.EngineStatus == "":
		return what
	}
	if s.Engine != "" && s.Engine != federation.EngineKubeFed {
		return message.StateEngineSays(what, string(s.Engine), s.EngineStatus)
	}
	return message.StateKubefedSays(what, s.EngineStatus)
}

// subject returns what a message is about: "the policy" for a unit's Cilium policy, which needs no name, and otherwise fullName.
func (s *objectState) subject() message.Message {
	if s.Label == "" && !s.Group {
		return message.ObjectThePolicy()
	}
	return s.fullName()
}

// owner returns the object on which users act for the unit.
func (s *objectState) owner() string {
	if s.Wildcard {
		return "Federated object"
	}
	return "ProtectedResource"
}

// fullName returns the kind and the name of the object for messages.
func (s *objectState) fullName() message.Message {
	switch {
	case s.Group:
		return message.ObjectGroup(s.Name)
	case s.Label == "":
		return message.ObjectPolicy(s.Name)
	}
	return message.Verbatim(s.Label)
}

// outdatedMessage says that the member has an earlier revision of the object.
func (s *objectState) outdatedMessage() message.Message {
	if s.Label == "" && !s.Group {
		return message.StateOlder()
	}
	return message.StateOlderOf(s.fullName())
}
