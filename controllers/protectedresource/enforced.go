package protectedresource

import (
	"maps"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Members returns what was found in the members themselves, in addition to what is pushed to them.
type Members interface {
	// Unenforced returns the reason why a member would not enforce a policy whose selectors use some pod label keys, or
	// zero.
	Unenforced(cluster string, keys []string) message.Message
	// MeaningChanged returns the reason why policies that close nothing have another meaning in a member, or "".
	MeaningChanged(cluster string) message.Message
	// HostPods lists the pods of a member that have a label and use the network of their node, or returns "".
	HostPods(cluster, key, value string) message.Message
	// MissingLabels returns the reason why a member's identities may lack one of some label keys, or "".
	MissingLabels(cluster string, keys []string) message.Message
	// MembersLacking returns the members whose identities may lack one of some label keys, by name.
	MembersLacking(keys []string) []memberhealth.Lack
}

// objectLabel returns the name of an object in messages; Cilium policies of the unit are just "the policy".
func objectLabel(key string) string {
	if name, ok := strings.CutPrefix(key, federation.IstioPolicy.Key("")); ok {
		return federation.IstioPolicy.Target.Kind + " " + name
	}
	return ""
}

// enforcementState returns MemberRealized, or the state and reason if the policy that was read back is not in effect in the
// member for another reason: the dataplane's settings, missing labels, or policies of others.
func (f *facts) enforcementState(cluster string) (v1alpha1.MemberState, message.Message) {
	for _, name := range slices.Sorted(maps.Keys(f.NotEnforcing)) {
		if why := f.NotEnforcing[name][cluster]; !why.IsZero() {
			return v1alpha1.MemberPending, message.StateEnforcesNothing(why)
		}
	}
	if f.enforcedBy(v1alpha1.EnforcerCilium) {
		if why := f.delay.reason(cluster); !why.IsZero() {
			return v1alpha1.MemberPending, why
		}
		if why := f.Members.Unenforced(cluster, selectorKeys(&f.Unit)); !why.IsZero() {
			return v1alpha1.MemberPending, message.StateEnforcesNothing(why)
		}
		if why := f.unmatchedRules(); !why.IsZero() {
			return v1alpha1.MemberPending, why
		}
		if slices.Contains(f.Unit.Overfull, cluster) || slices.Contains(f.Unit.Overfull, "") {
			return v1alpha1.MemberPending, message.StateOverfull()
		}
		if pods := f.Members.HostPods(cluster, f.Unit.LabelKey, f.Unit.LabelValue); !pods.IsZero() {
			return v1alpha1.MemberPending, message.StateHostPods(pods)
		}
	}
	for _, name := range []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio} {
		if !f.enforcedBy(name) {
			continue
		}
		if by := f.OpenedBy(name, cluster, f.Unit.LabelKey, f.Unit.LabelValue); by != "" {
			return v1alpha1.MemberOverridden, message.StateOpenedBy(by)
		}
	}
	for _, name := range []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio} {
		if !f.enforcedBy(name) {
			continue
		}
		if why := f.ForeignUnknown(name, cluster); !why.IsZero() {
			return v1alpha1.MemberPending, message.StateForeignUnknown(why)
		}
	}
	return v1alpha1.MemberRealized, message.Message{}
}

// auditState checks whether a member applies a policy that closes nothing as written: the policy of a resource in Audit, or
// of a wildcard. Some settings make such a policy close workloads, open more than it says, or have no effect.
func (f *facts) auditState(cluster string) (v1alpha1.MemberState, message.Message) {
	if f.enforcedBy(v1alpha1.EnforcerCilium) {
		if why := f.Members.MeaningChanged(cluster); !why.IsZero() {
			return v1alpha1.MemberPending, message.StateMeaningChanged(why)
		}
	}
	if f.wildcard() {
		if why := f.Members.MissingLabels(cluster, selectorKeys(&f.Unit)); !why.IsZero() {
			return v1alpha1.MemberPending, message.StateMayMatchNothing(why)
		}
		if why := f.unmatchedRules(); !why.IsZero() {
			return v1alpha1.MemberPending, why
		}
	}
	return v1alpha1.MemberRealized, message.Message{}
}

// closedByReplaced returns the object of a dataplane that the class no longer names and that still closes a member, or "".
func (f *facts) closedByReplaced(p *plan, cluster string) string {
	for _, key := range slices.Sorted(maps.Keys(p.Desired)) {
		kind := federation.CiliumPolicy
		if objectLabel(key) != "" {
			kind = federation.IstioPolicy
		}
		if p.Desired[key][cluster] != "" && !f.enforcedByKind(kind) {
			return kind.Target.Kind + " " + strings.TrimPrefix(key, kind.Key(""))
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

// unmatchedRules returns the members whose pods the rules of the unit may not match, because identities there lack a label
// that the rules use, or zero. The result is the same for every member of the unit, because a pod may connect from any
// member to any other. An allow that may not match can only refuse too much, so for members whose identities are not
// known only denies count.
func (f *facts) unmatchedRules() message.Message {
	if f.sources == nil {
		lacks := slices.DeleteFunc(f.Members.MembersLacking(subjectKeys(&f.Unit, false)), func(l memberhealth.Lack) bool { return l.Unknown })
		for _, l := range f.Members.MembersLacking(subjectKeys(&f.Unit, true)) {
			if !slices.ContainsFunc(lacks, func(k memberhealth.Lack) bool { return k.Member == l.Member }) {
				lacks = append(lacks, l)
			}
		}
		var why message.Message
		if len(lacks) > 0 {
			why = message.StateRulesMayNotMatch(membersOf(lacks))
		}
		f.sources = &why
	}
	return *f.sources
}

// maxNamedMembers is the number of members that a message lists.
const maxNamedMembers = 5

// membersOf lists members with the reason of the first: "m1 (why) and 7 more members: m2, m3, m4, m5 and others".
func membersOf(lacks []memberhealth.Lack) message.Message {
	first, more := lacks[0], lacks[1:]
	if len(more) == 0 {
		return message.LackOne(first.Member, first.Why)
	}
	var names []string
	for _, l := range more[:min(len(more), maxNamedMembers-1)] {
		names = append(names, l.Member)
	}
	if len(more) > len(names) {
		return message.LackMany(first.Member, first.Why, len(more), names)
	}
	return message.LackSeveral(first.Member, first.Why, len(more), names)
}
