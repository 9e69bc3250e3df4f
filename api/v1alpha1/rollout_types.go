package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationRollout contains the last instruction about the rollout of a ProtectedResource or a ResourceClass, in the form of
// waves.Instruction. The adapter carries out each instruction once.
const AnnotationRollout = "acp.io/rollout-instruction"

// RolloutStatus says in which members Enforce counts: in those in which it is settled, and those in which the present rollout has
// begun. In other members a mode of Enforce counts as Audit.
type RolloutStatus struct {
	// Settled are the members in which Enforce counts independently of the present rollout.
	//
	// +optional
	Settled MemberSet `json:"settled,omitempty"`

	// Instruction is the id of the last instruction that was carried out or ignored.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Instruction string `json:"instruction,omitempty"`

	// InstructionAt is when the last instruction that was carried out was given. An instruction that was not given later is ignored.
	//
	// +optional
	InstructionAt *metav1.MicroTime `json:"instructionAt,omitempty"`

	// Progress is the present rollout. It is absent if none is in progress.
	//
	// +optional
	Progress *RolloutProgress `json:"progress,omitempty"`
}

// RolloutProgress is the progress of a change through the waves: of Enforce, or of the rules of a class. The comments of the fields say
// Enforce for both.
type RolloutProgress struct {
	// StartedAt is when the adapter found that Enforce is wanted in more members.
	StartedAt metav1.Time `json:"startedAt"`

	// Wave is the number of the current wave, from 1, and Name its name; the name is empty for members that no wave selects. Wave is 0
	// while none has begun.
	//
	// +optional
	Wave int32 `json:"wave,omitempty"`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`

	// Waves is the number of waves that have members of this rollout.
	//
	// +optional
	Waves int32 `json:"waves,omitempty"`

	// Begun are the members in which Enforce has begun. When the last wave has begun, these are all in which it was wanted then, including
	// members that join later.
	//
	// +optional
	Begun MemberSet `json:"begun,omitempty"`

	// Waiting is the number of members in which Enforce has not begun.
	//
	// +optional
	Waiting int32 `json:"waiting,omitempty"`

	// BegunAt is when the current wave began, and EnforcedSince since when all members in which Enforce has begun were seen to enforce;
	// it is absent before that.
	//
	// +optional
	BegunAt *metav1.Time `json:"begunAt,omitempty"`
	// +optional
	EnforcedSince *metav1.Time `json:"enforcedSince,omitempty"`

	// Halt, if set, says why no further wave begins.
	//
	// +optional
	Halt *RolloutHalt `json:"halt,omitempty"`
}

// HaltReason is a reason for which a rollout was halted.
//
// +kubebuilder:validation:Enum=Paused;RolledBack;MemberUnhealthy;ClientsRefused;VerdictsDisagree;ClassWithoutWaves
type HaltReason string

const (
	// HaltPaused means that a person halted the rollout.
	HaltPaused HaltReason = "Paused"
	// HaltRolledBack means that a person halted the rollout and returned its members to Audit.
	HaltRolledBack HaltReason = "RolledBack"
	// HaltMemberUnhealthy means that a member in which Enforce had begun does not enforce any more, or was downgraded or quarantined.
	HaltMemberUnhealthy HaltReason = "MemberUnhealthy"
	// HaltClientsRefused means that the rollout guard found clients that are refused and were not refused before.
	HaltClientsRefused HaltReason = "ClientsRefused"
	// HaltVerdictsDisagree means that the rollout guard found connections of which the dataplane's verdict contradicts the policies.
	HaltVerdictsDisagree HaltReason = "VerdictsDisagree"
	// HaltClassWithoutWaves means that the waves were removed from the class while the rollout was in progress.
	HaltClassWithoutWaves HaltReason = "ClassWithoutWaves"
)

// RolloutHalt says why a rollout was halted.
type RolloutHalt struct {
	Reason HaltReason  `json:"reason"`
	At     metav1.Time `json:"at"`

	// By is the person who halted it, or empty.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	By string `json:"by,omitempty"`

	// Cluster is the member because of which it was halted, or empty.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Message explains the reason. MessageCode and MessageParams are the message for programs, as in the states of members.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	MessageCode string `json:"messageCode,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	MessageParams string `json:"messageParams,omitempty"`
}

