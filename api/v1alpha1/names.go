package v1alpha1

// ResourceName is the name of a subject or a resource: trnv1:rsc:<org>:<service>:<type>:<id>, where org, service and
// type are DNS labels and id is everything after the fifth colon. A single "*" may stand at the end of id. Names are
// case-sensitive and at most 512 bytes.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^trnv1:rsc:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[^*\s]*[^\s]$`
type ResourceName string

// Subject is a ResourceName, or "*" for any client, including those outside the fleet.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^(\*|trnv1:rsc:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[^*\s]*[^\s])$`
type Subject string

// Action is "<service>:<verb>" or "<service>:*", for example "redis:connect".
//
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=127
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:(\*|[a-z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)$`
type Action string

// NamePattern is a ResourceName whose id ends in "*". It matches the names of one class. The part that "*" stands for is the
// value of the class's pod label.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^trnv1:rsc:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?:[^*\s]*\*$`
type NamePattern string

// LabelKey is a pod label key, for example "com.trip/appid".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
type LabelKey string

// ClusterName is the name of a member cluster, as its KubeFedCluster has it.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type ClusterName string
