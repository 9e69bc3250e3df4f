package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OrganizationName is the name of an Organization.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type OrganizationName string

// TeamName is the id of a group in the catalog.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.@]*[A-Za-z0-9])?$`
type TeamName string

// OrganizationAdministrator is "group:<name>" or "person:<name>".
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^(group|person):[A-Za-z0-9]([-A-Za-z0-9_.@]*[A-Za-z0-9])?$`
type OrganizationAdministrator string

// Sensitivity is the sensitivity of a resource in the catalog.
//
// +kubebuilder:validation:Enum=low;medium;high
type Sensitivity string

// EntityKind is a kind of the catalog that the administrators of an organization may change. People and groups are none of them, because
// groups give rights.
//
// +kubebuilder:validation:Enum=application;resource
type EntityKind string

// EnvironmentName is the environment of an application or a resource in the catalog.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
type EnvironmentName string

// ClusterBounds limits the members in which classes place their resources. Names limit placements by name, and matchLabels limit
// placements by labels. A placement of a form without a bound is outside of the bounds.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.matchLabels)",message="set names, matchLabels or both"
type ClusterBounds struct {
	// Names are the members that a placement may name.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=512
	// +listType=set
	// +optional
	Names []ClusterName `json:"names,omitempty"`

	// MatchLabels are the labels that the clusterSelector of a placement must require.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// ClassBounds limits the ResourceClasses of an organization.
type ClassBounds struct {
	// Patterns cover the patterns of the classes.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	Patterns []NamePattern `json:"patterns"`

	// LabelKeys are the pod labels that the classes may use. A label of another organization's workloads does not belong here, because
	// a class selects every pod that has its label.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	LabelKeys []LabelKey `json:"labelKeys"`

	// Enforcers are the enforcers that the classes may use.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=set
	Enforcers []EnforcerName `json:"enforcers"`

	// Sensitivities are those of the resources that may use the classes.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	Sensitivities []Sensitivity `json:"sensitivities"`

	// Actions are the actions that the classes may define. If absent, they may define every action.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Actions []Action `json:"actions,omitempty"`

	// DefaultModes are the modes that the classes may have as defaultMode. A class without a defaultMode is always within the bounds.
	//
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	// +optional
	DefaultModes []Mode `json:"defaultModes,omitempty"`

	// AllowOtherPorts lets the classes open the ports of no action to every source (otherPorts: Allow).
	//
	// +optional
	AllowOtherPorts bool `json:"allowOtherPorts,omitempty"`

	// RequireWaves requires that a change to Enforce reaches the members in waves (rollout).
	//
	// +optional
	RequireWaves bool `json:"requireWaves,omitempty"`

	// Clusters limits the placements of the classes. If absent, they may place their resources in every member.
	//
	// +optional
	Clusters *ClusterBounds `json:"clusters,omitempty"`
}

// CatalogBounds limits the applications and resources that the administrators of an organization may create, change and retire. They hold
// for an entity before and after a change. All owners of the entity must be teams of the organization.
//
// +kubebuilder:validation:XValidation:rule="has(self.sensitivities) == ('resource' in self.kinds)",message="set sensitivities if kinds contains resource, and only then"
type CatalogBounds struct {
	// Patterns cover the names of the entities. Whoever creates an entity decides which team owns its name, so a pattern must cover only
	// names of the organization.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	Patterns []NamePattern `json:"patterns"`

	// Kinds are the kinds of the entities.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +listType=set
	Kinds []EntityKind `json:"kinds"`

	// Sensitivities are those of the resources.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	// +optional
	Sensitivities []Sensitivity `json:"sensitivities,omitempty"`

	// Environments are those of the entities. If absent, the entities have no environment, because approval policies can depend on it.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	Environments []EnvironmentName `json:"environments,omitempty"`
}

// ApprovalBounds limits the ApprovalPolicies of an organization. They can never define break-glass access, and never let one person
// fill several steps.
type ApprovalBounds struct {
	// MaxDuration is the longest maxDuration that the policies may have. Each of them must then have one.
	//
	// +optional
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`

	// AllowAutoApprove lets the policies approve their own steps automatically.
	//
	// +optional
	AllowAutoApprove bool `json:"allowAutoApprove,omitempty"`

	// AllowReplaceOwners lets the policies replace the step of the resource's owners (replaceOwners).
	//
	// +optional
	AllowReplaceOwners bool `json:"allowReplaceOwners,omitempty"`
}

// OrganizationBounds limits what the administrators of an organization may manage.
type OrganizationBounds struct {
	// Classes limits the ResourceClasses of the organization. If absent, the organization has none.
	//
	// +optional
	Classes *ClassBounds `json:"classes,omitempty"`

	// Approvals limits the ApprovalPolicies of the organization. If absent, the organization has none.
	//
	// +optional
	Approvals *ApprovalBounds `json:"approvals,omitempty"`

	// Catalog limits the applications and resources that the administrators may change. If absent, they may not change the catalog.
	//
	// +optional
	Catalog *CatalogBounds `json:"catalog,omitempty"`
}

// OrganizationSpec defines a set of teams, who administers it, and within which bounds.
type OrganizationSpec struct {
	// Title is the displayed name. If absent, the name is displayed.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Title string `json:"title,omitempty"`

	// Teams are groups of the catalog. A team that several organizations name belongs to none of them.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=set
	Teams []TeamName `json:"teams"`

	// Administrators may request changes of the classes and approval policies of the organization, and decide about those of other
	// people. Within the bounds they change the applications and resources of its teams.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +listType=set
	Administrators []OrganizationAdministrator `json:"administrators"`

	// Bounds are set by the security team. Without bounds the administrators may manage nothing.
	//
	// +optional
	Bounds OrganizationBounds `json:"bounds,omitempty"`
}

// OrganizationStatus reports whether an organization is accepted.
type OrganizationStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Accepted.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Organization is a set of teams whose administrators manage its classes, approval policies and part of the catalog within bounds. Only
// the security team may write it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=acporg,categories=acps
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name of an organization has at most 63 characters"
type Organization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OrganizationSpec `json:"spec"`
	// +optional
	Status OrganizationStatus `json:"status,omitempty"`
}

// OrganizationList is a list of Organization.
//
// +kubebuilder:object:root=true
type OrganizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Organization `json:"items"`
}
