package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Effect says whether a statement allows or denies.
//
// +kubebuilder:validation:Enum=Allow;Deny
type Effect string

const (
	EffectAllow Effect = "Allow"
	EffectDeny  Effect = "Deny"
)

// Statement grants or refuses actions of subjects on resources.
//
// +kubebuilder:validation:XValidation:rule="!has(self.notBefore) || !has(self.notAfter) || self.notBefore < self.notAfter",message="notAfter must be later than notBefore"
type Statement struct {
	// SID identifies the statement within its policy. The portal derives it from the ticket item that granted it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	SID string `json:"sid"`

	Effect Effect `json:"effect"`

	// Subjects are the clients: applications, address ranges, or "*" for anyone.
	//
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Subjects []Subject `json:"subjects"`

	// Actions are what the subjects do, by name; the resource's class says which ports they are.
	//
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Actions []Action `json:"actions"`

	// Resources are the servers.
	//
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Resources []ResourceName `json:"resources"`

	// NotBefore is the first instant at which the statement counts; absent: at once.
	//
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// NotAfter is the first instant at which the statement no longer counts; absent: it does not expire.
	//
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
}

// AccessControlPolicySpec is the desired access.
type AccessControlPolicySpec struct {
	// Statements, each with a sid that is unique in this policy.
	//
	// +listType=map
	// +listMapKey=sid
	// +kubebuilder:validation:MaxItems=512
	// +optional
	Statements []Statement `json:"statements,omitempty"`
}

// RefusedStatement is a statement, or one of its subjects or resources, that was left out, and why.
type RefusedStatement struct {
	SID string `json:"sid"`
	// Reason is one of the Reason constants for refusals.
	//
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// Message names the offending part and says what to do.
	//
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// PolicyUnit tells how far one compiled unit that holds statements of this policy has come.
//
// A policy with very many units has no room for everything about each. What is left out first is groups, then clusters, then
// sids; the counts always include what is left out.
type PolicyUnit struct {
	// Resource is the name, or the wildcard, that the unit is about.
	Resource ResourceName `json:"resource"`
	// SIDs of this policy that the unit holds.
	//
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +optional
	SIDs []string `json:"sids,omitempty"`
	// Statements is the number of statements of this policy that the unit holds. When there is no room for their sids, sids is
	// empty.
	//
	// +optional
	Statements int32 `json:"statements,omitempty"`
	// Revision is the hash of what every targeted member has to have.
	//
	// +optional
	Revision string `json:"revision,omitempty"`
	// Members counts the members that the unit targets, or was seen in.
	//
	// +optional
	Members *MemberCounts `json:"members,omitempty"`
	// Clusters are those of the members that are in the worst states, at most three, the worst first. (Earlier versions of the
	// adapter listed every member here.)
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10000
	// +optional
	Clusters []ClusterState `json:"clusters,omitempty"`
	// Groups are the members that are not in clusters, by what is equal among them.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Groups []MemberGroup `json:"groups,omitempty"`
	// Details is the object whose status lists the members, as kind and name, when there is no room for all of them here.
	//
	// +kubebuilder:validation:MaxLength=320
	// +optional
	Details string `json:"details,omitempty"`
}

// AccessControlPolicyStatus is what became of the policy. It is true for the generation that ObservedGeneration names.
type AccessControlPolicyStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Accepted, Compiled, Propagated, Realized.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Units that hold statements of this policy. A statement about a resource that is not onboarded is in no unit.
	//
	// When there is no room for all of them, those that are well are left out.
	//
	// +listType=map
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=10000
	// +optional
	Units []PolicyUnit `json:"units,omitempty"`

	// UnitsTotal is the number of units, also of those that units has no room for.
	//
	// +optional
	UnitsTotal int32 `json:"unitsTotal,omitempty"`

	// UnitsRealized is the number of units that every member has, and nothing else.
	//
	// +optional
	UnitsRealized int32 `json:"unitsRealized,omitempty"`

	// Refused statements are not enforced anywhere. When there is no room for all of them, refusedOthers names the others.
	//
	// +kubebuilder:validation:MaxItems=10000
	// +optional
	Refused []RefusedStatement `json:"refused,omitempty"`

	// RefusedOthers are the sids of refused statements that refused has no room for.
	//
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +optional
	RefusedOthers []string `json:"refusedOthers,omitempty"`
}

// AccessControlPolicy says who may do what on which resources, in names that no dataplane knows.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=acp,categories=acps
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Compiled",type=string,JSONPath=`.status.conditions[?(@.type=="Compiled")].status`
// +kubebuilder:printcolumn:name="Propagated",type=string,JSONPath=`.status.conditions[?(@.type=="Propagated")].status`
// +kubebuilder:printcolumn:name="Realized",type=string,JSONPath=`.status.conditions[?(@.type=="Realized")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AccessControlPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AccessControlPolicySpec `json:"spec"`
	// +optional
	Status AccessControlPolicyStatus `json:"status,omitempty"`
}

// AccessControlPolicyList is a list of AccessControlPolicy.
//
// +kubebuilder:object:root=true
type AccessControlPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AccessControlPolicy `json:"items"`
}
