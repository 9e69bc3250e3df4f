package memberapi

import "k8s.io/apimachinery/pkg/runtime/schema"

// Resource is a kind that a member serves.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// GroupVersionKind returns the kind with its group and version.
func (r Resource) GroupVersionKind() schema.GroupVersionKind {
	return r.GroupVersion().WithKind(r.Kind)
}

// custom reports whether a CustomResourceDefinition defines the kind.
func (r Resource) custom() bool { return r.Group == "cilium.io" || r.Group == "security.istio.io" }

// Policies are Cilium's clusterwide policies, and Groups its groups of addresses.
var (
	Policies = cilium("ciliumclusterwidenetworkpolicies", "CiliumClusterwideNetworkPolicy", false)
	Groups   = cilium("ciliumcidrgroups", "CiliumCIDRGroup", false)
)

// Resources returns the kinds that a member with Cilium and with the kind of Istio's policies serves, as far as ACP reads or writes them.
func Resources() []Resource {
	core := func(resource, kind string, namespaced bool) Resource {
		return Resource{schema.GroupVersionResource{Version: "v1", Resource: resource}, kind, namespaced}
	}
	other := func(group, resource, kind string, namespaced bool) Resource {
		return Resource{schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, kind, namespaced}
	}
	return []Resource{
		Policies,
		Groups,
		cilium("ciliumidentities", "CiliumIdentity", false),
		cilium("ciliumnodes", "CiliumNode", false),
		cilium("ciliumnetworkpolicies", "CiliumNetworkPolicy", true),
		cilium("ciliumnodeconfigs", "CiliumNodeConfig", true),
		core("namespaces", "Namespace", false),
		core("nodes", "Node", false),
		core("configmaps", "ConfigMap", true),
		core("pods", "Pod", true),
		other("apps", "daemonsets", "DaemonSet", true),
		other("apps", "deployments", "Deployment", true),
		other("security.istio.io", "authorizationpolicies", "AuthorizationPolicy", true),
		other("networking.k8s.io", "networkpolicies", "NetworkPolicy", true),
		other("admissionregistration.k8s.io", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", false),
		other("admissionregistration.k8s.io", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", false),
	}
}

func cilium(resource, kind string, namespaced bool) Resource {
	return Resource{schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: resource}, kind, namespaced}
}
