package v1alpha1

import (
	"cmp"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemberCounts counts the members of a status, including those that it does not list.
type MemberCounts struct {
	// Total is the number of members that the unit targets, or that once had it and were not yet observed without it.
	//
	// +optional
	Total int32 `json:"total,omitempty"`
	// Targeted is the number of members that must have objects of the unit.
	//
	// +optional
	Targeted int32 `json:"targeted,omitempty"`
	// Waiting is the number of targeted members that are not Realized.
	//
	// +optional
	Waiting int32 `json:"waiting,omitempty"`
	// The others count the members in each state; together they are Total.
	//
	// +optional
	Realized int32 `json:"realized,omitempty"`
	// +optional
	Pending int32 `json:"pending,omitempty"`
	// +optional
	Drifted int32 `json:"drifted,omitempty"`
	// +optional
	Unreachable int32 `json:"unreachable,omitempty"`
	// +optional
	Leaked int32 `json:"leaked,omitempty"`
	// +optional
	Overridden int32 `json:"overridden,omitempty"`
	// +optional
	Quarantined int32 `json:"quarantined,omitempty"`
	// +optional
	Downgraded int32 `json:"downgraded,omitempty"`
}

// CountMembers returns the counts of a list of all members.
func CountMembers(states []ClusterState) MemberCounts {
	var n MemberCounts
	for i := range states {
		c := &states[i]
		n.Total++
		if c.DesiredRevision != "" {
			n.Targeted++
			if c.State != MemberRealized {
				n.Waiting++
			}
		}
		if of := n.of(c.State); of != nil {
			*of++
		}
	}
	return n
}

func (n *MemberCounts) of(s MemberState) *int32 {
	switch s {
	case MemberRealized:
		return &n.Realized
	case MemberPending:
		return &n.Pending
	case MemberDrifted:
		return &n.Drifted
	case MemberUnreachable:
		return &n.Unreachable
	case MemberLeaked:
		return &n.Leaked
	case MemberOverridden:
		return &n.Overridden
	case MemberQuarantined:
		return &n.Quarantined
	case MemberDowngraded:
		return &n.Downgraded
	default:
		return nil
	}
}

// MemberGroup is a group of members that are in the same state.
type MemberGroup struct {
	State MemberState `json:"state"`

	// Mode is the effective mode in these members.
	//
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// Propagated has the same meaning as in clusters, for each of these members.
	//
	// +optional
	Propagated bool `json:"propagated,omitempty"`

	// Since is when the state, or the observed revision, of the first of these members last changed.
	//
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`

	// Revisions lists the members by their desired and observed revisions.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Revisions []MemberRevision `json:"revisions"`
}

// MemberRevision contains the members of a group with equal desired and observed revisions.
type MemberRevision struct {
	// Desired is the revision that the members must have; empty if they must have no objects.
	//
	// +optional
	Desired string `json:"desired,omitempty"`

	// Observed is the revision that was read back; empty if there were no objects.
	//
	// +optional
	Observed string `json:"observed,omitempty"`

	// Members are the names of the members, sorted.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Members []ClusterName `json:"members"`

	// After is, for each of the members, the number of milliseconds between the group's since and the last change of the member's
	// own state. It is absent if that is 0 for all of them.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	// +optional
	After []int64 `json:"after,omitempty"`
}

// severity orders states from the best to the worst. A state that is not in the list is worse than all others.
var severity = []MemberState{
	MemberRealized,
	MemberPending,
	MemberUnreachable,
	MemberQuarantined,
	MemberLeaked,
	MemberDrifted,
	MemberDowngraded,
	MemberOverridden,
}

func (s MemberState) rank() int {
	if i := slices.Index(severity, s); i >= 0 {
		return i
	}
	return len(severity)
}

// CompareMembers orders members from the worst state to the best, and by name within one state.
func CompareMembers(a, b ClusterState) int {
	return cmp.Or(cmp.Compare(b.State.rank(), a.State.rank()), cmp.Compare(a.Name, b.Name))
}

// States returns all members that the status lists, sorted by name. Those in groups have no message. The result must not be
// changed.
func (s *ProtectedResourceStatus) States() []ClusterState { return expand(s.Clusters, s.Groups) }

// Unlisted returns how many members the status counts and does not list. It is 0 for every status that the adapter writes;
// a reader must not conclude from an incomplete list that all members are realized.
func (s *ProtectedResourceStatus) Unlisted() int { return unlisted(s.Members, s.Clusters, s.Groups) }

// Troubled reports whether the member is neither Realized nor progressing to it.
func (c *ClusterState) Troubled() bool { return c.State != MemberPending && c.State != MemberRealized }

// All returns all members that the status lists, in no order. It allocates less than States.
func (s *ProtectedResourceStatus) All() iter.Seq[ClusterState] { return all(s.Clusters, s.Groups) }

// All returns all members that the unit lists, in no order. See Unlisted.
func (u *PolicyUnit) All() iter.Seq[ClusterState] { return all(u.Clusters, u.Groups) }

// In returns the members that the status lists in the states for which keep returns true, in no order. It takes no time for members in
// groups of other states.
func (s *ProtectedResourceStatus) In(keep func(MemberState) bool) iter.Seq[ClusterState] {
	return inStates(s.Clusters, s.Groups, keep)
}

// In returns the members that the unit lists in the states for which keep returns true. See ProtectedResourceStatus.In.
func (u *PolicyUnit) In(keep func(MemberState) bool) iter.Seq[ClusterState] {
	return inStates(u.Clusters, u.Groups, keep)
}

// Alike returns the members that the status lists, in lists whose members have the same state, mode and revisions: these, without a name
// and a time, and the names. It takes no time for each member. The names must not be changed.
func (s *ProtectedResourceStatus) Alike() iter.Seq2[ClusterState, []ClusterName] {
	return alike(s.Clusters, s.Groups)
}

// Alike returns the members that the unit lists, in lists of equal members. See ProtectedResourceStatus.Alike.
func (u *PolicyUnit) Alike() iter.Seq2[ClusterState, []ClusterName] {
	return alike(u.Clusters, u.Groups)
}

// Member returns the state of a member, and whether the status lists it.
func (s *ProtectedResourceStatus) Member(name ClusterName) (ClusterState, bool) {
	return memberIn(s.Clusters, s.Groups, name)
}

// Member returns the state of a member, and whether the unit lists it.
func (u *PolicyUnit) Member(name ClusterName) (ClusterState, bool) {
	return memberIn(u.Clusters, u.Groups, name)
}

// States returns all members that the unit lists, sorted by name. Those in groups have no message. The result must not be
// changed. See Unlisted.
func (u *PolicyUnit) States() []ClusterState { return expand(u.Clusters, u.Groups) }

// Unlisted returns how many members the unit counts and does not list, because a policy with very many units has no room for
// all. A reader must not conclude from an incomplete list that all members are realized. The counts are always complete.
func (u *PolicyUnit) Unlisted() int { return unlisted(u.Members, u.Clusters, u.Groups) }

// Counts returns the counts of the unit's members, also where an earlier version of the adapter wrote none.
func (u *PolicyUnit) Counts() MemberCounts {
	if u.Members != nil {
		return *u.Members
	}
	return CountMembers(u.Clusters)
}

// Counts returns the counts of the members, also where an earlier version of the adapter wrote none.
func (s *ProtectedResourceStatus) Counts() MemberCounts {
	if s.Members != nil {
		return *s.Members
	}
	return CountMembers(s.Clusters)
}

// UnitsUnlisted returns how many units the status counts and does not list.
func (s *AccessControlPolicyStatus) UnitsUnlisted() int {
	return max(int(s.UnitsTotal)-len(s.Units), 0)
}

// LacksSIDs reports whether the unit contains statements of the policy whose sids are not listed.
func (u *PolicyUnit) LacksSIDs() bool { return int(u.Statements) > len(u.SIDs) }

func unlisted(n *MemberCounts, clusters []ClusterState, groups []MemberGroup) int {
	if n == nil {
		return 0
	}
	listed := len(clusters)
	for i := range groups {
		for j := range groups[i].Revisions {
			listed += len(groups[i].Revisions[j].Members)
		}
	}
	return max(int(n.Total)-listed, 0)
}

func byName(a, b ClusterState) int { return cmp.Compare(a.Name, b.Name) }

func expand(clusters []ClusterState, groups []MemberGroup) []ClusterState {
	if len(groups) == 0 && slices.IsSortedFunc(clusters, byName) {
		return clusters
	}
	out := slices.AppendSeq(make([]ClusterState, 0, max(len(clusters), 64)), all(clusters, groups))
	slices.SortFunc(out, byName)
	return out
}

func all(clusters []ClusterState, groups []MemberGroup) iter.Seq[ClusterState] {
	return func(yield func(ClusterState) bool) {
		for i := range clusters {
			if !yield(clusters[i]) {
				return
			}
		}
		for i := range groups {
			if !groups[i].each(yield) {
				return
			}
		}
	}
}

func inStates(clusters []ClusterState, groups []MemberGroup, keep func(MemberState) bool) iter.Seq[ClusterState] {
	return func(yield func(ClusterState) bool) {
		for i := range clusters {
			if keep(clusters[i].State) && !yield(clusters[i]) {
				return
			}
		}
		for i := range groups {
			if keep(groups[i].State) && !groups[i].each(yield) {
				return
			}
		}
	}
}

func alike(clusters []ClusterState, groups []MemberGroup) iter.Seq2[ClusterState, []ClusterName] {
	return func(yield func(ClusterState, []ClusterName) bool) {
		for i := range clusters {
			c := clusters[i]
			c.Name, c.Since = "", nil
			if !yield(c, []ClusterName{clusters[i].Name}) {
				return
			}
		}
		for i := range groups {
			for j := range groups[i].Revisions {
				if r := &groups[i].Revisions[j]; !yield(groups[i].shared(r), r.Members) {
					return
				}
			}
		}
	}
}

func memberIn(clusters []ClusterState, groups []MemberGroup, name ClusterName) (ClusterState, bool) {
	for i := range clusters {
		if clusters[i].Name == name {
			return clusters[i], true
		}
	}
	for i := range groups {
		for j := range groups[i].Revisions {
			r := &groups[i].Revisions[j]
			if at, found := slices.BinarySearch(r.Members, name); found {
				return groups[i].member(r, at), true
			}
		}
	}
	return ClusterState{}, false
}

func (g *MemberGroup) each(yield func(ClusterState) bool) bool {
	for i := range g.Revisions {
		r := &g.Revisions[i]
		for j := range r.Members {
			if !yield(g.member(r, j)) {
				return false
			}
		}
	}
	return true
}

// shared returns what the members with a revision have in common.
func (g *MemberGroup) shared(r *MemberRevision) ClusterState {
	return ClusterState{State: g.State, Mode: g.Mode, Propagated: g.Propagated, DesiredRevision: r.Desired, ObservedRevision: r.Observed}
}

// member returns the i-th member with a revision.
func (g *MemberGroup) member(r *MemberRevision, i int) ClusterState {
	c := g.shared(r)
	c.Name = r.Members[i]
	if g.Since != nil {
		c.Since = g.Since
		if i < len(r.After) && r.After[i] != 0 {
			at := metav1.NewMicroTime(g.Since.Add(time.Duration(r.After[i]) * time.Millisecond))
			c.Since = &at
		}
	}
	return c
}

// GroupMembers returns members in groups. The groups keep everything but messages, and times in milliseconds. It does not
// depend on the order of the members.
func GroupMembers(states []ClusterState) []MemberGroup {
	if len(states) == 0 {
		return nil
	}
	sorted := make([]*ClusterState, len(states))
	for i := range states {
		sorted[i] = &states[i]
	}
	slices.SortFunc(sorted, func(a, b *ClusterState) int {
		return cmp.Or(compareGroups(a, b), compareRevisions(a, b), cmp.Compare(a.Name, b.Name))
	})
	var out []MemberGroup
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && compareGroups(sorted[0], sorted[n]) == 0 {
			n++
		}
		out = append(out, groupOf(sorted[:n]))
		sorted = sorted[n:]
	}
	return out
}

// compareGroups orders by what the members of a group share. A member without a time is in a group of its own, because it
// has no distance from the group's time.
func compareGroups(a, b *ClusterState) int {
	if c := cmp.Or(cmp.Compare(b.State.rank(), a.State.rank()), cmp.Compare(a.State, b.State), cmp.Compare(a.Mode, b.Mode)); c != 0 {
		return c
	}
	return cmp.Or(compareBools(a.Propagated, b.Propagated), compareBools(a.Since != nil, b.Since != nil))
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

func compareRevisions(a, b *ClusterState) int {
	return cmp.Or(cmp.Compare(a.DesiredRevision, b.DesiredRevision), cmp.Compare(a.ObservedRevision, b.ObservedRevision))
}

// groupOf makes one group of members that share what a group shares, sorted by revisions.
func groupOf(members []*ClusterState) MemberGroup {
	first := members[0]
	g := MemberGroup{State: first.State, Mode: first.Mode, Propagated: first.Propagated}
	for _, c := range members {
		if c.Since != nil && (g.Since == nil || c.Since.Before(g.Since)) {
			g.Since = c.Since
		}
	}
	for i := 0; i < len(members); {
		r := MemberRevision{Desired: members[i].DesiredRevision, Observed: members[i].ObservedRevision}
		end, later := i, false
		for ; end < len(members) && compareRevisions(members[i], members[end]) == 0; end++ {
			r.Members = append(r.Members, members[end].Name)
			if g.Since != nil {
				after := members[end].Since.Sub(g.Since.Time).Milliseconds()
				r.After, later = append(r.After, after), later || after != 0
			}
		}
		if !later {
			r.After = nil
		}
		g.Revisions = append(g.Revisions, r)
		i = end
	}
	return g
}
