package rollout

import (
	"context"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// ApprovalTickets implements Tickets with the approval service, so that the guard can halt the undecided and unwritten tickets about the
// mode of a resource.
type ApprovalTickets struct{ *approval.Service }

// Halt implements Tickets.
func (r ApprovalTickets) Halt(ctx context.Context, resource string, reason message.Message) (int, error) {
	list, err := r.Store.List(ctx, approval.Filter{Resource: resource, Kinds: []approval.Kind{approval.KindMode, approval.KindOnboard},
		ItemStates: []approval.State{approval.StatePending, approval.StateApproved}, OmitEvents: true})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, t := range list {
		halted, err := r.Service.Halt(ctx, t.Number, reason)
		if err != nil {
			return n, err
		}
		if halted {
			n++
		}
	}
	return n, nil
}
