package federation

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/enforcer/istio"
)

// addIstio takes in what an AuthorizationPolicy lets in: one with the action ALLOW, which is the default, and a rule. Istio lets
// in what one of them allows, so it may add to ACP's. DENY, CUSTOM and AUDIT open nothing. Without a
// selector it is about all pods, of its namespace or, in Istio's root namespace, of all.
func (o *Opening) addIstio(u *unstructured.Unstructured) {
	spec, _ := u.Object["spec"].(map[string]any)
	switch spec["action"] {
	case "DENY", "CUSTOM", "AUDIT":
		return
	}
	if rules, readable := spec["rules"].([]any); spec["rules"] == nil || readable && len(rules) == 0 || tried(u) {
		return
	}
	selector, selects, _ := unstructured.NestedStringMap(spec, "selector", "matchLabels")
	if !selects && attached(spec) {
		return
	}
	o.opens, o.allowed = true, istio.ParseAllowed(spec, o.Namespace)
	if o.Namespace != IstioPolicy.Namespace {
		o.labels = append(o.labels, Label{Key: namespaceKey, Value: o.Namespace})
	}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		o.labels = append(o.labels, Label{Key: key, Value: selector[key]})
	}
}

// tried tells that Istio only logs what the policy would decide.
func tried(u *unstructured.Unstructured) bool {
	on, err := strconv.ParseBool(u.GetAnnotations()["istio.io/dry-run"])
	return err == nil && on
}

// attached tells that the policy is for gateways or waypoints, in front of the pods: what these let through has yet to be let
// in by the policies of the pods.
func attached(spec map[string]any) bool {
	one, _ := spec["targetRef"].(map[string]any)
	many, _ := spec["targetRefs"].([]any)
	return len(one) > 0 || len(many) > 0
}

// mayMatch tells whether some pod of an identity may have all the labels. Identities leave out what the dataplane is not
// configured to take in, and here empty values.
func mayMatch(labels []Label, identity map[string]string, known func(key string) bool) bool {
	return !slices.ContainsFunc(labels, func(l Label) bool {
		have, ok := identity[l.Key]
		return ok && have != l.Value || !ok && l.Value != "" && known(l.Key)
	})
}
