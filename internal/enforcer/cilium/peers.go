package cilium

import "github.com/acp-io/acp/internal/policy"

const (
	sourcePrefix = "k8s:"
	// clusterLabel is on every pod identity. A selector without a clause about it means the local cluster only.
	clusterLabel = sourcePrefix + "io.cilium.k8s.policy.cluster"
	// namespaceLabel is on the identities of pods, and not on those of other endpoints. Cilium adds "Exists" for it to
	// every peer of a clusterwide policy that does not mention it.
	namespaceLabel = sourcePrefix + "io.kubernetes.pod.namespace"
)

func labelKey(key string) string { return sourcePrefix + key }

func expression(key, operator string) map[string]any {
	return map[string]any{"key": key, "operator": operator}
}

func valuesIn(s policy.SubjectSelector) map[string]any {
	values := make([]any, len(s.Values))
	for i, v := range s.Values {
		values[i] = v
	}
	return map[string]any{"key": labelKey(s.LabelKey), "operator": "In", "values": values}
}

// allowPeers selects pods of the subjects in every cluster.
func allowPeers(subjects []policy.SubjectSelector) []any {
	var out []any
	for _, s := range subjects {
		out = append(out, map[string]any{"matchExpressions": []any{valuesIn(s), expression(clusterLabel, "Exists")}})
	}
	return out
}

// denyPeers selects everything that carries the subjects' labels, with a namespace and without: a deny that missed
// identities without one would leave a door open.
func denyPeers(subjects []policy.SubjectSelector) []any {
	var out []any
	for _, s := range subjects {
		for _, namespace := range []string{"Exists", "DoesNotExist"} {
			out = append(out, map[string]any{"matchExpressions": []any{
				valuesIn(s), expression(clusterLabel, "Exists"), expression(namespaceLabel, namespace),
			}})
		}
	}
	return out
}
