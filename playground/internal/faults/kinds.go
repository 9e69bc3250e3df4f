package faults

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// carried is a kind of the members and the Federated kind of the host that carries it.
type carried struct {
	kind              string
	target, federated schema.GroupVersionResource
}

const istioKind = "AuthorizationPolicy"

var (
	policies = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"}
	groups   = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumcidrgroups"}
	crds     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	// No dataplane here decides by istio's: it is judged by what is there.
	istio = schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"}
	kinds = []carried{
		{"CiliumClusterwideNetworkPolicy", policies, schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumclusterwidenetworkpolicies"}},
		{"CiliumCIDRGroup", groups, schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumcidrgroups"}},
		{istioKind, istio, schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedauthorizationpolicies"}},
	}
)

// Kinds of policies that only others write.
var (
	networkPolicies = carried{kind: "NetworkPolicy", target: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}}
	clusterPolicies = carried{kind: "ClusterNetworkPolicy", target: schema.GroupVersionResource{Group: "policy.networking.k8s.io", Version: "v1alpha2", Resource: "clusternetworkpolicies"}}
)

// called is what an object of a member, or the one of the host that carries it, is found by and told as.
func called(kind string, u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return kind + " " + u.GetName()
	}
	return kind + " " + u.GetNamespace() + "/" + u.GetName()
}
