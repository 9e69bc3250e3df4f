package host

import (
	"context"

	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/policy"
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
