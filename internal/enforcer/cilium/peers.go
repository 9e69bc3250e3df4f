package cilium

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

const (
	sourcePrefix = "k8s:"
	// clusterLabel is on every pod identity. A selector without a clause about it matches the local cluster only.
	clusterLabel = sourcePrefix + "io.cilium.k8s.policy.cluster"
	// namespaceLabel is on the identities of pods, and not on those of other endpoints. Cilium adds "Exists" for it to
	// every peer of a clusterwide policy that does not mention it.
	namespaceLabel = sourcePrefix + "io.kubernetes.pod.namespace"
	// hostLabel is on the identity of the workload's own node, which must never be denied, because kubelet probes from
	// it.
	hostLabel = "reserved:host"
	// chunk bounds the number of values of one selector, so that a rule can always be split into parts.
	chunk = 2000
)

// Kinds of peers.
const (
	fromEndpoints = "fromEndpoints"
	fromEntities  = "fromEntities"
	fromCIDRSet   = "fromCIDRSet"
)

func labelKey(key string) string { return sourcePrefix + key }

func expression(key, operator string) map[string]any {
	return map[string]any{"key": key, "operator": operator}
}

// hasLabel returns the clauses that match a label with a non-empty value, because an empty value is no name.
func hasLabel(key string) []any {
	return []any{
		expression(labelKey(key), "Exists"),
		map[string]any{"key": labelKey(key), "operator": "NotIn", "values": []any{""}},
	}
}

func valuesIn(key string, in []string) map[string]any {
	values := make([]any, len(in))
	for i, v := range in {
		values[i] = v
	}
	return map[string]any{"key": labelKey(key), "operator": "In", "values": values}
}

// peerList contains the peers of one kind.
type peerList struct {
	kind string
	list []any
}

// allowPeers selects the sources that a rule allows, with pods of every cluster.
func allowPeers(r *policy.Rule) []peerList {
	if r.Anyone {
		return []peerList{{fromEntities, []any{"all"}}}
	}
	var pods []any
	for _, clauses := range podClauses(r) {
		pods = append(pods, map[string]any{"matchExpressions": append(clauses, expression(clusterLabel, "Exists"))})
	}
	var outside []any
	for _, p := range r.Prefixes {
		outside = append(outside, map[string]any{"cidr": p.String()})
	}
	for _, id := range r.External {
		outside = append(outside, map[string]any{"cidrGroupRef": v1alpha1.ObjectPrefix + id})
	}
	for _, id := range r.ExternalClasses {
		outside = append(outside, map[string]any{"cidrGroupSelector": map[string]any{
			"matchExpressions": []any{expression(LabelClass(id), "Exists"), expression(labelContested, "DoesNotExist")},
		}})
	}
	return present(peerList{fromEndpoints, pods}, peerList{fromCIDRSet, outside})
}

// denyPeers selects the sources that a rule denies: identities with and without a namespace, because a deny that missed
// the latter would be incomplete, and contested addresses.
func denyPeers(r *policy.Rule) []peerList {
	if r.Anyone {
		return denyAnyone()
	}
	var pods []any
	for _, clauses := range podClauses(r) {
		pods = append(pods, everyNamespace(clauses)...)
	}
	var outside []any
	for _, p := range r.Prefixes {
		outside = append(outside, map[string]any{"cidr": p.String()})
	}
	for _, id := range r.External {
		outside = append(outside, map[string]any{"cidrGroupRef": v1alpha1.ObjectPrefix + id},
			map[string]any{"cidrGroupRef": v1alpha1.ObjectPrefix + id + contestedSuffix}) // matches nothing if the group does not exist
	}
	for _, id := range r.ExternalClasses {
		outside = append(outside, map[string]any{"cidrGroupSelector": map[string]any{"matchExpressions": []any{expression(LabelClass(id), "Exists")}}})
	}
	return present(peerList{fromEndpoints, pods}, peerList{fromCIDRSet, outside})
}

// denyAnyone lists every kind of source. The entities all and host, and ports without peers, would block kubelet's
// probes.
func denyAnyone() []peerList {
	return []peerList{
		{fromEndpoints, everyNamespace([]any{expression(hostLabel, "DoesNotExist")})},
		{fromEntities, []any{"health", "ingress", "init", "remote-node", "unmanaged"}},
		{fromCIDRSet, []any{map[string]any{"cidr": "0.0.0.0/0"}, map[string]any{"cidr": "::/0"}}},
	}
}

func everyNamespace(clauses []any) []any {
	var out []any
	for _, namespace := range []string{"Exists", "DoesNotExist"} {
		out = append(out, map[string]any{"matchExpressions": append(slices.Clone(clauses),
			expression(clusterLabel, "Exists"), expression(namespaceLabel, namespace))})
	}
	return out
}

// podClauses returns the expressions of each selector of pods.
func podClauses(r *policy.Rule) [][]any {
	var out [][]any
	for _, s := range r.Subjects {
		if s.Any {
			out = append(out, hasLabel(s.LabelKey))
			continue
		}
		for values := range slices.Chunk(s.Values, chunk) {
			out = append(out, []any{valuesIn(s.LabelKey, values)})
		}
	}
	return out
}

func present(lists ...peerList) []peerList {
	return slices.DeleteFunc(lists, func(p peerList) bool { return len(p.list) == 0 })
}
