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

// Input that the snapshot is made of, which nobody may change; false: the host cluster was not seen yet.
func (h *Host) Input() (policy.Input, bool) {
	if !h.Ready() {
		return policy.Input{}, false
	}
	in, err := hostcluster.Input(context.Background(), h.cache) // lists of a synced cache wait for nothing
	if err != nil {
		h.log.Error("the host cluster's cache cannot be listed", "error", err)
		return policy.Input{}, false
	}
	return in, true
}

// Enforced are the names of the resources that some member enforces, or would but for a temporary audit, sorted; false: the
// host cluster was not seen yet.
func (h *Host) Enforced() ([]string, bool) {
	if !h.Ready() {
		return nil, false
	}
	var list v1alpha1.ProtectedResourceList
	if err := h.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil { // of a synced cache it waits for nothing
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

// Members of the fleet as the adapter reports on them; none before the host cluster was seen.
func (h *Host) Members() []*v1alpha1.MemberCluster {
	if !h.Ready() {
		return nil
	}
	var list v1alpha1.MemberClusterList
	if err := h.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil { // of a synced cache it waits for nothing
		h.log.Error("the host cluster's cache cannot be listed", "error", err)
		return nil
	}
	return pointers(list.Items)
}

// Fleet tells in which members resources are placed, as far as the adapter has reported on every member.
func (h *Host) Fleet() insight.Fleet { return insight.FleetOf(h.Members()) }

// ClassOf a resource; empty: none covers it, or the host cluster was not seen yet.
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
