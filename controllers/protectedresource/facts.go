package protectedresource

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// facts is the input of all decisions about one resource. It consists of values that were read once, before the decisions,
// so that these are pure functions of it. A member that is missing in one of the maps below counts as unknown there.
type facts struct {
	// Resource is an exact name, or the wildcard of a unit that only allows.
	Resource string
	Now      time.Time
	// RequestedAt is the time of the oldest unanswered request for a change of the unit; zero if there is none.
	RequestedAt time.Time
	View        *policycache.View
	// Changes are the traced changes of the resource's policies. They affect no decision.
	Changes []tracedChange
	// Objects are the ProtectedResources with the name of the resource.
	Objects []*v1alpha1.ProtectedResource

	// Unit is set if Wanted, which reports whether some member must have it.
	Wanted bool
	Unit   policy.Unit
	// Settled are the versions of the unit in members in which the change of its class has not begun.
	Settled []settledUnit
	// Rendered is the unit in the terms of its dataplanes, and Refused what could not be expressed. RenderedIn lists, by key, the members
	// that have an object, if members have different versions of the unit and not all versions have it.
	Rendered   []enforcer.Rendered
	RenderedIn map[string][]string
	Refused    []policy.Refusal
	// Unenforced lists what a dataplane leaves open regardless of the statements.
	Unenforced []message.Message
	// ReplacedRenderings is the unit in the terms of dataplanes that its class no longer names and that still close a member.
	ReplacedRenderings []enforcer.Rendered
	// Delay contains the members in which Enforce is delayed.
	Delay enforcementDelay
	// UnrenderedKinds are the kinds for which nothing could be rendered although the class requires it: their existing objects
	// stay.
	UnrenderedKinds []federation.Kind
	// NotEnforcing contains, by enforcer and member, the reason why the member enforces nothing that it is given.
	NotEnforcing map[v1alpha1.EnforcerName]map[string]message.Message
	// Groups contains the address groups that the unit refers to, and the groups that its rules select but that must be removed.
	Groups []externalgroup.Object
	// Subjects are the external subjects whose groups the unit refers to.
	Subjects []string
	// Open is the unit without rules in Audit, by object name: the step of a resource before its removal in Observe,
	// and of a wildcard after its last statement.
	Open map[string]enforcer.Rendered
	// Existing are the Federated objects of the resource.
	Existing []*federation.Object
	// Placement are the members that the class selects, sorted. Placed reports whether they are known.
	Placement []string
	Placed    bool
	// Clusters are the registered members, sorted by name.
	Clusters []federation.Cluster
	// Problem, if set, prevents the unit from being written.
	Problem *statuscache.Problem

	// StatusMembers are the members that the statuses of the ProtectedResources list.
	StatusMembers []string
	// LastReport is the last report of this process, if any, and LastStates the last reported state of each member, by
	// this process or its predecessor.
	LastReport statuscache.Report
	LastStates map[string]v1alpha1.ClusterState

	// Observed are the unit's objects in the members.
	Observed observations
	// ObservedGroups contains, for each member in which the unit may be placed, the groups of Groups that the member does
	// not have as wanted, or that another engine wrote into a member of KubeFed. A group that is not listed was read back with the wanted revision.
	ObservedGroups map[string]map[string]federation.Observation
	// Enforcement contains what decides beside the objects, for each member that has an object of the unit.
	Enforcement map[string]enforcement
	// MissingLabels contains, for each member that the unit does not close yet, the reason why its identities may lack a
	// label by which the unit selects pods or their peers, or zero.
	MissingLabels map[string]message.Message
	// UnmatchedRules names the members whose pods the rules of the unit may not match, or is zero.
	UnmatchedRules message.Message
	// Waypoints contains what members declare about the waypoint of the resource, by member.
	Waypoints map[string]istio.Dedication
	// WaypointNotAccepted contains, by member, the reason why pods do not accept the waypoint of the resource yet.
	WaypointNotAccepted map[string]message.Message
	// GatewayUsers contains, by member, an object of another dedication that applies to the waypoint of the resource there, or may do so.
	GatewayUsers map[string]gatewayUser
	// Nodes contains what is known about the nodes of the members that run acp-node.
	Nodes map[string]*federation.NodeView
	// Marks are the downgrade marks that were read in members.
	Marks map[string]*guard.DowngradeMark
}

// wildcard reports whether the unit belongs to a wildcard. Such a unit never closes anything, has no ProtectedResource,
// and is removed with its last statement.
func (f *facts) wildcard() bool { return strings.HasSuffix(f.Resource, "*") }

// released reports whether no ProtectedResource of the name requires protection.
func (f *facts) released() bool {
	return !slices.ContainsFunc(f.Objects, func(o *v1alpha1.ProtectedResource) bool { return o.Spec.RequiresProtection() })
}

// downgraded returns a message if the member was downgraded manually, or zero.
func (f *facts) downgraded(cluster string) message.Message {
	mark := f.Marks[cluster]
	if c := f.cluster(cluster); mark == nil && c != nil {
		mark = c.DowngradeMark
	}
	if mark == nil {
		return message.Message{}
	}
	return message.MemberDowngraded(cluster, mark.Message())
}

