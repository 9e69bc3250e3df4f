package federation

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/enforcer/istio"
)

// IstioAllow describes which connections an AuthorizationPolicy in a member allows, and to which pods. The allows of
// several policies are additive, so it may allow more than ACP's policies.
type IstioAllow struct {
	Kind, Namespace, Name string
	// allows reports whether the policy lets in connections to the pods with all of these labels; one of the labels is the
	// namespace unless it applies to all namespaces. Istio matches the pods' own labels, of which identities may have
	// only a part.
	allows  bool
	labels  []Label
	allowed *istio.Allowed
	// gateways are the waypoints in Istio's root namespace to which the policy may let in connections: by name, or AnyGateway.
	gateways []string
}

const (
	// WaypointKey is passed to OpenedBy instead of the key of a label. The value is then the name of a Gateway instead of a label's.
	WaypointKey = "waypoint"
	// AnyGateway is the name in gateways that stands for all waypoints.
	AnyGateway = "*"
)

// String returns the policy's name for messages.
func (o IstioAllow) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Equal reports whether two values describe the same policy with the same pods.
func (o IstioAllow) Equal(p IstioAllow) bool {
	return o.Kind == p.Kind && o.Namespace == p.Namespace && o.Name == p.Name && o.allows == p.allows && slices.Equal(o.labels, p.labels) &&
		slices.Equal(o.gateways, p.gateways)
}

// Opens reports whether the policy lets any connection in.
func (o IstioAllow) Opens() bool { return o.allows || len(o.gateways) > 0 }

// opensWaypoint reports whether the policy may let in connections to the waypoint of a Gateway in Istio's root namespace.
func (o IstioAllow) opensWaypoint(gateway string) bool {
	return slices.Contains(o.gateways, AnyGateway) || slices.Contains(o.gateways, gateway)
}

// namespaceKey is the key of the identity label with a pod's namespace.
const namespaceKey = "io.kubernetes.pod.namespace"

// namespace returns the namespace whose pods the policy selects, or "" for all namespaces.
func (o IstioAllow) namespace() string {
	for _, l := range o.labels {
		if l.Key == namespaceKey {
			return l.Value
		}
	}
	return ""
}

// Selects reports whether the policy may apply to pods of an identity with these labels. For a label key that no
// identity has, it is not known which pods have it; known reports whether any identity has a key.
func (o IstioAllow) Selects(identity map[string]string, known func(key string) bool) bool {
	return o.allows && mayMatch(o.labels, identity, known)
}

// MaySelect reports whether the policy may apply to a pod of which only one label is known.
func (o IstioAllow) MaySelect(key, value string) bool {
	return o.allows && !slices.ContainsFunc(o.labels, func(l Label) bool { return l.Key == key && l.Value != value })
}

// ParseIstioAllow parses an AuthorizationPolicy.
func ParseIstioAllow(u *unstructured.Unstructured) (IstioAllow, error) {
	o := IstioAllow{Kind: IstioPolicy.Target.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
	o.parseRules(u)
	return o, nil
}
