package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TimeoutAction is what happens when nobody decides a step in time. A timeout never approves or skips a step.
//
// +kubebuilder:validation:Enum=Escalate;Deny;Remind
type TimeoutAction string

const (
	// TimeoutEscalate lets the people of escalateTo decide the step, too.
	TimeoutEscalate TimeoutAction = "Escalate"
	// TimeoutDeny rejects the request.
	TimeoutDeny TimeoutAction = "Deny"
	// TimeoutRemind reminds the approvers.
	TimeoutRemind TimeoutAction = "Remind"
)

// StepTimeout limits how long a step waits for decisions.
//
// +kubebuilder:validation:XValidation:rule="self.action != 'Escalate' || has(self.escalateTo)",message="action Escalate needs escalateTo"
type StepTimeout struct {
	After  metav1.Duration `json:"after"`
	Action TimeoutAction   `json:"action"`
	// EscalateTo are additional approvers who may decide after the timeout.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	EscalateTo []Approver `json:"escalateTo,omitempty"`
	// RemindEvery is how long a step waits until its approvers are reminded first, before and after an escalation. Each further
	// interval is twice as long, up to a week; the first reminder after 30 days is the last one, unless a timeout is ahead. If
	// absent, they are reminded only by the action Remind, first after the timeout. Less than a minute counts as a minute.
	//
	// +optional
	RemindEvery *metav1.Duration `json:"remindEvery,omitempty"`
}

// Approver is "requester.leader", "resource.owner", "application.owner", "group:<name>" or "person:<name>".
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^(requester\.leader|resource\.owner|application\.owner|(group|person):[A-Za-z0-9]([-A-Za-z0-9_.@]*[A-Za-z0-9])?)$`
type Approver string

// OnCall is onCall("<schedule>", <tier>). It selects the people who are on call in a tier of a schedule; the first tier is 1.
//
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^onCall\("[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", ?([1-9]|1[0-6])\)$`
type OnCall string

// LimitFallback defines who decides a limited step while nobody can by its limit.
//
// +kubebuilder:validation:Enum=Wait;Approvers
type LimitFallback string

const (
	// LimitWait lets the step wait.
	LimitWait LimitFallback = "Wait"
	// LimitApprovers lets every approver of the step decide.
	LimitApprovers LimitFallback = "Approvers"
)

// ApprovalStep is one decision in the chain.
//
// +kubebuilder:validation:XValidation:rule="!has(self.limitTo) || !has(self.quorum) || self.quorum == 'Any'",message="limitTo needs quorum Any"
// +kubebuilder:validation:XValidation:rule="!has(self.limitFallback) || has(self.limitTo)",message="limitFallback needs limitTo"
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

	// LimitTo limits the step to those of its approvers who are on call when they decide. It never adds an approver.
	//
	// +optional
	LimitTo OnCall `json:"limitTo,omitempty"`

	// LimitFallback defines who decides while it is not known who is on call, or while none of the approvers is: nobody
	// (Wait, which is the default), or every approver of the step (Approvers).
	//
	// +optional
	LimitFallback LimitFallback `json:"limitFallback,omitempty"`

	// Quorum is the number of approvers who must approve.
	//
	// +kubebuilder:validation:Enum=Any;All;Count
	// +kubebuilder:default=Any
	// +optional
	Quorum string `json:"quorum,omitempty"`

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +optional
	Count *int32 `json:"count,omitempty"`

	// Condition is a CEL expression over the request. The step is required if it is true or absent.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Condition string `json:"condition,omitempty"`

	// AutoApprove is a CEL expression over the request. The step is approved automatically if it is true.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	AutoApprove string `json:"autoApprove,omitempty"`

	// +optional
	Timeout *StepTimeout `json:"timeout,omitempty"`
}

// BreakGlass defines who may get access at once, to be reviewed afterwards.
type BreakGlass struct {
	// People may use break-glass access. If the list is empty, nobody can.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	People []string `json:"people,omitempty"`
	// MaxDuration limits such access, including all of its extensions by break-glass. More than 24 h counts as 24 h.
	MaxDuration metav1.Duration `json:"maxDuration"`
	// Reviewers decide about the access afterwards.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	Reviewers []Approver `json:"reviewers"`
}

// ApprovalPolicySpec defines who must approve which requests.
//
// +kubebuilder:validation:XValidation:rule="has(self.organization) == has(oldSelf.organization) && (!has(self.organization) || self.organization == oldSelf.organization)",message="organization is immutable: create a new policy"
// +kubebuilder:validation:XValidation:rule="has(self.organization) || !has(self.replaceOwners) || !self.replaceOwners",message="replaceOwners needs organization"
type ApprovalPolicySpec struct {
	// Priority orders the policies. The matching policy with the lowest number counts; of equal ones, the first by name.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Priority int32 `json:"priority"`

	// Organization is the organization that the policy belongs to. Such a policy applies only to requests about resources that teams of
	// the organization own, and its steps are added to those of the policy, or of the built-in chain, that applies otherwise.
	//
	// +optional
	Organization OrganizationName `json:"organization,omitempty"`

	// ReplaceOwners lets the steps of an organization's policy replace the steps that only the resource's owners decide. It has an effect
	// only if the bounds of the organization allow it, and only on requests for access to resources that its teams alone own.
	//
	// +optional
	ReplaceOwners bool `json:"replaceOwners,omitempty"`

	// Match is a CEL expression over the request. If absent, every request matches.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Match string `json:"match,omitempty"`

	// Steps are the approval steps, in order.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Steps []ApprovalStep `json:"steps"`

	// DenyAutoApprove are CEL expressions over the request. If one of them is true for a request that this policy matches, no
	// step of the request is approved automatically, whichever policy defines its steps. An expression that cannot be
	// evaluated counts as true.
	//
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=set
	// +optional
	DenyAutoApprove []string `json:"denyAutoApprove,omitempty"`

	// MaxDuration limits how long access lasts, from the first grant through all of its extensions. If absent, a grant
	// has no limit, and an extension lasts no longer than the grant.
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

// ApprovalPolicyStatus reports whether the expressions of the policy compile.
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

// ApprovalPolicy defines who must approve which requests.
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
