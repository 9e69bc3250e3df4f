package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OnDelete selects what happens to the access when an AccessRequest is deleted.
//
// +kubebuilder:validation:Enum=Revoke;Keep
type OnDelete string

const (
	// OnDeleteRevoke revokes the grants of the request, and the grants that extend them.
	OnDeleteRevoke OnDelete = "Revoke"
	// OnDeleteKeep leaves the grants in force. They are then managed in the portal only.
	OnDeleteKeep OnDelete = "Keep"
)

// RequestedAccess is the access to one resource.
type RequestedAccess struct {
	// Resource is the exact name of the resource.
	//
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('*')",message="resource must be an exact name, without wildcard"
	Resource ResourceName `json:"resource"`

	// Actions are the actions of the resource's class, without wildcards.
	//
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.endsWith('*'))",message="actions must be named one by one, without wildcard"
	Actions []Action `json:"actions"`
}

// AccessRequestSpec is the request of the application for which the namespace stands.
type AccessRequestSpec struct {
	// Access is the requested access, one entry for each resource. The entries are decided one by one.
	//
	// +listType=map
	// +listMapKey=resource
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	Access []RequestedAccess `json:"access"`

	// Duration is how long the access lasts from its approval, for example 720h: between 5m and 8784h (366 days). Without it,
	// the access lasts until it is revoked.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5m') && duration(self) <= duration('8784h')",message="duration must be between 5m and 8784h"
	Duration *metav1.Duration `json:"duration,omitempty"`

	// Hours restricts the access to recurring hours. If absent, it is given at any hour.
	//
	// +optional
	Hours *WeeklyHours `json:"hours,omitempty"`

	// Reason tells the approvers why the application needs the access.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	// +kubebuilder:validation:XValidation:rule="self.trim().size() > 0",message="reason must not be blank"
	Reason string `json:"reason"`

	// RequestedBy is the name of the Kubernetes user who wrote the request. The admission policy acp-access-requests compares it with
	// the user of the API request. If it is the id or the e-mail address of a person in the catalog, this person cannot approve the request.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	RequestedBy string `json:"requestedBy,omitempty"`

	// OnDelete selects what happens to the access when the object is deleted. A request that is not decided yet is withdrawn in either
	// case.
	//
	// +optional
	// +kubebuilder:default=Revoke
	OnDelete OnDelete `json:"onDelete,omitempty"`
}

// AccessRequestStatus reports what became of the request. It is output only: the portal never reads it to decide anything.
type AccessRequestStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Application is the catalog id of the application for which the namespace stands.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Application string `json:"application,omitempty"`
	// Ticket is the ID of the ticket in the portal, for example T-42.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Ticket string `json:"ticket,omitempty"`
	// URL is the page of the ticket.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// State is the state of the ticket, for example pending, effective or rejected.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	State string `json:"state,omitempty"`
	// Conditions: Accepted, Approved and Realized.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AccessRequest requests access for the application for which its namespace stands. The portal submits a ticket for it, which the usual
// approvers decide, and reports in the status what became of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=acpar,categories=acps
// +kubebuilder:printcolumn:name="Ticket",type=string,JSONPath=`.status.ticket`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="Realized",type=string,JSONPath=`.status.conditions[?(@.type=="Realized")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name must have at most 63 characters"
type AccessRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AccessRequestSpec `json:"spec"`
	// +optional
	Status AccessRequestStatus `json:"status,omitempty"`
}

// AccessRequestList is a list of AccessRequest.
//
// +kubebuilder:object:root=true
type AccessRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AccessRequest `json:"items"`
}
