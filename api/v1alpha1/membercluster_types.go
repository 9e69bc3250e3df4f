package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MemberClusterState is the state of a member. If several apply, the first of Quarantined, Downgraded, Leaving and
// Unreachable counts.
//
// +kubebuilder:validation:Enum=Ready;Unreachable;Quarantined;Downgraded;Leaving
type MemberClusterState string

const (
	// MemberClusterReady means that the member can be reached, and objects that are placed in it are written.
	MemberClusterReady MemberClusterState = "Ready"
	// MemberClusterUnreachable means that the member cannot be read. It continues to enforce what it has, and gets no changes.
	MemberClusterUnreachable MemberClusterState = "Unreachable"
	// MemberClusterQuarantined means that the member failed its preflight in a way that would stop KubeFed for the other members, so it is
	// not propagated to.
	MemberClusterQuarantined MemberClusterState = "Quarantined"
	// MemberClusterDowngraded means that an operator switched the member to audit without the control plane. Nothing is written to it.
	MemberClusterDowngraded MemberClusterState = "Downgraded"
	// MemberClusterLeaving means that the member is being removed from the fleet.
	MemberClusterLeaving MemberClusterState = "Leaving"
)

// GuardState reports whether admission in a member refuses changes of ACP's objects by others.
//
// +kubebuilder:validation:Enum=Present;Missing;Changed;Unknown
type GuardState string

const (
	// GuardPresent means that the guard exists as ACP wrote it.
	GuardPresent GuardState = "Present"
	// GuardMissing means that there is no guard. Manual changes are detected and repaired, but not refused.
	GuardMissing GuardState = "Missing"
	// GuardChanged means that there is a guard that differs from what ACP wrote.
	GuardChanged GuardState = "Changed"
	// GuardUnknown means that the guard could not be read.
	GuardUnknown GuardState = "Unknown"
)

// FindingSeverity is the severity of a finding.
//
// +kubebuilder:validation:Enum=Stops;Fails;Warns
type FindingSeverity string

const (
	// FindingStops means that KubeFed would stop propagating a kind to every member while it counts this member as ready.
	FindingStops FindingSeverity = "Stops"
	// FindingFails means that policies that are written would not be enforced, or would be enforced with another meaning.
	FindingFails FindingSeverity = "Fails"
	// FindingWarns means that the finding has no effect on enforcement now.
	FindingWarns FindingSeverity = "Warns"
)

// Codes of the findings that the adapter adds to those of the preflight.
const (
	// FindingIdentitiesFilling means that more than 70 % of the member's identities are used.
	FindingIdentitiesFilling = "IdentitiesFilling"
	// FindingIdentitiesFull means that more than 90 % of the member's identities are used. New pods without an identity get no network.
	FindingIdentitiesFull = "IdentitiesFull"
	// FindingPolicyMapFilling means that the largest unit fills more than half of the policy map of a workload.
	FindingPolicyMapFilling = "PolicyMapFilling"
	// FindingOrphan means that a policy has a name or label of ACP's, and no object on the host requires it.
	FindingOrphan = "Orphan"
	// FindingNoHTTP means that Cilium does not enforce rules about requests in the member, so they are refused there. It is a finding of
	// the preflight.
	FindingNoHTTP = "NoHTTP"
	// FindingGRPCServersStated means that workloads of a class of Istio's have no proxy, and count as protected because their owner states
	// that their gRPC servers enforce policies. It is a finding of the preflight.
	FindingGRPCServersStated = "GRPCServersStated"
)

// MemberFinding is a finding about a member.
type MemberFinding struct {
	// Code identifies the kind of the finding for programs.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Code     string          `json:"code"`
	Severity FindingSeverity `json:"severity"`
	// Message describes the finding and states what to do.
	//
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
	// MessageCode and MessageParams are the message for programs, as in the status of an AccessControlPolicy.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	MessageCode string `json:"messageCode,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	MessageParams string `json:"messageParams,omitempty"`
	// Object is the object that the finding concerns, if it does not concern the whole member.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Object string `json:"object,omitempty"`
}

// IdentityLabel is a label key that distinguishes identities.
type IdentityLabel struct {
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// Values is the number of different values of the key.
	//
	// +kubebuilder:validation:Minimum=1
	Values int32 `json:"values"`
}

// MemberIdentities is the number of pod identities in a member. Pods with equal labels share one.
type MemberIdentities struct {
	// +kubebuilder:validation:Minimum=0
	Used int32 `json:"used"`
	// Limit is the maximum number of identities in the member.
	//
	// +kubebuilder:validation:Minimum=1
	Limit int32 `json:"limit"`
	// Labels lists the keys with the most values, in descending order.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=key
	// +optional
	Labels     []IdentityLabel `json:"labels,omitempty"`
	ObservedAt metav1.Time     `json:"observedAt"`
}

