package protectedresource

import (
	"maps"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Members is the interface to the findings of the checks of the members.
type Members interface {
	// Unenforced returns the reason why a member would not enforce a policy whose selectors use some pod label keys, or
	// zero.
	Unenforced(cluster string, keys []string) message.Message
	// MeaningChanged returns the reason why policies that close nothing have another meaning in a member, or zero.
	MeaningChanged(cluster string) message.Message
	// HostPodProblem returns the reason why Cilium does not enforce a policy for every pod of a member with a label, or zero:
	// pods use the network of their node, or this is not known.
	HostPodProblem(cluster, key, value string) message.Message
	// MeshProblem returns the reason why Istio does not enforce a policy for every pod of a member with a label, or for every
	// client, or zero. requests reports whether the policy has rules about requests, and gateway is the Gateway whose waypoint is dedicated to the
	// resource, or "".
	MeshProblem(cluster, key, value string, requests bool, gateway string) message.Message
	// GatewayProblem returns the reason why a Gateway that a member dedicates to a resource is not suited for that, also because it does not exist,
	// or zero. known is false if it was not read.
	GatewayProblem(cluster, gateway string) (problem message.Message, known bool)
	// RequestsIncomplete reports whether HTTP rules are not enforced on some nodes of a member to which they are distributed.
	RequestsIncomplete(cluster string) bool
	// MissingLabels returns the reason why a member's identities may lack one of some label keys, or zero.
	MissingLabels(cluster string, keys []string) message.Message
	// MembersLacking returns the members whose identities may lack one of some label keys, by name.
	MembersLacking(keys []string) []memberhealth.Lack
}

// objectLabel returns the name of an object in messages; Cilium policies of the unit are just "the policy".
func objectLabel(key string) string {
	if k, name := keyedKind(key); k != objectkind.Policies()[0].Kind {
		return k.Target.Kind + " " + name
	}
	return ""
}

// dataplanes are the enforcers in the order in which their reasons are reported.
var dataplanes = []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio}

// enforcementState returns MemberRealized if a member, which has the wanted revision, also enforces it; otherwise the state
// and the reason: the dataplane's settings, missing labels or proxies, or policies of others.
func (f *facts) enforcementState(cluster string) (v1alpha1.MemberState, message.Message) {
	for _, name := range slices.Sorted(maps.Keys(f.NotEnforcing)) {
		if why := f.NotEnforcing[name][cluster]; !why.IsZero() {
			return v1alpha1.MemberPending, message.StateEnforcesNothing(why)
		}
	}
	in, read := f.Enforcement[cluster]
	if !read {
		return v1alpha1.MemberPending, message.StateEnforcesNothing(message.MemberDataplaneUnread())
	}
	if f.enforcedBy(v1alpha1.EnforcerCilium) {
		if why := f.Delay.reason(cluster); !why.IsZero() {
			return v1alpha1.MemberPending, why
		}
		if !in.Unenforced.IsZero() {
			return v1alpha1.MemberPending, message.StateEnforcesNothing(in.Unenforced)
		}
		if !f.UnmatchedRules.IsZero() {
			return v1alpha1.MemberPending, f.UnmatchedRules
		}
		if full := f.unitIn(cluster).Overfull; slices.Contains(full, cluster) || slices.Contains(full, "") {
			return v1alpha1.MemberPending, message.StateOverfull()
		}
		if !in.HostPodProblem.IsZero() {
			return v1alpha1.MemberPending, in.HostPodProblem
		}
		if in.RequestsIncomplete {
			return v1alpha1.MemberPending, message.StateRequestsIncomplete()
		}
	}
	if !in.MeshProblem.IsZero() {
		return v1alpha1.MemberPending, in.MeshProblem
	}
	if !in.ZtunnelProblem.IsZero() {
		return v1alpha1.MemberPending, in.ZtunnelProblem
	}
	if why := f.waypointProblem(cluster); !why.IsZero() {
		return v1alpha1.MemberPending, why
	}
	for _, name := range dataplanes {
		if by := in.Foreign[name].OpenedBy; by != "" {
			return v1alpha1.MemberOverridden, message.StateOpenedBy(by)
		}
	}
	for _, name := range dataplanes {
		foreign, read := in.Foreign[name]
		switch {
		case !f.enforcedBy(name):
		case !read:
			return v1alpha1.MemberPending, message.StateForeignUnknown(message.MemberForeignUnread(cluster))
		case !foreign.Unknown.IsZero():
			return v1alpha1.MemberPending, message.StateForeignUnknown(foreign.Unknown)
		}
	}
	return v1alpha1.MemberRealized, message.Message{}
}

