package protectedresource

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/condition"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// Members tells what was found in the members themselves, beside what is pushed to them.
type Members interface {
	// Unenforced returns why a member would not enforce a policy whose selectors use some pod label keys; "": it would.
	Unenforced(cluster string, keys []string) string
	// Misread returns why policies that close nothing mean something else in a member than they say; "": they do not.
	Misread(cluster string) string
	// HostPods names the pods of a member that have a label and use the network of their node; "": there are none.
	HostPods(cluster, key, value string) string
	// Takes returns why a member's identities may lack one of some label keys; "": they have all of them.
	Takes(cluster string, keys []string) string
	// Without returns the members whose identities may lack one of some label keys, by name.
	Without(keys []string) []memberhealth.Lack
}

// what an object is called beside the unit's Cilium policies, which are just the policy.
func what(key string) string {
	if name, ok := strings.CutPrefix(key, federation.IstioPolicy.Key("")); ok {
		return federation.IstioPolicy.Target.Kind + " " + name
	}
	return ""
}

// enforcedIn tells whether what was read back from a member is all that decides there.
func (f *facts) enforcedIn(cluster string) (v1alpha1.MemberState, string) {
	const nothing = "the policy is there, and the member enforces nothing of it: "
	for _, name := range slices.Sorted(maps.Keys(f.Lacking)) {
		if why := f.Lacking[name][cluster]; why != "" {
			return v1alpha1.MemberPending, condition.Truncate(nothing + why)
		}
	}
	if f.enforcedBy(v1alpha1.EnforcerCilium) {
		if why := f.waiting.why(cluster); why != "" {
			return v1alpha1.MemberPending, condition.Truncate(why)
		}
		if why := f.Members.Unenforced(cluster, selectorKeys(&f.Unit)); why != "" {
			return v1alpha1.MemberPending, condition.Truncate(nothing + why)
		}
		if why := f.unmatched(); why != "" {
			return v1alpha1.MemberPending, why
		}
		if slices.Contains(f.Unit.Overfull, cluster) || slices.Contains(f.Unit.Overfull, "") {
			return v1alpha1.MemberPending, condition.Truncate("the policy is there, and its denies need more entries than the policy map of a workload has room for, so some of them are not in force: deny fewer subjects or ports")
		}
		if pods := f.Members.HostPods(cluster, f.Unit.LabelKey, f.Unit.LabelValue); pods != "" {
			return v1alpha1.MemberPending, condition.Truncate("the policy is there, and pods of the resource stay open, because they use the network of their node, where no policy selects them: " + pods)
		}
	}
	for _, name := range []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio} {
		if !f.enforcedBy(name) {
			continue
		}
		if by := f.Opened(name, cluster, f.Unit.LabelKey, f.Unit.LabelValue); by != "" {
			const lets = "%s is not of ACP and lets more in: ask who wrote it to remove it, and ask for what it is needed for as grants"
			return v1alpha1.MemberOverridden, condition.Truncate(fmt.Sprintf(lets, by))
		}
	}
	for _, name := range []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio} {
		if !f.enforcedBy(name) {
			continue
		}
		if why := f.Unjudged(name, cluster); why != "" {
			return v1alpha1.MemberPending, condition.Truncate("the policy is there, and it is not known whether policies of others let more in: " + why)
		}
	}
	return v1alpha1.MemberRealized, ""
}

// readIn reports whether a member reads a policy that closes nothing as it says: that of a resource in Audit, or of a wildcard.
// Some settings make such a policy close workloads, open more than it says, or do nothing.
func (f *facts) readIn(cluster string) (v1alpha1.MemberState, string) {
	if f.enforcedBy(v1alpha1.EnforcerCilium) {
		if why := f.Members.Misread(cluster); why != "" {
			return v1alpha1.MemberPending, condition.Truncate("the policy is there, and the member does not do what it says: " + why)
		}
	}
	if f.wildcard() {
		if why := f.Members.Takes(cluster, selectorKeys(&f.Unit)); why != "" {
			return v1alpha1.MemberPending, condition.Truncate("the policy is there, and may match nothing: " + why)
		}
		if why := f.unmatched(); why != "" {
			return v1alpha1.MemberPending, why
		}
	}
	return v1alpha1.MemberRealized, ""
}

// retainedIn says that an object of a dataplane that the class does not name any more still closes a member; "": none does.
func (f *facts) retainedIn(p *plan, cluster string) string {
	for _, key := range slices.Sorted(maps.Keys(p.Desired)) {
		kind := federation.CiliumPolicy
		if what(key) != "" {
			kind = federation.IstioPolicy
		}
		if p.Desired[key][cluster] != "" && !f.enforcedByKind(kind) {
			return kind.Target.Kind + " " + strings.TrimPrefix(key, kind.Key("")) + " still closes it, because what replaces it is not enforced: "
		}
	}
	return ""
}

// selectorKeys are the label keys by which a unit selects the pods that it protects, sorted.
func selectorKeys(u *policy.Unit) []string {
	keys := append(slices.Clone(u.ForeignKeys), u.LabelKey)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// subjectKeys are the label keys by which the rules of a unit know their peers, sorted: of all rules, or of the denies.
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

// unmatched says which members' pods the rules of the unit may not match, because a label that the rules know them by is not
// in identities there; "": the rules match those of every member. It is the same for every member that the unit is in,
// since a pod may connect from each member to each. An allow that may not match refuses too much at worst, so where
// nobody knows only denies count.
func (f *facts) unmatched() string {
	if f.sources == nil {
		lacks := slices.DeleteFunc(f.Members.Without(subjectKeys(&f.Unit, false)), func(l memberhealth.Lack) bool { return l.Unknown })
		for _, l := range f.Members.Without(subjectKeys(&f.Unit, true)) {
			if !slices.ContainsFunc(lacks, func(k memberhealth.Lack) bool { return k.Member == l.Member }) {
				lacks = append(lacks, l)
			}
		}
		text := ""
		if len(lacks) > 0 {
			text = condition.Truncate("the policy is there, and rules of it may not match pods of " + membersOf(lacks))
		}
		f.sources = &text
	}
	return *f.sources
}

// namedMembers is how many members a message names one by one.
const namedMembers = 5

// membersOf names members with the reason of the first: "m1 (why) and 7 more members: m2, m3, m4, m5 and others".
func membersOf(lacks []memberhealth.Lack) string {
	text := fmt.Sprintf("%s (%s)", lacks[0].Member, lacks[0].Why)
	more := lacks[1:]
	if len(more) == 0 {
		return text
	}
	var names []string
	for _, l := range more[:min(len(more), namedMembers-1)] {
		names = append(names, l.Member)
	}
	text += fmt.Sprintf(" and %d more: %s", len(more), strings.Join(names, ", "))
	if len(more) > len(names) {
		text += " and others"
	}
	return text
}
