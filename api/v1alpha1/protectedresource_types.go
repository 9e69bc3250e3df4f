package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Mode is the enforcement mode of a resource.
//
// +kubebuilder:validation:Enum=Observe;Audit;Enforce
type Mode string

const (
	// ModeObserve means that nothing is written to the members, and flows are recorded.
	ModeObserve Mode = "Observe"
	// ModeAudit means that all connections are allowed, and those that Enforce would refuse are reported.
	ModeAudit Mode = "Audit"
	// ModeEnforce means that only connections that statements allow are let in.
	ModeEnforce Mode = "Enforce"
)

// ClusterMode is the mode of a resource in one member cluster.
type ClusterMode struct {
	Cluster ClusterName `json:"cluster"`
	Mode    Mode        `json:"mode"`
}

// TemporaryAudit switches an enforced resource to Audit until an instant.
type TemporaryAudit struct {
	// Until is the first instant at which the resource's own mode counts again.
	Until metav1.Time `json:"until"`
	// Reason is the reason that the person gave.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// By is the person who switched the resource to Audit.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by"`

	// Scope is the downgrade of many resources that this is a part of: all, or class/ and the class's name. Empty: the
	// resource alone.
	//
	// +kubebuilder:validation:MaxLength=260
	// +optional
	Scope string `json:"scope,omitempty"`
}

// ProtectedResourceSpec is the desired protection of one server.
//
// +kubebuilder:validation:XValidation:rule="self.resource == oldSelf.resource",message="resource is immutable: create a new ProtectedResource"
type ProtectedResourceSpec struct {
	// Resource is the server's name, without wildcard.
	//
	// +kubebuilder:validation:XValidation:rule="!self.endsWith('*')",message="resource must be an exact name, without wildcard"
	Resource ResourceName `json:"resource"`

	Mode Mode `json:"mode"`

	// ClusterModes override Mode in single members.
	//
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=512
	// +optional
	ClusterModes []ClusterMode `json:"clusterModes,omitempty"`

	// +optional
	TemporaryAudit *TemporaryAudit `json:"temporaryAudit,omitempty"`
}

// MemberState is the state of a unit in one member cluster, as read back from it.
//
// +kubebuilder:validation:Enum=Pending;Realized;Drifted;Unreachable;Leaked;Overridden;Quarantined;Downgraded
type MemberState string

const (
	// MemberPending means that the member does not have the desired revision yet, or has it and does not enforce it as intended; the
	// message states why.
	MemberPending MemberState = "Pending"
	// MemberRealized means that the member has the desired revision, or correctly has none, and nothing known prevents its intended
	// effect.
	MemberRealized MemberState = "Realized"
	// MemberDrifted means that the object differs from what ACP wrote.
	MemberDrifted MemberState = "Drifted"
	// MemberUnreachable means that the member cannot be read.
	MemberUnreachable MemberState = "Unreachable"
	// MemberLeaked means that the object exists although it must not.
	MemberLeaked MemberState = "Leaked"
	// MemberOverridden means that a policy that is not ACP's allows more on the workloads of the resource.
	MemberOverridden MemberState = "Overridden"
	// MemberQuarantined means that the member failed its preflight, so nothing is propagated to it.
	MemberQuarantined MemberState = "Quarantined"
	// MemberDowngraded means that the member was manually downgraded to audit, and nothing is written to it until it is resumed.
	MemberDowngraded MemberState = "Downgraded"
)

