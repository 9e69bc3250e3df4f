// Package objectkind registers the kinds of objects that ACP distributes to members. What concerns every kind reads the registry: the guard,
// joining, checking and leaving of members, and the keys of a unit's objects. The package depends on nothing of ACP but its API, so that
// every other package may use it.
package objectkind

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
)

// IstioRoot is Istio's root namespace, which contains ACP's AuthorizationPolicies.
const IstioRoot = "istio-system"

// Kind pairs an object kind of the members with the Federated kind of the host that distributes it.
type Kind struct {
	// Target is the kind in the members.
	Target schema.GroupVersionKind
	// TargetResource is Target's resource.
	TargetResource schema.GroupVersionResource
	// Federated is the kind in the host.
	Federated schema.GroupVersionKind
	// FederatedResource is Federated's resource.
	FederatedResource schema.GroupVersionResource
	// Namespaced reports whether Target is namespaced. The objects of all namespaces are read.
	Namespaced bool
	// Namespace, if set, is the only namespace that is read in the members, and the namespace of the Federated objects
	// on the host. Name, if set, is the name of the only object that is read.
	Namespace, Name string
	// Prefix begins the keys of the objects among those of several kinds, without the slash. It is needed for kinds without Namespace,
	// except the first one that is registered.
	Prefix string
}

// Key returns the key of an object among those of several kinds. The objects of a unit have the same name in all
// dataplanes.
func (k Kind) Key(name string) string {
	switch {
	case k.Prefix != "":
		return k.Prefix + "/" + name
	case k.Namespace != "":
		return k.Namespace + "/" + name
	}
	return name
}

// Selector returns the field selector of the only object that is read, or "" for all objects.
func (k Kind) Selector() string {
	if k.Name == "" {
		return ""
	}
	return fields.OneTermEqualSelector("metadata.name", k.Name).String()
}

// CiliumPolicy distributes Cilium's clusterwide policies.
var CiliumPolicy = Kind{
	Target:            schema.GroupVersionKind{Group: "cilium.io", Version: "v2", Kind: "CiliumClusterwideNetworkPolicy"},
	TargetResource:    schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"},
	Federated:         schema.GroupVersionKind{Group: "types.kubefed.io", Version: "v1beta1", Kind: "FederatedCiliumClusterwideNetworkPolicy"},
	FederatedResource: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumclusterwidenetworkpolicies"},
}

// CiliumGroup distributes Cilium's groups of addresses.
var CiliumGroup = Kind{
	Target:            schema.GroupVersionKind{Group: "cilium.io", Version: "v2", Kind: "CiliumCIDRGroup"},
	TargetResource:    schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumcidrgroups"},
	Federated:         schema.GroupVersionKind{Group: "types.kubefed.io", Version: "v1beta1", Kind: "FederatedCiliumCIDRGroup"},
	FederatedResource: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedciliumcidrgroups"},
}

// IstioPolicy distributes Istio's policies, in its root namespace.
var IstioPolicy = Kind{
	Target:            schema.GroupVersionKind{Group: "security.istio.io", Version: "v1", Kind: "AuthorizationPolicy"},
	TargetResource:    schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"},
	Federated:         schema.GroupVersionKind{Group: "types.kubefed.io", Version: "v1beta1", Kind: "FederatedAuthorizationPolicy"},
	FederatedResource: schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatedauthorizationpolicies"},
	Namespace:         IstioRoot,
}

// Entry registers a kind.
type Entry struct {
	Kind
	// Enforcer is the enforcer whose policies the objects are, or "" for objects that policies refer to.
	Enforcer v1alpha1.EnforcerName
	// Optional reports whether a host may not distribute the kind. Members need it only if their host does.
	Optional bool
}

// registered has one entry for each kind, in the order in which reports list them. The first is the kind of queries about no
// particular kind, which every host distributes.
var registered = registryOf([]Entry{
	{Kind: CiliumPolicy, Enforcer: v1alpha1.EnforcerCilium},
	{Kind: CiliumGroup},
	{Kind: IstioPolicy, Enforcer: v1alpha1.EnforcerIstio, Optional: true},
})

// registry has the entries, and what is derived from them.
type registry struct {
	entries, policies []Entry
	kinds             []Kind
	namespaces        []string
}

func registryOf(entries []Entry) registry {
	out := registry{entries: entries}
	for _, e := range entries {
		out.kinds = append(out.kinds, e.Kind)
		if e.Enforcer != "" {
			out.policies = append(out.policies, e)
		}
		if e.Namespace != "" {
			out.namespaces = append(out.namespaces, e.Namespace)
		}
	}
	slices.Sort(out.namespaces)
	out.namespaces = slices.Compact(out.namespaces)
	return out
}

// Registered returns the registered kinds. Callers must not change what this and the following functions return.
func Registered() []Entry { return registered.entries }

// Policies returns the kinds of the enforcers' policies.
func Policies() []Entry { return registered.policies }

// EnforcerOf returns the enforcer whose policies the objects of a kind are; "" for a kind that policies refer to, or that is not registered.
func EnforcerOf(k Kind) v1alpha1.EnforcerName {
	for i := range registered.policies {
		if registered.policies[i].Kind == k {
			return registered.policies[i].Enforcer
		}
	}
	return ""
}

// All returns the registered kinds without what is registered about them.
func All() []Kind { return registered.kinds }

// Namespaces returns the namespaces in the members that contain objects of the registered kinds, sorted.
func Namespaces() []string { return registered.namespaces }

// Register registers another kind until the returned function is called, and not concurrently with any use of the registry. It is for
// tests: the kinds of the programs are in registered.
func Register(e Entry) (remove func()) {
	before := registered
	registered = registryOf(append(slices.Clone(before.entries), e))
	return func() { registered = before }
}
