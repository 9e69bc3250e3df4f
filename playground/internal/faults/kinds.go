package faults

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// carried is a kind of the members and the Federated kind of the host that carries it.
type carried struct {
	kind              string
	target, federated schema.GroupVersionResource
	namespaced        bool
	// foreign: the members are not set up with the kind.
	foreign bool
}

const istioKind = "AuthorizationPolicy"

var (
	policies = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"}
	groups   = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumcidrgroups"}
	crds     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	// No dataplane here decides by istio's: it is judged by what is there.
	istio = schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"}
	kinds = []carried{
		{kind: "CiliumClusterwideNetworkPolicy", target: policies, federated: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumclusterwidenetworkpolicies"}},
		{kind: "CiliumCIDRGroup", target: groups, federated: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumcidrgroups"}},
		{kind: istioKind, target: istio, namespaced: true, federated: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedauthorizationpolicies"}},
	}
)

// Kinds of policies that only others write.
var (
	networkPolicies = carried{kind: "NetworkPolicy", namespaced: true,
		target: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}}
	namespacedPolicies = carried{kind: "CiliumNetworkPolicy", namespaced: true, foreign: true,
		target: schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnetworkpolicies"}}
	clusterPolicies = carried{kind: "ClusterNetworkPolicy", foreign: true,
		target: schema.GroupVersionResource{Group: "policy.networking.k8s.io", Version: "v1alpha2", Resource: "clusternetworkpolicies"}}
)

// called is what an object of a member, or the one of the host that carries it, is found by and told as.
func called(kind string, u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return kind + " " + u.GetName()
	}
	return kind + " " + u.GetNamespace() + "/" + u.GetName()
}
