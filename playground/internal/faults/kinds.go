package faults

import "k8s.io/apimachinery/pkg/runtime/schema"

// carried is a kind of the members and the Federated kind of the host that carries it.
type carried struct {
	kind              string
	target, federated schema.GroupVersionResource
}

var (
	policies = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"}
	groups   = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumcidrgroups"}
	crds     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	// istio is read only for what the statuses say of it: no dataplane here decides by it.
	istio = schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"}
	kinds = []carried{
		{"CiliumClusterwideNetworkPolicy", policies, schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumclusterwidenetworkpolicies"}},
		{"CiliumCIDRGroup", groups, schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumcidrgroups"}},
	}
)