// MemberSet is a set of members, which may contain members that do not exist yet.
type MemberSet struct {
	// AllExcept reports whether the set contains every member except Clusters. Otherwise it contains Clusters.
	//
	// +optional
	AllExcept bool `json:"allExcept,omitempty"`

	// Clusters are sorted.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	// +optional
	Clusters []ClusterName `json:"clusters,omitempty"`
}

// Has reports whether the set contains a member. The name "" stands for a member that the set does not name.
func (s MemberSet) Has(cluster string) bool {
	_, named := slices.BinarySearch(s.Clusters, ClusterName(cluster))
	return named != s.AllExcept
}

// Empty reports whether the set contains no member.
func (s MemberSet) Empty() bool { return !s.AllExcept && len(s.Clusters) == 0 }

// Equal reports whether two sets contain the same members.
func (s MemberSet) Equal(o MemberSet) bool {
	return s.AllExcept == o.AllExcept && slices.Equal(s.Clusters, o.Clusters)
}

// Intersect returns the members that both sets contain.
func (s MemberSet) Intersect(o MemberSet) MemberSet {
	return s.combine(o, func(a, b bool) bool { return a && b })
}

// Union returns the members that one of two sets contains.
func (s MemberSet) Union(o MemberSet) MemberSet {
	return s.combine(o, func(a, b bool) bool { return a || b })
}

// combine returns the set of the members for which both returns true.
func (s MemberSet) combine(o MemberSet, both func(a, b bool) bool) MemberSet {
	out := MemberSet{AllExcept: both(s.AllExcept, o.AllExcept)}
	for _, c := range slices.Concat(s.Clusters, o.Clusters) {
		if both(s.Has(string(c)), o.Has(string(c))) != out.AllExcept {
			out.Clusters = append(out.Clusters, c)
		}
	}
	slices.Sort(out.Clusters)
	out.Clusters = slices.Compact(out.Clusters)
	return out
}

// Enforces returns the members in which the spec's mode is Enforce, regardless of a temporary audit and of waves.
func (s *ProtectedResourceSpec) Enforces() MemberSet {
	out := MemberSet{AllExcept: s.Mode == ModeEnforce}
	for _, m := range s.ClusterModes {
		if (m.Mode == ModeEnforce) != out.AllExcept {
			out.Clusters = append(out.Clusters, m.Cluster)
		}
	}
	slices.Sort(out.Clusters)
	return out
}

// RequiresProtection reports whether the spec requires protection in some member, regardless of a temporary audit.
func (s *ProtectedResourceSpec) RequiresProtection() bool {
	return s.Mode != ModeObserve || slices.ContainsFunc(s.ClusterModes, func(m ClusterMode) bool { return m.Mode != ModeObserve })
}

// Permits returns the members in which a mode of Enforce counts. Without waves these are all.
func (s *RolloutStatus) Permits() MemberSet {
	switch {
	case s == nil:
		return MemberSet{AllExcept: true}
	case s.Progress == nil:
		return s.Settled
	}
	return s.Settled.Union(s.Progress.Begun)
}

// Holds reports whether a mode of Enforce counts as Audit in a member, because its wave has not begun. The name "" stands for a
// member that is not named.
func (s *RolloutStatus) Holds(cluster string) bool {
	return s != nil && !s.Settled.Has(cluster) && (s.Progress == nil || !s.Progress.Begun.Has(cluster))
}

// Named returns the members that the status names, so that Enforce may count in them differently than in others.
func (s *RolloutStatus) Named() []ClusterName {
	if s == nil {
		return nil
	}
	if s.Progress == nil {
		return s.Settled.Clusters
	}
	return slices.Concat(s.Settled.Clusters, s.Progress.Begun.Clusters)
}

// Enforced returns the members in which the resource is in Enforce, regardless of a temporary audit.
func (o *ProtectedResource) Enforced() MemberSet {
	return o.Spec.Enforces().Intersect(o.Status.Rollout.Permits())
}
