package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Protocol is a transport protocol.
//
// +kubebuilder:validation:Enum=TCP;UDP;SCTP
type Protocol string

const (
	// ProtocolTCP is TCP.
	ProtocolTCP Protocol = "TCP"
	// ProtocolUDP is UDP.
	ProtocolUDP Protocol = "UDP"
	// ProtocolSCTP is SCTP.
	ProtocolSCTP Protocol = "SCTP"
)

// Port is a port, or an inclusive range of ports, of one protocol.
//
// +kubebuilder:validation:XValidation:rule="!has(self.endPort) || self.endPort >= self.port",message="endPort must not be less than port"
type Port struct {
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// EndPort is the last port of the range. If absent, the range is Port alone.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	EndPort *int32 `json:"endPort,omitempty"`

	// +kubebuilder:default=TCP
	// +optional
	Protocol Protocol `json:"protocol,omitempty"`
}

// HTTPMatch restricts an action to HTTP requests. Both fields are anchored regular expressions; an absent one matches anything.
//
// +kubebuilder:validation:XValidation:rule="has(self.method) || has(self.path)",message="an HTTP match needs a method or a path"
type HTTPMatch struct {
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Method string `json:"method,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`
}

// ClassAction is an action on the resources of a class.
//
// +kubebuilder:validation:XValidation:rule="!has(self.http) || self.ports.all(p, !has(p.protocol) || p.protocol == 'TCP')",message="an action with http must use TCP ports only"
type ClassAction struct {
	// Name is "<service>:<verb>", without wildcard.
	//
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[a-z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$`
	Name string `json:"name"`

	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=40
	// +listType=atomic
	Ports []Port `json:"ports"`

	// HTTP limits the action to matching requests, where the enforcer supports it. If absent, the action is every connection to the ports.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	HTTP []HTTPMatch `json:"http,omitempty"`
}

// OtherPorts determines what happens on the ports of no action of the class while a resource is in Enforce.
//
// +kubebuilder:validation:Enum=Deny;Allow
type OtherPorts string

const (
	// OtherPortsDeny closes these ports.
	OtherPortsDeny OtherPorts = "Deny"
	// OtherPortsAllow opens these ports to every source, on workloads without the label of another class.
	OtherPortsAllow OtherPorts = "Allow"
)

// EnforcerName is the name of an enforcer: a dataplane for which ACP writes policies.
//
// +kubebuilder:validation:Enum=cilium;istio
type EnforcerName string

const (
	// EnforcerCilium translates units to CiliumClusterwideNetworkPolicies.
	EnforcerCilium EnforcerName = "cilium"
	// EnforcerIstio translates units to AuthorizationPolicies.
	EnforcerIstio EnforcerName = "istio"
)

// Placement defines the member clusters in which the units of a class are placed.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusters) != has(self.clusterSelector)",message="set exactly one of clusters and clusterSelector"
type Placement struct {
	// Clusters are names of members. An explicit empty list selects no member.
	//
	// +kubebuilder:validation:MaxItems=512
	// +listType=set
	// +optional
	Clusters *[]ClusterName `json:"clusters,omitempty"`

	// ClusterSelector selects members by the labels of their KubeFedCluster; {} selects all of them.
	//
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
}

// ResourceClassSpec defines a class of servers.
//
// +kubebuilder:validation:XValidation:rule="self.pattern == oldSelf.pattern",message="pattern is immutable: create a new class"
// +kubebuilder:validation:XValidation:rule="self.labelKey == oldSelf.labelKey",message="labelKey is immutable: create a new class"
// +kubebuilder:validation:XValidation:rule="has(self.organization) == has(oldSelf.organization) && (!has(self.organization) || self.organization == oldSelf.organization)",message="organization is immutable: create a new class"
type ResourceClassSpec struct {
	// Organization is the organization that the class belongs to. Only resources that teams of the organization own may use the class.
	//
	// +optional
	Organization OrganizationName `json:"organization,omitempty"`

	// Pattern matches the names of the class. The patterns of two resource classes must not overlap.
	Pattern NamePattern `json:"pattern"`

	// LabelKey is the pod label that carries the part of the name that the pattern's "*" stands for.
	LabelKey LabelKey `json:"labelKey"`

	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Actions []ClassAction `json:"actions"`

	// +kubebuilder:default=Deny
	// +optional
	OtherPorts OtherPorts `json:"otherPorts,omitempty"`

	// +kubebuilder:default={cilium}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=set
	// +optional
	Enforcers []EnforcerName `json:"enforcers,omitempty"`

	Placement Placement `json:"placement"`

	// DefaultMode is the mode of the ProtectedResource that the portal creates when it writes the first exact statement about a
	// resource of the class. If absent, none is created. Statements that are written in other ways create none.
	//
	// +optional
	DefaultMode Mode `json:"defaultMode,omitempty"`

	// Rollout, if set, makes a change to Enforce, and a change of Actions or OtherPorts, reach the members in waves. If absent, it reaches
	// all of them at once.
	//
	// +optional
	Rollout *ClassRollout `json:"rollout,omitempty"`
}

// ClassRollout defines the waves in which changes reach the members.
type ClassRollout struct {
	// Waves are in the order in which they begin. A member belongs to the first wave that selects it. Members that no wave selects
	// belong to one more wave, which is the last.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Waves []Wave `json:"waves"`
}

// Wave is a set of members in which a change begins at the same time.
//
// +kubebuilder:validation:XValidation:rule="!has(self.soak) || duration(self.soak) >= duration('0s') && duration(self.soak) <= duration('720h')",message="soak must be between 0s and 720h"
type Wave struct {
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// ClusterSelector selects members by the labels of their KubeFedCluster; {} selects all of them.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector"`

	// Soak is how long all members of the wave, and of the waves before it, must have enforced the change before the next wave begins.
	//
	// +optional
	Soak metav1.Duration `json:"soak,omitempty"`
}

// ClassStatus reports whether a class is accepted and, for a resource class, propagated.
type ClassStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Accepted; of a resource class also Propagated, which estimates how long a change of many resources still takes.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ResourceClassStatus is the status of a resource class.
type ResourceClassStatus struct {
	ClassStatus `json:",inline"`

	// Rollout says in which members the present Actions and OtherPorts count. It is absent for a class without waves: they then count in
	// every member.
	//
	// +optional
	Rollout *ClassRolloutStatus `json:"rollout,omitempty"`
}

// ResourceClass is a class of servers, for example all redis clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=acprc,categories=acps
// +kubebuilder:printcolumn:name="Pattern",type=string,JSONPath=`.spec.pattern`
// +kubebuilder:printcolumn:name="Label",type=string,JSONPath=`.spec.labelKey`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ResourceClassSpec `json:"spec"`
	// +optional
	Status ResourceClassStatus `json:"status,omitempty"`
}

