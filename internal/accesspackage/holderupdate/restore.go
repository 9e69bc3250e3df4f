package holderupdate

import (
	"context"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/message"
)

// AfterRestore ends the updates in progress of a restored backup, because what was decided since the backup is not known: their holders may
// have lost access that they would be given again. It returns the versions whose update ended, as package/number.
func AfterRestore(ctx context.Context, s accesspackage.UpdateStore, backup, now time.Time) ([]string, error) {
	reason := message.AccessPackageUpdateRestored(backup.UTC().Format(time.RFC3339))
	var ended []string
	for {
		open, err := s.OpenUpdates(ctx, maxUpdates)
		if err != nil || len(open) == 0 {
			return ended, err
		}
		for _, u := range open {
			if err := endRestored(ctx, s, u, reason, now); err != nil {
				return ended, fmt.Errorf("version %d of %s: %w", u.Version, u.Package, err)
			}
			ended = append(ended, fmt.Sprintf("%s/%d", u.Package, u.Version))
		}
	}
}

func endRestored(ctx context.Context, s accesspackage.UpdateStore, u accesspackage.Update, reason message.Message, now time.Time) error {
	list, err := s.HolderUpdates(ctx, accesspackage.HolderFilter{Package: u.Package, Version: u.Version, States: accesspackage.OpenHolderStates()})
	if err != nil {
		return err
	}
	for _, h := range list {
		from := h.State
		h.State, h.Message, h.UpdatedAt = accesspackage.HolderFailed, reason, now
		if from == accesspackage.HolderPending {
			h.State = accesspackage.HolderSkipped
		}
		if _, err := s.SaveHolder(ctx, h, from); err != nil {
			return err
		}
	}
	return s.EndUpdate(ctx, u, reason, now)
}
