package host

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
)

// SetProtectionStatus is the adapter's word about a protected resource.
func (h *Host) SetProtectionStatus(ctx context.Context, name string, s v1alpha1.ProtectedResourceStatus) error {
	var o v1alpha1.ProtectedResource
	if err := h.client.Get(ctx, client.ObjectKey{Name: name}, &o); err != nil {
		return err
	}
	o.Status = s
	return h.client.Status().Update(ctx, &o)
}

// AddCode is the event with the code that a status has for its text.
var AddCode = addCode
