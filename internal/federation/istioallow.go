package federation

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/enforcer/istio"
)

// Opening is what an AuthorizationPolicy in a member lets in beside ACP's, since allows of several policies add up: to which
// pods, and which connections.
type Opening struct {
	Kind, Namespace, Name string
	// opens: it lets somebody in to the pods with all of these labels, of which one is their namespace unless it is about all.
	// Istio looks at the pods, of whose labels identities may have only some.
	opens   bool
	labels  []Label
	allowed *istio.Allowed
}

// String names the policy for people.
func (o Opening) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Equal tells whether two openings are of one policy and open the same pods.
func (o Opening) Equal(p Opening) bool {
	return o.Kind == p.Kind && o.Namespace == p.Namespace && o.Name == p.Name && o.opens == p.opens && slices.Equal(o.labels, p.labels)
}

// Opens tells whether the policy lets anybody in at all.
func (o Opening) Opens() bool { return o.opens }

// namespaceKey is that of the label which holds a pod's namespace in its identity.
const namespaceKey = "io.kubernetes.pod.namespace"

// namespace is the one whose pods the policy is about; "": it is about those of all.
func (o Opening) namespace() string {
	for _, l := range o.labels {
		if l.Key == namespaceKey {
			return l.Value
		}
	}
	return ""
}

// Selects tells whether pods of an identity with these labels are opened. Of a label that no identity has nobody knows which
// pods have it: known are the keys that identities have.
func (o Opening) Selects(identity map[string]string, known func(key string) bool) bool {
	return o.opens && mayMatch(o.labels, identity, known)
}

// MaySelect tells whether some pod with one label, of which nothing else is known, may be opened.
func (o Opening) MaySelect(key, value string) bool {
	return o.opens && !slices.ContainsFunc(o.labels, func(l Label) bool { return l.Key == key && l.Value != value })
}

// parseOpening reads an AuthorizationPolicy.
func parseOpening(u *unstructured.Unstructured) (Opening, error) {
	o := Opening{Kind: IstioPolicy.Target.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
	o.addIstio(u)
	return o, nil
}