// ClusterState is the observed state of a unit in one member cluster.
type ClusterState struct {
	Name  ClusterName `json:"name"`
	State MemberState `json:"state"`

	// Mode is the effective mode in this member.
	//
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// DesiredRevision is the revision that the member must have; empty if it must have no objects.
	//
	// +optional
	DesiredRevision string `json:"desiredRevision,omitempty"`

	// ObservedRevision is computed from the objects that were read back; empty if there were none.
	//
	// +optional
	ObservedRevision string `json:"observedRevision,omitempty"`

	// Propagated reports whether KubeFed wrote the current generation to the member, or it was read back there.
	//
	// +optional
	Propagated bool `json:"propagated,omitempty"`

	// Since is when State or ObservedRevision last changed, by the adapter's clock.
	//
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`

	// Message states why the unit is not Realized, and what to do.
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
}

// ProtectedResourceStatus is the observed state of one server in the members.
type ProtectedResourceStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Accepted, Compiled, Propagated, Realized.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Revision is the hash of the unit's rendered template.
	//
	// +optional
	Revision string `json:"revision,omitempty"`

	// EffectiveMode is Mode, or Audit while a temporary audit lasts, or while Enforce has not begun in all members.
	//
	// +optional
	EffectiveMode Mode `json:"effectiveMode,omitempty"`

	// Statements is the number of statements in the unit.
	//
	// +optional
	Statements int32 `json:"statements,omitempty"`

	// Members counts the members that the unit targets, or that once had it and were not yet observed without it.
	//
	// +optional
	Members *MemberCounts `json:"members,omitempty"`

	// Clusters lists the members in the worst states, at most 20, the worst first. (Earlier versions of the
	// adapter listed every member here.)
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10000
	// +optional
	Clusters []ClusterState `json:"clusters,omitempty"`

	// Groups lists the members that are not in clusters, grouped by equal properties.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Groups []MemberGroup `json:"groups,omitempty"`

	// Nodes reports on how many nodes Cilium's agents enforce the wanted revision. It is absent if no targeted member runs
	// acp-node: then it is only known that the members' API servers have accepted the revision.
	//
	// +optional
	Nodes *NodeSummary `json:"nodes,omitempty"`

	// Rollout says in which members Enforce counts. It is set if the resource's class has waves. Unlike the other fields, it is not derived:
	// decisions depend on it.
	//
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`
}

// NodeSummary counts the nodes of the members that run acp-node.
type NodeSummary struct {
	// Members is the number of targeted members that run acp-node. The other members are not counted.
	//
	// +optional
	Members int32 `json:"members,omitempty"`

	NodeCounts `json:",inline"`

	// Clusters lists members in which a node is not realized, at most 10, those with the most such nodes first.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Clusters []MemberNodes `json:"clusters,omitempty"`
}

// NodeCounts counts nodes.
type NodeCounts struct {
	// Total is the number of nodes.
	//
	// +optional
	Total int32 `json:"total,omitempty"`
	// Realized is the number of nodes whose agent has the wanted revision, and on which every endpoint enforces it.
	//
	// +optional
	Realized int32 `json:"realized,omitempty"`
	// Lagging is the number of nodes whose agent does not have the wanted revision, or on which an endpoint does not enforce it yet.
	//
	// +optional
	Lagging int32 `json:"lagging,omitempty"`
	// Unknown is the number of nodes without a recent report of a healthy agent.
	//
	// +optional
	Unknown int32 `json:"unknown,omitempty"`
}

// MemberNodes is the state of a unit on the nodes of one member.
type MemberNodes struct {
	Name ClusterName `json:"name"`

	NodeCounts `json:",inline"`

	// LaggingNodes and UnknownNodes are the names of the first nodes that are counted in lagging and unknown, at most 3 each.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	// +optional
	LaggingNodes []string `json:"laggingNodes,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	// +optional
	UnknownNodes []string `json:"unknownNodes,omitempty"`
}

// ProtectedResource is one onboarded server. Only a ProtectedResource in Enforce closes anything.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=acpr,categories=acps
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.spec.resource`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.effectiveMode`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Realized",type=string,JSONPath=`.status.conditions[?(@.type=="Realized")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProtectedResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProtectedResourceSpec `json:"spec"`
	// +optional
	Status ProtectedResourceStatus `json:"status,omitempty"`
}

// ProtectedResourceList is a list of ProtectedResource.
//
// +kubebuilder:object:root=true
type ProtectedResourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProtectedResource `json:"items"`
}
