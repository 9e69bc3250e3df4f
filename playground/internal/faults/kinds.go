package faults

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// objectKind is a kind of policy objects in the members, with the Federated kind of the host that KubeFed propagates it from.
type objectKind struct {
	kind              string
	target, federated schema.GroupVersionResource
	namespaced        bool
	// foreign reports whether the members serve the kind only after serveKind installed its CustomResourceDefinition.
	foreign bool
}

const istioKind = "AuthorizationPolicy"

var (
	policies = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"}
	groups   = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumcidrgroups"}
	crds     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	// The drill runs no Istio dataplane, so checks of this kind compare objects only.
	istio = schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"}
	kinds = []objectKind{
		{
			kind:      "CiliumClusterwideNetworkPolicy",
			target:    policies,
			federated: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumclusterwidenetworkpolicies"},
		},
		{
			kind:      "CiliumCIDRGroup",
			target:    groups,
			federated: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumcidrgroups"},
		},
		{
			kind:       istioKind,
			target:     istio,
			namespaced: true,
			federated:  schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedauthorizationpolicies"},
		},
	}
)

// These kinds hold foreign policies: ACP never writes them.
var (
	networkPolicies = objectKind{kind: "NetworkPolicy", namespaced: true,
		target: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}}
	namespacedPolicies = objectKind{kind: "CiliumNetworkPolicy", namespaced: true, foreign: true,
		target: schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnetworkpolicies"}}
	clusterPolicies = objectKind{kind: "ClusterNetworkPolicy", foreign: true,
		target: schema.GroupVersionResource{Group: "policy.networking.k8s.io", Version: "v1alpha2", Resource: "clusternetworkpolicies"}}
)

// displayName returns the kind and the namespaced name of an object. An object of a member and the Federated object of the host
// that it is propagated from have the same display name when kind is the kind of the member.
func displayName(kind string, u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return kind + " " + u.GetName()
	}
	return kind + " " + u.GetNamespace() + "/" + u.GetName()
}