// auditState checks whether a member applies a policy that closes nothing as written: the policy of a resource in Audit, or
// of a wildcard. Some settings make such a policy close workloads, open more than it says, or have no effect.
func (f *facts) auditState(cluster string) (v1alpha1.MemberState, message.Message) {
	in, read := f.Enforcement[cluster]
	if !read {
		return v1alpha1.MemberPending, message.StateMeaningChanged(message.MemberDataplaneUnread())
	}
	if !in.MeaningChanged.IsZero() {
		return v1alpha1.MemberPending, message.StateMeaningChanged(in.MeaningChanged)
	}
	if f.wildcard() {
		if !in.MissingSelectorLabels.IsZero() {
			return v1alpha1.MemberPending, message.StateMayMatchNothing(in.MissingSelectorLabels)
		}
		if !f.UnmatchedRules.IsZero() {
			return v1alpha1.MemberPending, f.UnmatchedRules
		}
	}
	return v1alpha1.MemberRealized, message.Message{}
}

// closedByReplaced returns the object of a dataplane that the class no longer names and that still closes a member, or "".
func (f *facts) closedByReplaced(p *plan, cluster string) string {
	for _, key := range slices.Sorted(maps.Keys(p.Desired)) {
		if kind, name := keyedKind(key); p.Desired[key][cluster] != "" && !f.enforcedByKind(kind) {
			return kind.Target.Kind + " " + name
		}
	}
	return ""
}

// selectorKeys returns the label keys by which a unit selects the pods that it protects, sorted.
func selectorKeys(u *policy.Unit) []string {
	keys := append(slices.Clone(u.ForeignKeys), u.LabelKey)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// subjectKeys returns the label keys by which the rules of a unit select their peers, sorted: of all rules, or of the
// denies.
func subjectKeys(u *policy.Unit, deniesOnly bool) []string {
	var keys []string
	for i := range u.Rules {
		if deniesOnly && u.Rules[i].Effect != policy.Deny {
			continue
		}
		for _, s := range u.Rules[i].Subjects {
			keys = append(keys, s.LabelKey)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// hasHTTPStatements reports whether a statement of the unit is about HTTP requests.
func hasHTTPStatements(u *policy.Unit) bool {
	return slices.ContainsFunc(u.Statements, func(st policy.UnitStatement) bool {
		return slices.ContainsFunc(st.Actions, func(a policy.UnitAction) bool { return len(a.HTTP) > 0 })
	})
}

// hasHTTPRules reports whether a rule of the unit matches HTTP requests. Such rules are rendered only in Enforce.
func hasHTTPRules(u *policy.Unit) bool {
	return slices.ContainsFunc(u.Rules, func(r policy.Rule) bool { return len(r.HTTP) > 0 })
}

// maxNamedMembers is the number of members that a message lists.
const maxNamedMembers = 5

// membersOf lists members with the reason of the first: "m1 (why) and 7 more members: m2, m3, m4, m5 and others".
func membersOf(lacks []memberhealth.Lack) message.Message {
	first, more := lacks[0], lacks[1:]
	if len(more) == 0 {
		return message.LackOne(first.Member, first.Reason)
	}
	var names []string
	for _, l := range more[:min(len(more), maxNamedMembers-1)] {
		names = append(names, l.Member)
	}
	if len(more) > len(names) {
		return message.LackMany(first.Member, first.Reason, len(more), names)
	}
	return message.LackSeveral(first.Member, first.Reason, len(more), names)
}
