package fleet

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ciliumConfig is what the agents of a member would be configured with, for whoever asks the member how it enforces: a
// cluster of a mesh with a name and a number of its own that refuses what it is told to, and whose identities have the
// labels of classes. The dataplane's emulator behaves like that, and reads nothing of it.
func ciliumConfig(member string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "kube-system", "name": "cilium-config"},
		"data": map[string]any{
			"cluster-name": member, "cluster-id": strconv.Itoa(1 + slices.Index(Members(), member)), "max-connected-clusters": "255",
			"enable-policy": "default", "policy-audit-mode": "false",
			// CIDRs are sources outside the fleet, and never nodes.
			"policy-cidr-match-mode": "", "enable-endpoint-routes": "false", "ipam": "cluster-pool",
			// Every label but those that would give each pod an identity of its own.
			"labels":                   `k8s:!pod-template-generation k8s:!controller-revision-hash`,
			"identity-allocation-mode": "crd", "enable-ipv4": "true", "enable-ipv6": "true",
		},
	}}
}
