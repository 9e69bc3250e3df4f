package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClassRules are the parts of a ResourceClass that reach the members in waves: what its actions mean, and what happens on other ports.
type ClassRules struct {
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Actions []ClassAction `json:"actions"`

	// +optional
	OtherPorts OtherPorts `json:"otherPorts,omitempty"`
}

// ClassRolloutStatus says which rules of a ResourceClass count in which members: those of the spec where the present rollout has begun,
// and Settled everywhere else. If both are the same, no rollout is in progress.
type ClassRolloutStatus struct {
	// Settled are the rules that count in members in which the present rollout has not begun.
	Settled ClassRules `json:"settled"`

	// Generation is the generation of the class that Progress is about.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`

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

// Rules returns the rules of the spec. They share memory with it.
func (s *ResourceClassSpec) Rules() ClassRules {
	other := s.OtherPorts
	if other == "" {
		other = OtherPortsDeny
	}
	return ClassRules{Actions: s.Actions, OtherPorts: other}
}

// Equal reports whether two sets of rules are the same.
func (r ClassRules) Equal(o ClassRules) bool {
	return r.OtherPorts == o.OtherPorts && slices.EqualFunc(r.Actions, o.Actions, func(a, b ClassAction) bool { return equality.Semantic.DeepEqual(a, b) })
}

// RollsOut reports whether the rules of the spec do not count in every member, because they reach the members in waves.
func (c *ResourceClass) RollsOut() bool {
	return c.Status.Rollout != nil && !c.Status.Rollout.Settled.Equal(c.Spec.Rules())
}

// HasBegunIn reports whether the rules of the spec count in a member. The name "" stands for a member that the status does not name.
func (c *ResourceClass) HasBegunIn(cluster string) bool {
	return !c.RollsOut() || c.Status.Rollout.Progress != nil && c.Status.Rollout.Progress.Begun.Has(cluster)
}

// Begun returns the members in which the rules of the spec count.
func (c *ResourceClass) Begun() MemberSet {
	switch {
	case !c.RollsOut():
		return MemberSet{AllExcept: true}
	case c.Status.Rollout.Progress == nil:
		return MemberSet{}
	}
	return c.Status.Rollout.Progress.Begun
}

// WithSettledRules returns the class with the rules that count where the present rollout has not begun, as if no rollout were in progress.
func (c *ResourceClass) WithSettledRules() *ResourceClass {
	out := *c
	out.Spec.Actions, out.Spec.OtherPorts = c.Status.Rollout.Settled.Actions, c.Status.Rollout.Settled.OtherPorts
	out.Status.Rollout = nil
	return &out
}
