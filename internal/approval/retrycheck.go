package approval

import (
	"context"

	"github.com/acp-io/acp/internal/message"
)

// stricterError stops a write that needs more approvals now than when it was approved.
type stricterError struct {
	now     Item
	missing []Step
}

func (*stricterError) Error() string { return "more approvals are required" }

// recheckBeforeRetry repeats the checks of the approval before a write is retried, because days may have passed while the host
// cluster refused it or could not be reached. The requester must still be permitted to ask, no approval may be missing, and the rollout of a
// resource that is closed must not have been stopped.
func (s *Service) recheckBeforeRetry(ctx context.Context, t *Ticket, i int) error {
	c, it := s.Catalog(), &t.Items[i]
	resource, known := c.ByName(it.ResourceName)
	if !known && it.ResourceName != "" {
		return &RefusedError{Message: message.WriteRefusedResourceUnknown()}
	}
	if err := mayAsk(c, t, it, resource); err != nil {
		return &RefusedError{Message: message.WriteRefusedRequester()}
	}
	if s.Evidence != nil && Closes(it.Change) {
		stopped, err := s.Evidence.Stopped(ctx, it.ResourceName)
		if err != nil {
			return err
		}
		if !stopped.IsZero() {
			return &RefusedError{Message: message.WriteRefusedRolloutStopped()}
		}
	}
	now, err := s.chain(c, t.itemKind(i), t.Requester, false, *it, t.CreatedAt)
	if err != nil {
		if aboutItem(err) {
			return &RefusedError{Message: message.WriteRefusedApprovalPolicies()}
		}
		return err
	}
	if missing := unmet(it.Steps, now.Steps); len(missing) > 0 || it.ManySteps && !now.ManySteps {
		return &stricterError{now, missing}
	}
	return nil
}
