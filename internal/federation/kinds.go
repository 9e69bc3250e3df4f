package federation

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/objectkind"
)

// Kind pairs an object kind of the members with the Federated kind of the host that distributes it. Package objectkind registers those that
// ACP distributes.
type Kind = objectkind.Kind

// The kinds that ACP distributes.
var (
	// CiliumPolicy distributes Cilium's clusterwide policies.
	CiliumPolicy = objectkind.CiliumPolicy
	// CiliumGroup distributes Cilium's groups of addresses.
	CiliumGroup = objectkind.CiliumGroup
	// IstioPolicy distributes Istio's policies, in its root namespace.
	IstioPolicy = objectkind.IstioPolicy
)

// ciliumIdentity is Cilium's identity of pods with equal labels in a member. Agents write it; it is not distributed.
var ciliumIdentity = Kind{
	Target:         schema.GroupVersionKind{Group: "cilium.io", Version: "v2", Kind: "CiliumIdentity"},
	TargetResource: schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumidentities"},
}

// These kinds contain policies of others that may allow connections. ACP does not distribute them.
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
var downgradeMark = Kind{Target: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, TargetResource: guard.DowngradeMarkResource,
	Namespace: guard.Namespace, Name: guard.DowngradeMarkName}

var (
	clusterResource = schema.GroupVersionResource{Group: "core.kubefed.io", Version: "v1beta1", Resource: "kubefedclusters"}
	secretResource  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// Annotations of Federated objects on the host. KubeFed does not copy them to members.
const (
	// AnnotationResource is the full name of the resource of the object's unit.
	AnnotationResource = "acp.io/resource"
	// AnnotationEverPlaced lists, comma-separated, every member in which the object was ever placed and that has not
	// been seen without it since. It is written together with the placement, so that a crash cannot lose a member.
	AnnotationEverPlaced = "acp.io/ever-placed"
	// AnnotationPolicies lists, comma-separated, the policies whose statements the object contains, or contained in a
	// revision that a member may still have.
	AnnotationPolicies = "acp.io/policies"
	// AnnotationRevision is the revision of the template's spec, for objects without a revision label in the members.
	AnnotationRevision = "acp.io/revision"
	// AnnotationForget lists, comma-separated, members that no longer exist, so that a removal does not wait for them
	// forever. Users write it. It counts only for members that no KubeFedCluster registers.
	AnnotationForget = "acp.io/forget-clusters"
)

// Annotations of KubeFedClusters.
const (
	// AnnotationLeaving removes a member from every placement, so that it can be unregistered without leaving objects
	// behind. `kubectl acp cluster leave` writes it.
	AnnotationLeaving = "acp.io/leaving"
	// AnnotationRenewed is the fingerprint of the pusher's token. KubeFed does not watch Secrets, and reads a new token
	// when the annotations of the KubeFedCluster change.
	AnnotationRenewed = "acp.io/token-renewed"
	// AnnotationIstio is the member's declaration about its Istio, in the format of internal/enforcer/istio. Without
	// it, no Istio in the member can enforce policies.
	AnnotationIstio = "acp.io/istio"
	// AnnotationMesh is the name of the member's cluster mesh, or NoMesh. Members without it are taken to be in one
	// unnamed mesh. `kubectl acp cluster join` writes it.
	AnnotationMesh = "acp.io/cluster-mesh"
	// AnnotationEnforcer is EnforcerIstio for a member in which Istio alone enforces, so that Cilium is not required
	// there. A member without it has Cilium, with or without Istio. `kubectl acp cluster join --enforcer` writes it.
	AnnotationEnforcer = "acp.io/enforcer"
	// AnnotationEngine is the propagation engine that distributes objects to the member, an Engine. Without it, KubeFed does. `kubectl
	// acp cluster join --engine` writes it.
	AnnotationEngine = "acp.io/engine"
	// AnnotationFormerEngine is the engine that the member used before, while that may still write there. It is EngineOCM until its agent
	// owns no object any more; a move between other engines does not need it. `kubectl acp cluster join --engine` writes it.
	AnnotationFormerEngine = "acp.io/former-engine"
	// AnnotationClusterProfile is the ClusterProfile, as namespace/name, that describes the member in the inventory of a cluster
	// manager. The adapter compares the two and reports differences; the registration alone counts. `kubectl acp cluster join
	// --from-profile` writes it.
	AnnotationClusterProfile = "acp.io/cluster-profile"
	// AnnotationQuarantinedSecret contains the name of the Secret that KubeFed used before the quarantine. See
	// Registrations.
	AnnotationQuarantinedSecret = "acp.io/quarantined-secret" //nolint:gosec // the name of an annotation
	// AnnotationQuarantineReason contains the reason of the quarantine in English.
	AnnotationQuarantineReason = "acp.io/quarantined-because"
	// AnnotationQuarantineMessage contains the reason of the quarantine as message.Message.Encode returns it, for programs. It
	// counts only if its text is that of AnnotationQuarantineReason.
	AnnotationQuarantineMessage = "acp.io/quarantined-because-message"
	// AnnotationDowngraded is the content of the downgrade mark in the member, if the mark is the reason of the
	// quarantine.
	AnnotationDowngraded = "acp.io/downgraded"
)

// NoMesh is the declared mesh of a member that is in no cluster mesh.
const NoMesh = v1alpha1.NoMesh

// PusherSecretName returns the name of the Secret on the host, in KubeFed's namespace, that `kubectl acp cluster join`
// creates for KubeFed's token of a member.
func PusherSecretName(cluster string) string { return "acp-pusher-" + cluster }

// DirectSecretName returns the name of the Secret on the host, in the credentials namespace, with the token of the account with
// which the direct engine writes in a member. The registration of such a member names this Secret, which KubeFed does not find in
// its own namespace, so that KubeFed has no client of the member.
func DirectSecretName(cluster string) string { return "acp-direct-" + cluster }

// ClusterResource is the resource of KubeFedClusters.
var ClusterResource = clusterResource
