package federation

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/enforcer/istio"
)

// parseRules adds what an AuthorizationPolicy with the action ALLOW (the default) and at least one rule lets in. Istio
// lets in what any such policy allows, so it may add to ACP's. DENY, CUSTOM and AUDIT open nothing. Without a selector
// the policy applies to all pods of its namespace or, in Istio's root namespace, of all namespaces.
func (o *IstioAllow) parseRules(u *unstructured.Unstructured) {
	spec, _ := u.Object["spec"].(map[string]any)
	switch spec["action"] {
	case "DENY", "CUSTOM", "AUDIT":
		return
	}
	if rules, readable := spec["rules"].([]any); spec["rules"] == nil || readable && len(rules) == 0 || isDryRun(u) {
		return
	}
	selector, selects, _ := unstructured.NestedStringMap(spec, "selector", "matchLabels")
	if targets := targetsOf(spec); !selects && len(targets) > 0 {
		o.gateways = o.waypointsOf(targets)
		return
	}
	o.allows, o.allowed = true, istio.ParseAllowed(spec, o.Namespace)
	if o.Namespace != IstioPolicy.Namespace {
		o.labels = append(o.labels, Label{Key: namespaceKey, Value: o.Namespace})
	}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		o.labels = append(o.labels, Label{Key: key, Value: selector[key]})
	}
}

// isDryRun reports whether Istio only logs what the policy would decide.
func isDryRun(u *unstructured.Unstructured) bool {
	on, err := strconv.ParseBool(u.GetAnnotations()["istio.io/dry-run"])
	return err == nil && on
}

// targetsOf returns the gateways, waypoints and Services to which the policy refers. It applies in front of the pods: the policies of the pods
// still decide what these let through.
func targetsOf(spec map[string]any) []any {
	out, _ := spec["targetRefs"].([]any)
	if one, _ := spec["targetRef"].(map[string]any); len(one) > 0 {
		out = append(slices.Clone(out), one)
	}
	return out
}

// waypointsOf returns the waypoints in Istio's root namespace to which targets may refer. It does not consider which waypoint a Service uses.
func (o *IstioAllow) waypointsOf(targets []any) []string {
	inRoot := o.Namespace == IstioPolicy.Namespace
	var out []string
	for _, t := range targets {
		ref, _ := t.(map[string]any)
		kind, _ := ref["kind"].(string)
		name, _ := ref["name"].(string)
		switch {
		case kind == "Service", kind == "ServiceEntry", kind == "GatewayClass" && inRoot:
			out = append(out, AnyGateway)
		case kind == "Gateway" && inRoot:
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// mayMatch reports whether a pod of an identity may have all the labels. Identities lack the labels that the dataplane
// is not configured to include, and here empty values.
func mayMatch(labels []Label, identity map[string]string, known func(key string) bool) bool {
	return !slices.ContainsFunc(labels, func(l Label) bool {
		have, ok := identity[l.Key]
		return ok && have != l.Value || !ok && l.Value != "" && known(l.Key)
	})
}
