package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MemberClusterState is how a member stands. Of several that hold, the first of Quarantined, Downgraded, Leaving and
// Unreachable counts.
//
// +kubebuilder:validation:Enum=Ready;Unreachable;Quarantined;Downgraded;Leaving
type MemberClusterState string

const (
	// MemberClusterReady: the member answers, and nothing keeps it from getting what is placed there.
	MemberClusterReady MemberClusterState = "Ready"
	// MemberClusterUnreachable: the member cannot be read. What was enforced there still is, and nothing new arrives.
	MemberClusterUnreachable MemberClusterState = "Unreachable"
	// MemberClusterQuarantined: the member failed its preflight so that it would stop KubeFed for the others; KubeFed is kept
	// from it.
	MemberClusterQuarantined MemberClusterState = "Quarantined"
	// MemberClusterDowngraded: an operator turned the member to audit without the control plane. Nothing is written there.
	MemberClusterDowngraded MemberClusterState = "Downgraded"
	// MemberClusterLeaving: the member is being taken out of the fleet.
	MemberClusterLeaving MemberClusterState = "Leaving"
)

// GuardState tells whether a member's admission refuses strangers' changes of what ACP manages there.
//
// +kubebuilder:validation:Enum=Present;Missing;Changed;Unknown
type GuardState string

const (
	// GuardPresent: the guard is there as ACP wrote it.
	GuardPresent GuardState = "Present"
	// GuardMissing: there is none; changes by hand are seen and repaired, but not refused.
	GuardMissing GuardState = "Missing"
	// GuardChanged: there is one, and not as ACP wrote it.
	GuardChanged GuardState = "Changed"
	// GuardUnknown: nobody could look.
	GuardUnknown GuardState = "Unknown"
)

// FindingSeverity is how bad a finding is.
//
// +kubebuilder:validation:Enum=Stops;Fails;Warns
type FindingSeverity string

const (
	// FindingStops: while KubeFed counts the member as ready, a kind would stop for every member.
	FindingStops FindingSeverity = "Stops"
	// FindingFails: what is pushed would not be enforced, or would mean something else than it says.
	FindingFails FindingSeverity = "Fails"
	// FindingWarns: something to know.
	FindingWarns FindingSeverity = "Warns"
)

// Codes of findings that the adapter adds to those of the preflight.
const (
	// FindingIdentitiesFilling: more than 70 % of the member's identities are used.
	FindingIdentitiesFilling = "IdentitiesFilling"
	// FindingIdentitiesFull: more than 90 % are. New pods without an identity get no network.
	FindingIdentitiesFull = "IdentitiesFull"
	// FindingPolicyMapFilling: the heaviest unit fills more than half of a workload's policy map.
	FindingPolicyMapFilling = "PolicyMapFilling"
	// FindingOrphan: a policy looks like ACP's, by its name or its label, and nothing on the host asks for it.
	FindingOrphan = "Orphan"
	// FindingNoHTTP: Cilium's rules about requests are not enforced in the member, so they are refused there. It is a finding of
	// the preflight.
	FindingNoHTTP = "NoHTTP"
)

// MemberFinding is one thing that was found in a member.
type MemberFinding struct {
	// Code is what programs rely on.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Code     string          `json:"code"`
	Severity FindingSeverity `json:"severity"`
	// Message says what it is, and what to do.
	//
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
	// Object is what the finding is about, when it is about less than the member.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Object string `json:"object,omitempty"`
}

