package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ExternalWorkloadSpec assigns a subject to addresses of clients outside the fleet.
type ExternalWorkloadSpec struct {
	// Subject is the exact name of the client.
	//
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('*')",message="subject must be an exact name, without wildcard"
	Subject ResourceName `json:"subject"`

	// Addresses are IP addresses or prefixes, IPv4 or IPv6, from which the workload connects.
	//
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="self.all(a, isIP(a) || isCIDR(a))",message="every address must be an IP address or a CIDR prefix"
	Addresses []string `json:"addresses"`
}

// ExternalWorkloadStatus reports whether the addresses are accepted.
type ExternalWorkloadStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Accepted.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ExternalWorkload is a client outside the fleet, such as a VM or a bare-metal machine, that connects to pods of the fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=acpew,categories=acps
// +kubebuilder:printcolumn:name="Subject",type=string,JSONPath=`.spec.subject`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ExternalWorkload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ExternalWorkloadSpec `json:"spec"`
	// +optional
	Status ExternalWorkloadStatus `json:"status,omitempty"`
}

// ExternalWorkloadList is a list of ExternalWorkload.
//
// +kubebuilder:object:root=true
type ExternalWorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ExternalWorkload `json:"items"`
}
