package federation

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/guard"
)

// Kind pairs an object kind of the members with the Federated kind of the host that carries it.
type Kind struct {
	// Target is the kind in the members.
	Target schema.GroupVersionKind
	// TargetResource is Target's resource.
	TargetResource schema.GroupVersionResource
	// Federated is the kind in the host.
	Federated schema.GroupVersionKind
	// FederatedResource is Federated's resource.
	FederatedResource schema.GroupVersionResource
	// Namespaced: Target is a kind of namespaces, of which all are read.
	Namespaced bool
	// Namespace, when set, is the only one of the members that is read, and that of the Federated objects on the host. Name,
	// when set, is that of the only object that is read.
	Namespace, Name string
}

// Key is what an object of the kind is found by among those of several kinds. The objects of a unit have one name in all
// dataplanes.
func (k Kind) Key(name string) string {
	if k.Namespace == "" {
		return name
	}
	return k.Namespace + "/" + name
}

// selector picks the only object that is read; "": all are.
func (k Kind) selector() string {
	if k.Name == "" {
		return ""
	}
	return fields.OneTermEqualSelector("metadata.name", k.Name).String()
}

// CiliumPolicy carries Cilium's cluster-wide policies.
var CiliumPolicy = Kind{
	Target:            schema.GroupVersionKind{Group: "cilium.io", Version: "v2", Kind: "CiliumClusterwideNetworkPolicy"},
	TargetResource:    schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"},
	Federated:         schema.GroupVersionKind{Group: "types.kubefed.io", Version: "v1beta1", Kind: "FederatedCiliumClusterwideNetworkPolicy"},
	FederatedResource: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumclusterwidenetworkpolicies"},
}

// CiliumGroup carries Cilium's groups of addresses.
var CiliumGroup = Kind{
	Target:            schema.GroupVersionKind{Group: "cilium.io", Version: "v2", Kind: "CiliumCIDRGroup"},
	TargetResource:    schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumcidrgroups"},
	Federated:         schema.GroupVersionKind{Group: "types.kubefed.io", Version: "v1beta1", Kind: "FederatedCiliumCIDRGroup"},
	FederatedResource: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumcidrgroups"},
}

// IstioPolicy carries Istio's policies, in its root namespace.
var IstioPolicy = Kind{
	Target:            schema.GroupVersionKind{Group: "security.istio.io", Version: "v1", Kind: "AuthorizationPolicy"},
	TargetResource:    schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"},
	Federated:         schema.GroupVersionKind{Group: "types.kubefed.io", Version: "v1beta1", Kind: "FederatedAuthorizationPolicy"},
	FederatedResource: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedauthorizationpolicies"},
	Namespace:         guard.IstioRoot,
}

// ciliumIdentity is Cilium's identity of like pods in a member. Agents write it; nothing carries it.
var ciliumIdentity = Kind{
	Target:         schema.GroupVersionKind{Group: "cilium.io", Version: "v2", Kind: "CiliumIdentity"},
	TargetResource: schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumidentities"},
}

// Kinds whose policies let connections in beside ACP's. Nothing of ACP carries them.
var (
	networkPolicy = Kind{
		Target:         schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		TargetResource: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		Namespaced:     true,
	}
	ciliumNetworkPolicy = Kind{
		Target:         schema.GroupVersionKind{Group: "cilium.io", Version: "v2", Kind: "CiliumNetworkPolicy"},
		TargetResource: schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnetworkpolicies"},
		Namespaced:     true,
	}
	clusterNetworkPolicy = Kind{
		Target:         schema.GroupVersionKind{Group: "policy.networking.k8s.io", Version: "v1alpha2", Kind: "ClusterNetworkPolicy"},
		TargetResource: schema.GroupVersionResource{Group: "policy.networking.k8s.io", Version: "v1alpha2", Resource: "clusternetworkpolicies"},
	}
	istioPolicies = Kind{Target: IstioPolicy.Target, TargetResource: IstioPolicy.TargetResource, Namespaced: true}
)

// downgradeMark is the mark of a downgrade in a member.
var downgradeMark = Kind{Target: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, TargetResource: guard.MarkResource,
	Namespace: guard.Namespace, Name: guard.Mark}

var (
	clusterResource = schema.GroupVersionResource{Group: "core.kubefed.io", Version: "v1beta1", Resource: "kubefedclusters"}
	secretResource  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// Annotations of Federated objects on the host. KubeFed does not carry them to members.
const (
	// AnnotationResource is the full name of the resource that the object's unit is about.
	AnnotationResource = "acp.io/resource"
	// AnnotationEverPlaced names, comma-separated, every member that the object was ever placed in and that was not
	// seen without it since. It is written together with the placement, so that no crash forgets a member.
	AnnotationEverPlaced = "acp.io/ever-placed"
	// AnnotationPolicies names, comma-separated, the policies whose statements the object holds, or held in a revision
	// that some member may still have.
	AnnotationPolicies = "acp.io/policies"
	// AnnotationRevision is the revision of the template's spec, of objects whose labels in the members do not have it.
	AnnotationRevision = "acp.io/revision"
	// AnnotationForget names, comma-separated, members that are gone for good, so that a removal does not wait for them
	// for ever. People write it. It counts only for members that no KubeFedCluster registers.
	AnnotationForget = "acp.io/forget-clusters"
)

// Annotations of KubeFedClusters.
const (
	// AnnotationLeaving takes a member out of every placement, so that it can be unregistered without leaving anything
	// behind. `kubectl acp cluster leave` writes it.
	AnnotationLeaving = "acp.io/leaving"
	// AnnotationRenewed is the fingerprint of the pusher's token. KubeFed does not watch Secrets, and takes a new one up when
	// the annotations of the KubeFedCluster change.
	AnnotationRenewed = "acp.io/token-renewed"
	// AnnotationIstio is what the member declares of its Istio, as internal/enforcer/istio reads it. Without it the member
	// has no Istio that enforces.
	AnnotationIstio = "acp.io/istio"
	// AnnotationMesh names the cluster mesh that the member is in; NoMesh: it is in none. Members without it are taken to be in one
	// mesh, which has no name. `kubectl acp cluster join` writes it.
	AnnotationMesh = "acp.io/cluster-mesh"
	// AnnotationHeld is the name of the Secret that KubeFed uses for the member when the adapter does not keep the two
	// apart, and AnnotationHeldBecause says why it does. See Registrations.
	AnnotationHeld        = "acp.io/quarantined-secret"
	AnnotationHeldBecause = "acp.io/quarantined-because"
	// AnnotationDowngraded is what the mark of a downgrade in the member says, when that is why the two are kept apart.
	AnnotationDowngraded = "acp.io/downgraded"
)

// NoMesh is what a member declares that is in no cluster mesh.
const NoMesh = v1alpha1.NoMesh

// PusherSecretName is the Secret on the host, in KubeFed's namespace, that `kubectl acp cluster join` makes for KubeFed's
// token of a member.
func PusherSecretName(cluster string) string { return "acp-pusher-" + cluster }

// ClusterResource is that of KubeFedClusters.
var ClusterResource = clusterResource
