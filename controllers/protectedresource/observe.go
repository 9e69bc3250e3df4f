package protectedresource

import (
	"maps"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// observations are the states of objects in members, by object and member, at the time when they were read.
type observations map[string]map[string]federation.Observation

// of returns the state of an object in a member. An object that was not read has an unknown state.
func (o observations) of(cluster, object string) federation.Observation {
	if seen, read := o[object][cluster]; read {
		return seen
	}
	return unread(cluster)
}

// present reports whether a member has one of the objects.
func (o observations) present(cluster string) bool {
	for _, members := range o {
		if members[cluster].Object != nil {
			return true
		}
	}
	return false
}

// unread is the observation of something that was not read.
func unread(cluster string) federation.Observation {
	return federation.Observation{Unknown: true, Message: message.MemberNotContacted(cluster)}
}

// enforcement contains the facts about a member that decide, beside its objects, whether the objects have their effect there.
type enforcement struct {
	// Unenforced is the reason why Cilium would not enforce a policy with the unit's selectors, or zero.
	Unenforced message.Message
	// MeaningChanged is the reason why a policy of Cilium that closes nothing has another meaning, or zero.
	MeaningChanged message.Message
	// MissingSelectorLabels is the reason why identities may lack a label by which the unit selects pods, or zero.
	MissingSelectorLabels message.Message
	// HostPodProblem is the reason why Cilium does not enforce the policy for every pod of the resource, or zero.
	HostPodProblem message.Message
	// RequestsIncomplete reports whether the unit has HTTP rules that are not enforced on some nodes.
	RequestsIncomplete bool
	// MeshProblem is the reason why Istio does not enforce the policy for every pod of the resource, or for every client, or zero.
	MeshProblem message.Message
	// ZtunnelProblem is the reason why ztunnel does not get the policy as it is written, or zero.
	ZtunnelProblem message.Message
	// GatewayProblem is the reason why the Gateway that the member dedicates to the resource is not suited for that, or zero.
	GatewayProblem message.Message
	// GatewayRead reports whether the Gateway was read, so that an empty GatewayProblem means that the Gateway is suited.
	GatewayRead bool
	// Foreign describes, for each dataplane of the unit, what policies open that ACP does not manage.
	Foreign map[v1alpha1.EnforcerName]foreignPolicies
}

// foreignPolicies describes what policies that ACP does not manage open of a resource for one dataplane in one member.
type foreignPolicies struct {
	// OpenedBy is the name of a policy that opens the resource, or "".
	OpenedBy string
	// Unknown is the reason why it is not known whether there is such a policy, or zero.
	Unknown message.Message
}

// observedGroup returns the state of a group in a member.
func (f *facts) observedGroup(cluster string, g *externalgroup.Object) federation.Observation {
	kept, read := f.ObservedGroups[cluster]
	if !read {
		return unread(cluster)
	}
	if seen, ok := kept[g.Name]; ok {
		return seen
	}
	seen := federation.Observation{Registered: true, Reachable: true}
	if g.Revision != "" {
		seen.Object = &federation.Observed{Name: g.Name, Revision: g.Revision}
	}
	return seen
}

// asWanted reports whether a member has a group with the wanted revision, or does not have one that has to be removed.
func asWanted(g *externalgroup.Object, seen federation.Observation) bool {
	switch {
	case !seen.Reachable:
		return false
	case g.Revision == "" || seen.Object == nil:
		return g.Revision == "" && seen.Object == nil
	}
	return seen.Object.Revision == g.Revision && seen.Object.Invalid == ""
}

// observe reads what the members have of the unit, after the unit was rendered.
func (r *Reconciler) observe(f *facts) {
	placements := slices.Clone(f.Placement)
	members := slices.Clone(f.StatusMembers)
	for i := range f.Clusters {
		members = append(members, f.Clusters[i].Name)
	}
	for _, e := range f.Existing {
		placements, members = append(placements, e.Placement...), append(members, e.EverPlaced()...)
	}
	members, placements = sortedSet(append(members, placements...)), sortedSet(placements)
	f.Observed = observations{}
	for _, key := range r.observedKeys(f) {
		f.Observed[key] = make(map[string]federation.Observation, len(members))
		for _, c := range members {
			f.Observed[key][c] = r.Fleet.Observe(c, key)
		}
	}
	f.ObservedGroups = r.observeGroups(f, placements)
	r.observeNodes(f, members)
	f.GatewayUsers = f.gatewayUsers(r.Federated, r.Fleet.Observe)
	f.Marks = map[string]*guard.DowngradeMark{}
	f.Enforcement = map[string]enforcement{}
	for _, c := range members {
		if mark := r.mark(c); mark != nil {
			f.Marks[c] = mark
		}
		if f.Wanted && f.Observed.present(c) {
			f.Enforcement[c] = r.enforcementIn(f, c)
		}
	}
}

// observedKeys returns the keys of the objects that the unit has, gets, or may have had.
func (r *Reconciler) observedKeys(f *facts) []string {
	keys := []string{objectKeys(f.Resource)[0]}
	for _, e := range f.Existing {
		keys = append(keys, e.Key())
	}
	for _, rendered := range [][]enforcer.Rendered{f.Rendered, f.ReplacedRenderings, slices.Collect(maps.Values(f.Open))} {
		for i := range rendered {
			keys = append(keys, renderedKey(&rendered[i]))
		}
	}
	for _, key := range objectKeys(f.Resource)[1:] {
		// Usually no member has an object of the other kinds, and its absence need not be recorded member by member.
		if slices.ContainsFunc(f.Clusters, func(c federation.Cluster) bool { return r.Fleet.Observe(c.Name, key).Object != nil }) {
			keys = append(keys, key)
		}
	}
	return sortedSet(keys)
}

// observeGroups reads the groups of the unit in members. A group that is as wanted is kept, too, if the member's engine is KubeFed and another
// engine wrote it: KubeFed may still write an earlier version over it (see objectState.mayRevert).
func (r *Reconciler) observeGroups(f *facts, members []string) map[string]map[string]federation.Observation {
	if len(f.Groups) == 0 {
		return nil
	}
	out := make(map[string]map[string]federation.Observation, len(members))
	for _, c := range members {
		kept, kubefed := map[string]federation.Observation{}, f.engineOf(c).IsKubeFed()
		for i := range f.Groups {
			seen := r.Groups.Fleet.Observe(c, f.Groups[i].Name)
			if !asWanted(&f.Groups[i], seen) || kubefed && seen.Object != nil && seen.Object.WrittenDirectly {
				kept[f.Groups[i].Name] = seen
			}
		}
		out[c] = kept
	}
	return out
}

// mark returns the downgrade mark that was read in a member, or nil.
func (r *Reconciler) mark(cluster string) *guard.DowngradeMark {
	if r.Mark == nil {
		return nil
	}
	return r.Mark(cluster)
}

// enforcementIn reads what decides in a member beside the objects.
func (r *Reconciler) enforcementIn(f *facts, cluster string) enforcement {
	e := enforcement{Foreign: map[v1alpha1.EnforcerName]foreignPolicies{}}
	if f.enforcedBy(v1alpha1.EnforcerCilium) {
		u := f.unitIn(cluster)
		keys := selectorKeys(u)
		e.Unenforced, e.MeaningChanged = r.Members.Unenforced(cluster, keys), r.Members.MeaningChanged(cluster)
		e.HostPodProblem = r.Members.HostPodProblem(cluster, f.Unit.LabelKey, f.Unit.LabelValue)
		e.RequestsIncomplete = hasHTTPRules(u) && r.Members.RequestsIncomplete(cluster)
		if f.wildcard() {
			e.MissingSelectorLabels = r.Members.MissingLabels(cluster, keys)
		}
	}
	if f.enforcedBy(v1alpha1.EnforcerIstio) {
		gateway := f.waypointIn(cluster).Gateway
		e.MeshProblem = r.Members.MeshProblem(cluster, f.Unit.LabelKey, f.Unit.LabelValue, hasHTTPStatements(f.unitIn(cluster)), gateway)
		e.ZtunnelProblem = f.ztunnelProblem(cluster)
		if gateway != "" {
			e.GatewayProblem, e.GatewayRead = r.Members.GatewayProblem(cluster, gateway)
		}
	}
	for _, name := range dataplanes {
		if f.enforcedBy(name) {
			e.Foreign[name] = foreignPolicies{OpenedBy: r.OpenedBy(name, cluster, f.Unit.LabelKey, f.Unit.LabelValue), Unknown: r.ForeignUnknown(name, cluster)}
		}
	}
	if of := e.Foreign[v1alpha1.EnforcerIstio]; of.OpenedBy == "" && f.enforcedBy(v1alpha1.EnforcerIstio) {
		if gateway := f.waypointIn(cluster).Gateway; gateway != "" {
			of.OpenedBy = r.OpenedBy(v1alpha1.EnforcerIstio, cluster, federation.WaypointKey, gateway)
			e.Foreign[v1alpha1.EnforcerIstio] = of
		}
	}
	if of := e.Foreign[v1alpha1.EnforcerCilium]; of.OpenedBy == "" && f.enforcedBy(v1alpha1.EnforcerCilium) {
		of.OpenedBy = r.foreignGroup(f, cluster)
		e.Foreign[v1alpha1.EnforcerCilium] = of
	}
	return e
}

// ztunnelProblem returns the reason why ztunnel does not get the policies of the unit as they are written, by what istiod reports in a member
// that declares ambient, or zero. What istiod did not report counts as not accepted.
func (f *facts) ztunnelProblem(cluster string) message.Message {
	for i := range f.Rendered {
		key := renderedKey(&f.Rendered[i])
		status, accepted := f.ztunnelStatus(cluster, key)
		switch {
		case accepted:
			continue
		case !f.inAmbient(cluster):
			return message.Message{}
		case status.Problem != "":
			return message.StateZtunnelIncomplete(objectLabel(key), message.Verbatim(status.Problem))
		}
		return message.StateZtunnelUnreported(objectLabel(key))
	}
	return message.Message{}
}

// ztunnelStatus returns what istiod reports for ztunnel about an object in a member. accepted reports whether ztunnel gets the object as the member
// has it, or the object is not there, or is not Istio's.
func (f *facts) ztunnelStatus(cluster, key string) (status istio.ZtunnelStatus, accepted bool) {
	seen := f.Observed.of(cluster, key).Object
	if objectLabel(key) == "" || seen == nil {
		return istio.ZtunnelStatus{}, true
	}
	return seen.Ztunnel, seen.Ztunnel == istio.ZtunnelStatus{Reported: true}
}

// inAmbient reports whether a member declares that ztunnel enforces there.
func (f *facts) inAmbient(cluster string) bool {
	return f.declared(cluster, string(istio.Ambient)).Dataplane == istio.Ambient
}

// declared returns what a member declares about its Istio, or zero if the declaration cannot be parsed or does not contain a text: most
// declarations are not parsed for each unit.
func (f *facts) declared(cluster, text string) istio.Capabilities {
	c := f.cluster(cluster)
	if c == nil || !strings.Contains(c.Istio, text) {
		return istio.Capabilities{}
	}
	declared, err := istio.ParseCapabilities(c.Istio)
	if err != nil {
		return istio.Capabilities{}
	}
	return declared
}

// foreignGroup returns an address group of others in a member whose addresses the unit allows, because a rule about a whole class selects
// it; "" if there is none.
func (r *Reconciler) foreignGroup(f *facts, cluster string) string {
	if r.GroupInClass == nil {
		return ""
	}
	for _, rules := range [][]policy.Rule{f.Unit.Rules, f.Unit.Inherited} {
		for i := range rules {
			if rules[i].Effect != policy.Allow {
				continue
			}
			for _, class := range rules[i].ExternalClasses {
				if name := r.GroupInClass(cluster, cilium.LabelClass(class)); name != "" {
					return federation.CiliumGroup.Target.Kind + " " + name
				}
			}
		}
	}
	return ""
}

// unmatchedRules returns the members whose pods the rules of the unit may not match, because identities there lack a label
// that the rules use, or zero. The result is the same for every member of the unit, because a pod may connect from any
// member to any other. An allow that may not match can only refuse too much, so for members whose identities are not
// known only denies count.
func (r *Reconciler) unmatchedRules(u *policy.Unit) message.Message {
	lacks := slices.DeleteFunc(r.Members.MembersLacking(subjectKeys(u, false)), func(l memberhealth.Lack) bool { return l.Unknown })
	for _, l := range r.Members.MembersLacking(subjectKeys(u, true)) {
		if !slices.ContainsFunc(lacks, func(k memberhealth.Lack) bool { return k.Member == l.Member }) {
			lacks = append(lacks, l)
		}
	}
	if len(lacks) == 0 {
		return message.Message{}
	}
	return message.StateRulesMayNotMatch(membersOf(lacks))
}

// missingLabels returns, for each of some members, the reason why its identities may lack a label by which the unit selects
// pods or their peers, or zero.
func (r *Reconciler) missingLabels(u *policy.Unit, members []string) map[string]message.Message {
	keys := slices.Concat(selectorKeys(u), subjectKeys(u, false))
	out := make(map[string]message.Message, len(members))
	for _, c := range members {
		out[c] = r.Members.MissingLabels(c, keys)
	}
	return out
}

// lastStates returns the first state of each member in some lists.
func lastStates(lists ...[]v1alpha1.ClusterState) map[string]v1alpha1.ClusterState {
	out := map[string]v1alpha1.ClusterState{}
	for _, l := range lists {
		for i := range l {
			if _, had := out[string(l[i].Name)]; !had {
				out[string(l[i].Name)] = l[i]
			}
		}
	}
	return out
}

func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
