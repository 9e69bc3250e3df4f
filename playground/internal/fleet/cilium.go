package fleet

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ciliumConfig returns the ConfigMap with the settings that the agents of a member would have, for programs that read it to learn
// how the member enforces: the member is a cluster of a mesh with its own name and id, it enforces policies, and its identities
// include the labels of classes. The dataplane's emulator behaves like that, but does not read the ConfigMap.
func ciliumConfig(member string) *unstructured.Unstructured {
	return ciliumConfigOf(member, 1+slices.Index(Members(), member), 255)
}

// CiliumObjects returns the objects with which a member says that it has Cilium, in a mesh of at most clusters clusters, 255 or 511. id
// is its cluster id, 1 or more.
func CiliumObjects(member string, id, clusters int) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{ciliumConfigOf(member, id, clusters), ciliumAgents()}
}

func ciliumConfigOf(member string, id, clusters int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "kube-system", "name": "cilium-config"},
		"data": map[string]any{
			"cluster-name": member, "cluster-id": strconv.Itoa(id), "max-connected-clusters": strconv.Itoa(clusters),
			"enable-policy": "default", "policy-audit-mode": "false",
			// CIDRs match sources outside the fleet, and never nodes.
			"policy-cidr-match-mode": "", "enable-endpoint-routes": "false", "ipam": "cluster-pool",
			// This excludes the labels that would give each pod an identity of its own.
			"labels":                   `k8s:!pod-template-generation k8s:!controller-revision-hash`,
			"identity-allocation-mode": "crd", "enable-ipv4": "true", "enable-ipv6": "true",
		},
	}}
}

// ciliumAgents returns the DaemonSet of the agents that would run in a member. No controller creates pods from it.
func ciliumAgents() *unstructured.Unstructured {
	labels := map[string]any{"k8s-app": "cilium"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "DaemonSet",
		"metadata": map[string]any{"namespace": "kube-system", "name": "cilium"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "cilium-agent", "image": "quay.io/cilium/cilium:v1.20.2"}}},
			},
		},
	}}
}