// MemberObjects counts the units that a member must have or may have.
type MemberObjects struct {
	// Managed is the number of all of them.
	//
	// +kubebuilder:validation:Minimum=0
	Managed int32 `json:"managed"`
	// Realized is the number of units with the desired revision.
	//
	// +kubebuilder:validation:Minimum=0
	Realized int32 `json:"realized"`
	// Pending is the number of units that are missing, have an older revision, or cannot be read because the member is unreachable
	// or quarantined.
	//
	// +kubebuilder:validation:Minimum=0
	Pending int32 `json:"pending"`
	// Drifted is the number of units that were changed in the member.
	//
	// +kubebuilder:validation:Minimum=0
	Drifted int32 `json:"drifted"`
	// Leaked is the number of units that exist although they must not.
	//
	// +kubebuilder:validation:Minimum=0
	Leaked int32 `json:"leaked"`
	// Overridden is the number of units beside which a policy that is not ACP's allows more.
	//
	// +kubebuilder:validation:Minimum=0
	Overridden int32 `json:"overridden"`
}

// MemberPolicyMap is the estimated number of policy map entries that the largest unit of a member needs.
type MemberPolicyMap struct {
	// Highest is the number of entries of the largest unit.
	//
	// +kubebuilder:validation:Minimum=0
	Highest int32 `json:"highest"`
	// Limit is the capacity of the policy map of a workload in the member, in entries.
	//
	// +kubebuilder:validation:Minimum=1
	Limit int32 `json:"limit"`
	// Unit is the resource of the largest unit.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Unit string `json:"unit,omitempty"`
}

// NoMesh is the Mesh of a member that is in no cluster mesh.
const NoMesh = "none"

// MemberLabel is the number of pod identities in a member that have the label of a class. The numbers are upper bounds and are
// rounded, so that they change rarely.
type MemberLabel struct {
	Key LabelKey `json:"key"`
	// Identities is the number of identities with the label, rounded up by at most an eighth.
	//
	// +kubebuilder:validation:Minimum=1
	Identities int32 `json:"identities"`
	// Most is the number of identities with the most frequent value, rounded up to a power of two. Pods of one name in several
	// namespaces, or with several service accounts, have several identities.
	//
	// +kubebuilder:validation:Minimum=1
	Most int32 `json:"most"`
	// Values are the values of the label. They are present only while members of the fleet are in several cluster meshes, and only
	// if the list is complete.
	//
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Values []string `json:"values,omitempty"`
}

// MemberDataplane contains the properties of a member's dataplane that affect compilation and rendering. The adapter reports them,
// so that all programs compile the same units.
type MemberDataplane struct {
	// PolicyMapEntries is the capacity of the policy map of a workload in entries, on the node where it is smallest.
	//
	// +kubebuilder:validation:Minimum=1
	PolicyMapEntries int32 `json:"policyMapEntries"`
	// NoHTTP is the reason why rules about requests cannot be enforced in the member; empty if they can.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	NoHTTP string `json:"noHTTP,omitempty"`
	// NoHTTPCode and NoHTTPParams are NoHTTP for programs, as in the status of an AccessControlPolicy.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	NoHTTPCode string `json:"noHTTPCode,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	NoHTTPParams string `json:"noHTTPParams,omitempty"`
	// NoGroups reports whether the host cannot propagate groups of addresses to the members.
	//
	// +optional
	NoGroups bool `json:"noGroups,omitempty"`
	// Mesh is the cluster mesh that the member declares: a name, "none" for no mesh, or empty for the mesh of all members without
	// a declaration.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Mesh string `json:"mesh,omitempty"`
	// Identities is the number of pod identities, rounded up by at most an eighth; 0 if it is not known.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Identities int32 `json:"identities,omitempty"`
	// Labels lists the class labels that pods of the member have.
	//
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=key
	// +optional
	Labels []MemberLabel `json:"labels,omitempty"`
	// ValuesKnown reports whether Labels contain all values of the labels of all classes.
	//
	// +optional
	ValuesKnown bool `json:"valuesKnown,omitempty"`
}

// MemberDowngrade describes the manual downgrade of a member to audit.
type MemberDowngrade struct {
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// By is the person who downgraded the member.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	By string `json:"by,omitempty"`
	// Reason is the reason that the person gave.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`
}

