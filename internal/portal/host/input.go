package host

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/rollout"
)

// Input returns the input of the snapshot, which must not be changed, and false if the host cluster was not read yet.
func (h *Host) Input() (policy.Input, bool) {
	if !h.Ready() {
		return policy.Input{}, false
	}
	in, err := hostcluster.Input(context.Background(), h.cache) // lists of a synced cache do not block
	if err != nil {
		h.log.Error("the host cluster's cache cannot be listed", "error", err)
		return policy.Input{}, false
	}
	return in, true
}

// Enforced returns the names of the resources that some member enforces, or would without a temporary audit, sorted. It returns false
// if the host cluster was not read yet.
func (h *Host) Enforced() ([]string, bool) {
	if !h.Ready() {
		return nil, false
	}
	var list v1alpha1.ProtectedResourceList
	if err := h.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil { // a synced cache does not block
		h.log.Error("the host cluster's cache cannot be listed", "error", err)
		return nil, false
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		if rollout.Enforces(list.Items[i].Spec) {
			names = append(names, string(list.Items[i].Spec.Resource))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// ResourceClasses implements rollout.Host.
func (h *Host) ResourceClasses() ([]*v1alpha1.ResourceClass, bool) {
	if !h.Ready() {
		return nil, false
	}
	var list v1alpha1.ResourceClassList
	if err := h.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil { // a synced cache does not block
		h.log.Error("the host cluster's cache cannot be listed", "error", err)
		return nil, false
	}
	return pointers(list.Items), true
}

// Members returns the reports of the adapter about the members; none before the host cluster was read.
func (h *Host) Members() []*v1alpha1.MemberCluster {
	if !h.Ready() {
		return nil
	}
	var list v1alpha1.MemberClusterList
	if err := h.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil { // a synced cache does not block
		h.log.Error("the host cluster's cache cannot be listed", "error", err)
		return nil
	}
	return pointers(list.Items)
}

// Fleet returns the members in which resources are placed, as far as the adapter has reported on them.
func (h *Host) Fleet() insight.Fleet { return insight.FleetOf(h.Members()) }

// ClassOf returns the class of a resource, or an empty string if no class covers it or the host cluster was not read yet.
func (h *Host) ClassOf(resource string) string {
	s, ok := h.Snapshot()
	if !ok {
		return ""
	}
	if c, ok := s.ResourceClassOf(resource); ok {
		return c.Name
	}
	return ""
}
