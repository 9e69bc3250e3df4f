package faults

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/playground/internal/fleet"
)

// clusterPoliciesSetting is the agent setting with which Cilium applies ClusterNetworkPolicies.
const clusterPoliciesSetting = "enable-k8s-cluster-network-policy"

// serveKind makes every member serve a foreign kind, and for ClusterNetworkPolicies sets whether the agents of one member apply them.
// The CustomResourceDefinition has no schema: few clusters serve ClusterNetworkPolicies, and the dataplane of the drill reads neither
// these nor namespaced Cilium policies.
func (d *drill) serveKind(ctx context.Context, member string, kind objectKind, on bool) error {
	if !kind.foreign {
		return nil
	}
	scope := "Cluster"
	if kind.namespaced {
		scope = "Namespaced"
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":        kind.target.Resource + "." + kind.target.Group,
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, a drill"},
		},
		"spec": map[string]any{"group": kind.target.Group, "scope": scope,
			"names": map[string]any{"plural": kind.target.Resource, "singular": kind.target.Resource, "kind": kind.kind, "listKind": kind.kind + "List"},
			"versions": []any{map[string]any{"name": kind.target.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}},
	}}
	for _, m := range fleet.Members() {
		if _, err := d.members[m].Resource(crds).Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make %s serve %s: %w", m, kind.kind, err)
		}
		if err := d.poll(ctx, healthyTimeout, func(ctx context.Context) error {
			_, err := d.members[m].Resource(kind.target).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		}); err != nil {
			return err
		}
	}
	if kind.kind != clusterPolicies.kind {
		return nil
	}
	return d.setAgentSetting(ctx, member, clusterPoliciesSetting, fmt.Sprint(on))
}