// cluster returns the registration of a member, or nil.
func (f *facts) cluster(name string) *federation.Cluster {
	i, found := slices.BinarySearchFunc(f.Clusters, name, func(c federation.Cluster, name string) int { return strings.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return &f.Clusters[i]
}

// suspended reports whether propagation to a member is suspended, whichever its engine, or will be: the member is quarantined or downgraded.
func (f *facts) suspended(cluster string) bool {
	return !f.quarantined(cluster).IsZero() || !f.downgraded(cluster).IsZero()
}

// quarantined returns the reason why propagation is suspended to a member that was not downgraded, or zero.
func (f *facts) quarantined(cluster string) message.Message {
	if c := f.cluster(cluster); c != nil && c.Quarantined && c.DowngradeMark == nil {
		return message.MemberQuarantined(cluster, c.QuarantineReason)
	}
	return message.Message{}
}

// placeable returns the targets in which an object can be placed now: in a suspended member, the present placement of the object does not change.
func (f *facts) placeable(e *federation.Object, targets []string) []string {
	return slices.DeleteFunc(slices.Clone(targets), func(c string) bool {
		return f.suspended(c) && (e == nil || !slices.Contains(e.Placement, c))
	})
}

// mode returns the effective mode in a member, and the base mode for "". A wildcard has none.
func (f *facts) mode(cluster string) v1alpha1.Mode {
	if f.wildcard() {
		return ""
	}
	return f.View.EffectiveMode(f.Resource, cluster, f.Now)
}

// targets returns the placed members in which the resource is in Audit or Enforce; for a wildcard, all placed members.
func (f *facts) targets() []string {
	if f.wildcard() {
		return f.Placement
	}
	return slices.DeleteFunc(slices.Clone(f.Placement), func(c string) bool { return f.mode(c) == v1alpha1.ModeObserve })
}

// targetsOf returns those of some members that get objects of a kind: a member that declares that it has no Istio gets none of Istio's.
func (f *facts) targetsOf(kind federation.Kind, members []string) []string {
	if kind != kindOf(v1alpha1.EnforcerIstio) {
		return members
	}
	return slices.DeleteFunc(slices.Clone(members), func(c string) bool {
		registered := f.cluster(c)
		return registered != nil && registered.WithoutIstio()
	})
}

// unprotected returns the members in which the resource is in Enforce and that get no object of the unit, because they lack what enforces it.
func (f *facts) unprotected() []string {
	if !f.Wanted || f.enforcedBy(v1alpha1.EnforcerCilium) || !f.enforcedBy(v1alpha1.EnforcerIstio) {
		return nil
	}
	targets := f.targets()
	served := f.targetsOf(kindOf(v1alpha1.EnforcerIstio), targets)
	return slices.DeleteFunc(slices.Clone(targets), func(c string) bool {
		return slices.Contains(served, c) || f.mode(c) != v1alpha1.ModeEnforce
	})
}

// firstGroups reports whether the unit refers to a group that it did not refer to at the last report.
func (f *facts) firstGroups() bool {
	return slices.ContainsFunc(f.Groups, func(g externalgroup.Object) bool { return !slices.Contains(f.LastReport.Groups, g.Name) })
}

// foldWildcards removes wildcard units for dataplanes other than Cilium, which fold the allows of wildcards into the
// units of the resources that they cover.
func (f *facts) foldWildcards() {
	if !f.Wanted {
		return
	}
	if f.wildcard() {
		f.Wanted = f.enforcedBy(v1alpha1.EnforcerCilium)
		return
	}
	from := slices.Clone(f.Unit.From)
	for i := range f.Unit.Statements {
		if ref := f.Unit.Statements[i].Ref; !slices.Contains(from, ref) {
			from = append(from, ref)
		}
	}
	slices.SortFunc(from, func(a, b policy.Ref) int {
		return cmp.Or(strings.Compare(a.Policy, b.Policy), strings.Compare(a.SID, b.SID))
	})
	f.Unit.From = from
}

// enforcedBy reports whether the unit's class names an enforcer.
func (f *facts) enforcedBy(name v1alpha1.EnforcerName) bool {
	return slices.Contains(f.Unit.Enforcers, name) || len(f.Unit.Enforcers) == 0 && name == v1alpha1.EnforcerCilium
}

// kinds are the kinds of the enforcers' objects.
var kinds = policyKinds()

func policyKinds() map[v1alpha1.EnforcerName]federation.Kind {
	out := map[v1alpha1.EnforcerName]federation.Kind{}
	for _, e := range objectkind.Policies() {
		out[e.Enforcer] = e.Kind
	}
	return out
}

func kindOf(name v1alpha1.EnforcerName) federation.Kind { return kinds[name] }

// renderedKind returns the kind that distributes a rendered object.
func renderedKind(r *enforcer.Rendered) federation.Kind {
	for _, k := range kinds {
		if k.Target.Kind == r.Object.Kind {
			return k
		}
	}
	return objectkind.Policies()[0].Kind
}

// keyedKind returns the kind of the object with a key, and the object's name.
func keyedKind(key string) (k federation.Kind, name string) {
	all := objectkind.Policies()
	for _, e := range all[1:] {
		if name, ok := strings.CutPrefix(key, e.Key("")); ok {
			return e.Kind, name
		}
	}
	return all[0].Kind, key
}

func renderedKey(r *enforcer.Rendered) string { return renderedKind(r).Key(r.Object.Name) }

// objectKeys returns the keys of the unit's objects, or of the first one of each kind.
func objectKeys(resource string) []string {
	name := objectName(resource)
	var out []string
	for _, e := range objectkind.Policies() {
		out = append(out, e.Key(name))
	}
	return out
}

// objectName returns the name of the unit's first object, in the host and in the members.
func objectName(resource string) string { return v1alpha1.ObjectPrefix + policy.UnitID(resource) }