// NodeReporting counts the nodes of a member by what acp-node reports about Cilium's agent on them. Each node is in one count.
type NodeReporting struct {
	// Total is the number of nodes on which an agent runs.
	//
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`
	// Reporting is the number of nodes with a recent report of a healthy agent.
	//
	// +kubebuilder:validation:Minimum=0
	Reporting int32 `json:"reporting"`
	// Unhealthy is the number of nodes with a recent report that the agent does not answer or is not healthy.
	//
	// +kubebuilder:validation:Minimum=0
	Unhealthy int32 `json:"unhealthy"`
	// Silent is the number of nodes without a recent report.
	//
	// +kubebuilder:validation:Minimum=0
	Silent int32 `json:"silent"`
	// UnhealthyNodes and SilentNodes are the names of the first nodes that are counted in unhealthy and silent, at most 10 each.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	UnhealthyNodes []string `json:"unhealthyNodes,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	SilentNodes []string `json:"silentNodes,omitempty"`
}

// MemberClusterSpec is empty, because a member is registered by its KubeFedCluster.
type MemberClusterSpec struct{}

// MemberClusterStatus is the observed state of a member.
type MemberClusterStatus struct {
	// State is absent until the adapter has read the member.
	//
	// +optional
	State MemberClusterState `json:"state,omitempty"`
	// Since is when State last changed.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Message states why the member is not Ready, and what to do.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// MessageCode and MessageParams are the message for programs, as in the status of an AccessControlPolicy.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	MessageCode string `json:"messageCode,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	MessageParams string `json:"messageParams,omitempty"`

	// Engine is the propagation engine that the member's registration names: kubefed, direct, ocm, or the name of an engine that does
	// not exist, by which nothing is written to the member.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Engine string `json:"engine,omitempty"`
	// ClusterProfile is the ClusterProfile (multicluster.x-k8s.io) that the member's registration names, as namespace/name; empty if the
	// member was registered without one. The registration alone decides what the member gets.
	//
	// +kubebuilder:validation:MaxLength=317
	// +optional
	ClusterProfile string `json:"clusterProfile,omitempty"`
	// Versions of the member's components; empty if a component is absent or its version is not known.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	CiliumVersion string `json:"ciliumVersion,omitempty"`
	// +kubebuilder:validation:MaxLength=63
	// +optional
	IstioVersion string `json:"istioVersion,omitempty"`
	// Labels are the labels of its KubeFedCluster, by which placements of classes select it.
	//
	// +kubebuilder:validation:MaxProperties=128
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Istio is the declaration of the member's Istio in the annotation acp.io/istio of its KubeFedCluster.
	//
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Istio string `json:"istio,omitempty"`
	// IstioRootNamespace is the root namespace of the member's Istio if it is not istio-system, to which policies are propagated. ACP
	// then enforces nothing by Istio in the member.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	IstioRootNamespace string `json:"istioRootNamespace,omitempty"`

	// Findings lists the findings, the most severe first.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Findings []MemberFinding `json:"findings,omitempty"`

	// Dataplane is absent until the member's dataplane has been read once.
	//
	// +optional
	Dataplane *MemberDataplane `json:"dataplane,omitempty"`

	// Identities is absent if the identities could not be read.
	//
	// +optional
	Identities *MemberIdentities `json:"identities,omitempty"`

	// +optional
	Objects MemberObjects `json:"objects,omitzero"`

	// PolicyMap is absent if nothing is placed in the member.
	//
	// +optional
	PolicyMap *MemberPolicyMap `json:"policyMap,omitempty"`

	// +optional
	Guard GuardState `json:"guard,omitempty"`

	// Nodes reports for how many nodes it is known what they enforce. It is absent if the member runs no acp-node, or if its
	// reports or its nodes cannot be read: then it is only known what the member's API server has accepted.
	//
	// +optional
	Nodes *NodeReporting `json:"nodes,omitempty"`

	// Downgrade is present while the member is manually downgraded to audit.
	//
	// +optional
	Downgrade *MemberDowngrade `json:"downgrade,omitempty"`

	// Conditions: Ready.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedAt is when the adapter last wrote a change of this status.
	//
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
}

// MemberCluster is the observed state of a member of the fleet. The adapter creates one for each KubeFedCluster, with the same
// name, and deletes it together with the registration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=acpm,categories=acps
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Engine",type=string,JSONPath=`.status.engine`
// +kubebuilder:printcolumn:name="Kubernetes",type=string,JSONPath=`.status.kubernetesVersion`
// +kubebuilder:printcolumn:name="Cilium",type=string,JSONPath=`.status.ciliumVersion`
// +kubebuilder:printcolumn:name="Realized",type=integer,JSONPath=`.status.objects.realized`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.objects.pending`
// +kubebuilder:printcolumn:name="Identities",type=integer,JSONPath=`.status.identities.used`
// +kubebuilder:printcolumn:name="Guard",type=string,JSONPath=`.status.guard`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.since`
type MemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec MemberClusterSpec `json:"spec,omitzero"`
	// +optional
	Status MemberClusterStatus `json:"status,omitzero"`
}

// MemberClusterList is a list of MemberCluster.
//
// +kubebuilder:object:root=true
type MemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemberCluster `json:"items"`
}
