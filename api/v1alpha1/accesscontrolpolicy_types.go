package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Effect determines whether a statement allows or denies.
//
// +kubebuilder:validation:Enum=Allow;Deny
type Effect string

const (
	// EffectAllow grants the actions.
	EffectAllow Effect = "Allow"
	// EffectDeny refuses the actions. It takes precedence over Allow.
	EffectDeny Effect = "Deny"
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

	// Actions are the names of what the subjects may do. The class of a resource defines the ports of each action.
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

	// NotBefore is the first instant at which the statement counts. If absent, it counts at once.
	//
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// NotAfter is the first instant at which the statement no longer counts. If absent, it does not expire.
	//
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`

	// Hours restricts the statement to recurring hours. If absent, it counts at any hour.
	//
	// +optional
	Hours *WeeklyHours `json:"hours,omitempty"`
}

// WeeklyHours are recurring hours of the week, by the clocks of a time zone. An hour that the clocks skip or repeat, because daylight
// saving time begins or ends, is skipped or counts twice.
type WeeklyHours struct {
	// TimeZone is the name of a time zone of the IANA database, for example "Europe/Berlin" or "UTC".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`
	// +kubebuilder:validation:XValidation:rule="self != 'Local'",message="name a time zone, for example UTC"
	TimeZone string `json:"timeZone"`

	// Periods may overlap.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Periods []DailyPeriod `json:"periods"`
}

// DailyPeriod is the same period of some days of the week.
//
// +kubebuilder:validation:XValidation:rule="self.from != self.to",message="from and to must differ: a whole day is from 00:00 to 24:00"
type DailyPeriod struct {
	// Days are the days on which the period begins.
	//
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	Days []Weekday `json:"days"`

	// From is the first minute, as HH:MM.
	//
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	From string `json:"from"`

	// To is the first minute after the period, as HH:MM, at most 24:00. If it is earlier than From, the period ends on the next day.
	//
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:Pattern=`^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$`
	To string `json:"to"`
}

// Weekday is a day of the week.
//
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Weekday string

// Weekdays are the days of the week in their order.
func Weekdays() []Weekday { return []Weekday{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"} }

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

// RefusedStatement is a statement, or one of its subjects or resources, that is not enforced, with the reason.
type RefusedStatement struct {
	SID string `json:"sid"`
	// Reason is one of the Reason constants for refusals.
	//
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// Message names the part that cannot be enforced and states what to do.
	//
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
	// MessageCode and MessageParams are the message for programs, which show it in other languages: its code in the
	// catalogue of messages, and the JSON object of its parameters. Both are absent if message is the text of another
	// program, or was shortened.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	MessageCode string `json:"messageCode,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	MessageParams string `json:"messageParams,omitempty"`
}

// PolicyUnit is the state of one compiled unit that contains statements of this policy.
//
// The status of a policy with very many units has no room for all details. It omits groups first, then clusters, then
// sids; the counts always include what is omitted.
type PolicyUnit struct {
	// Resource is the name or wildcard of the resources that the unit protects.
	Resource ResourceName `json:"resource"`
	// SIDs are the sids of the statements of this policy that the unit contains.
	//
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +optional
	SIDs []string `json:"sids,omitempty"`
	// Statements is the number of statements of this policy that the unit contains. If there is no room for their sids, sids is
	// empty.
	//
	// +optional
	Statements int32 `json:"statements,omitempty"`
	// Revision is the hash of the objects that every targeted member must have.
	//
	// +optional
	Revision string `json:"revision,omitempty"`
	// Members counts the members that the unit targets or in which it was observed.
	//
	// +optional
	Members *MemberCounts `json:"members,omitempty"`
	// Clusters lists the members in the worst states, at most three, the worst first. (Earlier versions of the
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
	// Details is the kind and name of the object whose status lists all members, if there is no room for them here.
	//
	// +kubebuilder:validation:MaxLength=320
	// +optional
	Details string `json:"details,omitempty"`
}

// AccessControlPolicyStatus is the observed state of the policy, as of the generation in ObservedGeneration.
type AccessControlPolicyStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Accepted, Compiled, Propagated, Realized.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Units lists the units that contain statements of this policy. A statement about a resource that is not onboarded is in no unit.
	//
	// If there is no room for all of them, realized ones are omitted.
	//
	// +listType=map
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=10000
	// +optional
	Units []PolicyUnit `json:"units,omitempty"`

	// UnitsTotal is the number of units, including those that are not listed.
	//
	// +optional
	UnitsTotal int32 `json:"unitsTotal,omitempty"`

	// UnitsRealized is the number of units that are realized in every targeted member and absent from all others.
	//
	// +optional
	UnitsRealized int32 `json:"unitsRealized,omitempty"`

	// Refused lists statements that are not enforced anywhere. If there is no room for all of them, refusedOthers names the others.
	//
	// +kubebuilder:validation:MaxItems=10000
	// +optional
	Refused []RefusedStatement `json:"refused,omitempty"`

	// RefusedOthers are the sids of the refused statements that are not listed in refused.
	//
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +optional
	RefusedOthers []string `json:"refusedOthers,omitempty"`
}

// AccessControlPolicy defines which subjects may perform which actions on which resources, by names that do not depend on a dataplane.
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
