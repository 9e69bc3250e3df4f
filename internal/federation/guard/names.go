package guard

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/internal/federation/objectkind"
)

// Names of accounts, groups and objects in a member.
const (
	// Namespace contains ACP's accounts and the mark of a downgrade in a member.
	Namespace = "acp-system"
	// Pusher is the user as which KubeFed writes in a member.
	Pusher = "system:serviceaccount:" + Namespace + ":acp-pusher"
	// DirectWriter is the user as which the adapter itself writes in a member that uses the direct engine.
	DirectWriter = "system:serviceaccount:" + Namespace + ":acp-direct"
	// WorkAgent is the user as which the work agent of Open Cluster Management writes in a member. The Klusterlet creates the account (OCM
	// v1.0.0, manifests/klusterlet/managed).
	WorkAgent = "system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa"
	// BreakGlass is the group that may change managed objects directly and downgrade a member.
	BreakGlass = "acp:break-glass"
	// DowngradeMarkName is the name of the ConfigMap whose presence marks the member as downgraded; see DowngradeMark.
	DowngradeMarkName = "acp-downgrade"
	// IstioRoot is Istio's root namespace, which contains ACP's AuthorizationPolicies.
	IstioRoot = objectkind.IstioRoot
)

// Names of the guard's ValidatingAdmissionPolicies; their bindings have the same names.
const (
	// PolicyWriters restricts who may write managed objects.
	PolicyWriters = "acp-guard"
	// PolicyDowngrade refuses writes of the pusher while the member has the downgrade mark.
	PolicyDowngrade = "acp-guard-downgrade"
	// PolicyClassLabels restricts who may set the classes' labels on pods and use the classes' service accounts. It is optional.
	PolicyClassLabels = "acp-class-labels"
)

// LabelGroup, LabelResource and LabelVerb are the right that a user needs in the namespace to set a class's label. The
// name of the resource is the label as KEY=VALUE. Nothing serves such a resource; only the right is checked.
const (
	// LabelGroup is the API group of the right.
	LabelGroup = "acp.io"
	// LabelResource is the resource of the right.
	LabelResource = "classlabels"
	// LabelVerb is the verb of the right.
	LabelVerb = "set"
)

// AccountResource and AccountVerb are the right that a user needs in the namespace to create or use a service account
// by which Istio identifies a client. The name of the resource is the name of the account. Nothing serves such a
// resource.
const (
	// AccountResource is the resource of the right, in LabelGroup.
	AccountResource = "classserviceaccounts"
	// AccountVerb is the verb of the right.
	AccountVerb = "use"
)

// Resources of the policies and of their bindings.
var (
	// PolicyResource is the resource of ValidatingAdmissionPolicies.
	PolicyResource = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	// BindingResource is the resource of ValidatingAdmissionPolicyBindings.
	BindingResource = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
)