// ResourceClassList is a list of ResourceClass.
//
// +kubebuilder:object:root=true
type ResourceClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceClass `json:"items"`
}

// SubjectClassSpec defines a class of clients.
//
// +kubebuilder:validation:XValidation:rule="self.pattern == oldSelf.pattern",message="pattern is immutable: create a new class"
// +kubebuilder:validation:XValidation:rule="self.labelKey == oldSelf.labelKey",message="labelKey is immutable: create a new class"
type SubjectClassSpec struct {
	// Pattern matches the names of the class. The patterns of two subject classes must not overlap.
	Pattern NamePattern `json:"pattern"`

	// LabelKey is the pod label that carries the part of the name that the pattern's "*" stands for.
	LabelKey LabelKey `json:"labelKey"`

	// ServiceAccountTemplate is the service account of a subject, for enforcers that identify clients by it. It contains
	// "{id}" once, which stands for the same part of the name, for example "app-{id}".
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.indexOf('{id}') >= 0 && self.indexOf('{id}') == self.lastIndexOf('{id}')",message="serviceAccountTemplate must contain {id} exactly once"
	// +optional
	ServiceAccountTemplate string `json:"serviceAccountTemplate,omitempty"`
}

// SubjectClass is a class of clients, for example all applications.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=acpsc,categories=acps
// +kubebuilder:printcolumn:name="Pattern",type=string,JSONPath=`.spec.pattern`
// +kubebuilder:printcolumn:name="Label",type=string,JSONPath=`.spec.labelKey`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SubjectClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SubjectClassSpec `json:"spec"`
	// +optional
	Status ClassStatus `json:"status,omitempty"`
}

// SubjectClassList is a list of SubjectClass.
//
// +kubebuilder:object:root=true
type SubjectClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SubjectClass `json:"items"`
}