// IdentityLabel is a label key that tells identities apart.
type IdentityLabel struct {
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`
	// Values is how many different values the key has.
	//
	// +kubebuilder:validation:Minimum=1
	Values int32 `json:"values"`
}

// MemberIdentities is how many identities of pods a member has. Pods with the same labels share one.
type MemberIdentities struct {
	// +kubebuilder:validation:Minimum=0
	Used int32 `json:"used"`
	// Limit is how many the member can have.
	//
	// +kubebuilder:validation:Minimum=1
	Limit int32 `json:"limit"`
	// Labels are the keys with the most values, the most first.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=key
	// +optional
	Labels     []IdentityLabel `json:"labels,omitempty"`
	ObservedAt metav1.Time     `json:"observedAt"`
}

// MemberObjects counts the units that a member has to have, has, or may have.
type MemberObjects struct {
	// Managed are all of them.
	//
	// +kubebuilder:validation:Minimum=0
	Managed int32 `json:"managed"`
	// Realized are as they have to be.
	//
	// +kubebuilder:validation:Minimum=0
	Realized int32 `json:"realized"`
	// Pending are not there yet, or are older, or nobody can tell: the member is away or quarantined.
	//
	// +kubebuilder:validation:Minimum=0
	Pending int32 `json:"pending"`
	// Drifted were changed in the member.
	//
	// +kubebuilder:validation:Minimum=0
	Drifted int32 `json:"drifted"`
	// Leaked are there though they should not be.
	//
	// +kubebuilder:validation:Minimum=0
	Leaked int32 `json:"leaked"`
	// Overridden are there, and a policy that is not ACP's lets more in.
	//
	// +kubebuilder:validation:Minimum=0
	Overridden int32 `json:"overridden"`
}

// MemberPolicyMap is what the heaviest unit of a member needs of a workload's policy map, estimated.
type MemberPolicyMap struct {
	// Highest is in entries.
	//
	// +kubebuilder:validation:Minimum=0
	Highest int32 `json:"highest"`
	// Limit is how many entries the policy map of a workload has there.
	//
	// +kubebuilder:validation:Minimum=1
	Limit int32 `json:"limit"`
	// Unit is the resource whose unit it is.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Unit string `json:"unit,omitempty"`
}

// NoMesh is the Mesh of a member that is in no cluster mesh.
const NoMesh = "none"

// MemberLabel is how many identities of pods in a member have the label of a class. The numbers are upper bounds, rounded so that
// they change seldom.
type MemberLabel struct {
	Key LabelKey `json:"key"`
	// Identities is how many have the label, rounded up by at most an eighth.
	//
	// +kubebuilder:validation:Minimum=1
	Identities int32 `json:"identities"`
	// Most is how many have the value that most of them have, rounded up to a power of two: pods of one name in several namespaces,
	// or with several service accounts, have an identity each.
	//
	// +kubebuilder:validation:Minimum=1
	Most int32 `json:"most"`
	// Values are the values of the label. They are there only while members of the fleet are in several cluster meshes, and only as
	// far as the list is complete.
	//
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Values []string `json:"values,omitempty"`
}

// MemberDataplane is what the compiler and the enforcers take into account about a member's dataplane. The adapter reports it, so
// that every program compiles and renders the same.
type MemberDataplane struct {
	// PolicyMapEntries is how many entries the policy map of a workload has, on the node where it has the fewest.
	//
	// +kubebuilder:validation:Minimum=1
	PolicyMapEntries int32 `json:"policyMapEntries"`
	// NoHTTP says why rules about requests cannot be enforced there; empty: they can.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	NoHTTP string `json:"noHTTP,omitempty"`
	// NoGroups tells that the host cannot bring groups of addresses to the members.
	//
	// +optional
	NoGroups bool `json:"noGroups,omitempty"`
	// Mesh is the cluster mesh that the member declares: a name, "none" for no mesh, or empty, which is the mesh of all members that
	// declare nothing.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Mesh string `json:"mesh,omitempty"`
	// Identities is how many identities of pods there are, rounded up by at most an eighth; 0: not known.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Identities int32 `json:"identities,omitempty"`
	// Labels are those of classes that pods of the member have.
	//
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=key
	// +optional
	Labels []MemberLabel `json:"labels,omitempty"`
	// ValuesKnown tells that Labels have all values of all classes' labels.
	//
	// +optional
	ValuesKnown bool `json:"valuesKnown,omitempty"`
}

// MemberDowngrade is the mark in a member that was turned to audit by hand.
type MemberDowngrade struct {
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// By is who did it.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	By string `json:"by,omitempty"`
	// Reason in the words of who did it.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`
}

// MemberClusterSpec is empty: a member is registered by its KubeFedCluster.
type MemberClusterSpec struct{}

// MemberClusterStatus is what the adapter knows of a member.
type MemberClusterStatus struct {
	// State is absent until the adapter has looked.
	//
	// +optional
	State MemberClusterState `json:"state,omitempty"`
	// Since is when State came about.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Message says why the state is not Ready, and what to do.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// Versions as the member tells them; empty: not known, or not there.
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
	// Labels of its KubeFedCluster, by which classes place.
	//
	// +kubebuilder:validation:MaxProperties=128
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Istio is what the member declares of its Istio, from the annotation acp.io/istio of its KubeFedCluster.
	//
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	Istio string `json:"istio,omitempty"`
	// IstioRootNamespace is the root namespace of its Istio, where that is not istio-system, to which policies are carried. Then nothing of
	// Istio is enforced there.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	IstioRootNamespace string `json:"istioRootNamespace,omitempty"`

	// Findings, the worst first.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Findings []MemberFinding `json:"findings,omitempty"`

	// Dataplane is absent until the member's dataplane was read once.
	//
	// +optional
	Dataplane *MemberDataplane `json:"dataplane,omitempty"`

	// Identities are absent when they could not be read.
	//
	// +optional
	Identities *MemberIdentities `json:"identities,omitempty"`

	// +optional
	Objects MemberObjects `json:"objects,omitzero"`

	// PolicyMap is absent when nothing is placed in the member.
	//
	// +optional
	PolicyMap *MemberPolicyMap `json:"policyMap,omitempty"`

	// +optional
	Guard GuardState `json:"guard,omitempty"`

	// Downgrade is absent when nobody turned the member to audit by hand.
	//
	// +optional
	Downgrade *MemberDowngrade `json:"downgrade,omitempty"`

	// Conditions: Ready.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedAt is when the adapter last found something new to write here.
	//
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
}

// MemberCluster tells how a member of the fleet stands. The adapter makes one for each KubeFedCluster, with its name, and
// removes it with the registration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=acpm,categories=acps
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
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
