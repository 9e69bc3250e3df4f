package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TimeoutAction is what happens when a step waits too long. A timeout never approves and never skips.
//
// +kubebuilder:validation:Enum=Escalate;Deny;Remind
type TimeoutAction string

const (
	TimeoutEscalate TimeoutAction = "Escalate"
	TimeoutDeny     TimeoutAction = "Deny"
	TimeoutRemind   TimeoutAction = "Remind"
)

// StepTimeout limits how long a step waits.
//
// +kubebuilder:validation:XValidation:rule="self.action != 'Escalate' || has(self.escalateTo)",message="action Escalate needs escalateTo"
type StepTimeout struct {
	After  metav1.Duration `json:"after"`
	Action TimeoutAction   `json:"action"`
	// EscalateTo are the approvers who may decide from then on, beside those of the step.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	EscalateTo []Approver `json:"escalateTo,omitempty"`
}

// Approver is "requester.leader", "resource.owner", "application.owner", "group:<name>" or "person:<name>".
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^(requester\.leader|resource\.owner|application\.owner|(group|person):[A-Za-z0-9]([-A-Za-z0-9_.@]*[A-Za-z0-9])?)$`
type Approver string

// ApprovalStep is one decision in the chain.
//
// +kubebuilder:validation:XValidation:rule="!has(self.count) || self.quorum == 'Count'",message="count needs quorum Count"
// +kubebuilder:validation:XValidation:rule="self.quorum != 'Count' || has(self.count)",message="quorum Count needs count"
type ApprovalStep struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	Approvers []Approver `json:"approvers"`

	// Quorum says how many of the approvers must approve.
	//
	// +kubebuilder:validation:Enum=Any;All;Count
	// +kubebuilder:default=Any
	// +optional
	Quorum string `json:"quorum,omitempty"`

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +optional
	Count *int32 `json:"count,omitempty"`

	// Condition is a CEL expression over the request; the step is needed when it is true or absent.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Condition string `json:"condition,omitempty"`

	// AutoApprove is a CEL expression over the request; the step approves by itself when it is true.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	AutoApprove string `json:"autoApprove,omitempty"`

	// +optional
	Timeout *StepTimeout `json:"timeout,omitempty"`
}

// BreakGlass names who may act at once and be reviewed afterwards.
type BreakGlass struct {
	// People who may; with nobody named, nobody can.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	People []string `json:"people,omitempty"`
	// MaxDuration of such access, with all of its extensions by break-glass. More than 24 h counts as 24 h.
	MaxDuration metav1.Duration `json:"maxDuration"`
	// Reviewers decide afterwards.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	Reviewers []Approver `json:"reviewers"`
}

// ApprovalPolicySpec says who must approve what.
type ApprovalPolicySpec struct {
	// Priority orders the policies; the lowest number that matches counts, equal ones by name.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Priority int32 `json:"priority"`

	// Match is a CEL expression over the request; absent: every request.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Match string `json:"match,omitempty"`

	// Steps in order.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Steps []ApprovalStep `json:"steps"`

	// MaxDuration caps how long access lasts, counted from the first grant through all of its extensions. Absent: a grant
	// has no cap, and an extension lasts no longer than the grant.
	//
	// +optional
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`

	// SamePersonManySteps lets one person fill several steps of a ticket.
	//
	// +optional
	SamePersonManySteps bool `json:"samePersonManySteps,omitempty"`

	// +optional
	BreakGlass *BreakGlass `json:"breakGlass,omitempty"`
}

// ApprovalPolicyStatus tells whether the policy's expressions compile.
type ApprovalPolicyStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Accepted.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ApprovalPolicy says who must approve which requests.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=acpap,categories=acps
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ApprovalPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ApprovalPolicySpec `json:"spec"`
	// +optional
	Status ApprovalPolicyStatus `json:"status,omitempty"`
}

// ApprovalPolicyList is a list of ApprovalPolicy.
//
// +kubebuilder:object:root=true
type ApprovalPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApprovalPolicy `json:"items"`
}
