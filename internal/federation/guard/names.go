package guard

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Who is admitted, and what is looked at.
const (
	// Namespace holds ACP's accounts and the mark of a downgrade in a member.
	Namespace = "acp-system"
	// Pusher is the user that KubeFed is in a member.
	Pusher = "system:serviceaccount:" + Namespace + ":acp-pusher"
	// BreakGlass is the group of those who may change managed objects by hand, and downgrade a member.
	BreakGlass = "acp:break-glass"
	// Mark is the ConfigMap whose presence says that the member is downgraded.
	Mark = "acp-downgrade"
	// IstioRoot is Istio's root namespace, where ACP's AuthorizationPolicies are.
	IstioRoot = "istio-system"
)

// Names of the policies; their bindings have the same.
const (
	// Writers says who may write managed objects.
	Writers = "acp-guard"
	// Downgraded refuses the pusher while the mark is there.
	Downgraded = "acp-guard-downgrade"
	// ClassLabels restricts who may set the classes' labels on pods and use the classes' service accounts. It is optional.
	ClassLabels = "acp-class-labels"
)

// LabelGroup, LabelResource and LabelVerb are what a user needs to be allowed, in the namespace, to set a class's label:
// the name of the resource is the label as KEY=VALUE. Nothing serves such a resource; the right alone counts.
const (
	LabelGroup    = "acp.io"
	LabelResource = "classlabels"
	LabelVerb     = "set"
)

// AccountResource and AccountVerb are what a user needs to be allowed, in the namespace, to create or use a service account by
// which Istio identifies a client: the name of the resource is the name of the account. Nothing serves such a resource.
const (
	AccountResource = "classserviceaccounts"
	AccountVerb     = "use"
)

// Resources of the policies and of their bindings.
var (
	PolicyResource  = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	BindingResource = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
)
