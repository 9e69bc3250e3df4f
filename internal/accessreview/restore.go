package accessreview

import (
	"context"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// AfterRestore changes the campaigns in progress of a restored backup, so that silence does not decide about what people may
// have decided after the backup. If it is certain that nothing happened since, the deadlines move by the time that passed;
// otherwise the campaigns end, and what nobody decided is skipped. It returns the ids of the campaigns that ended.
func AfterRestore(ctx context.Context, s Store, backup, now time.Time, nothingSince bool) ([]string, error) {
	list, err := s.Campaigns(ctx, CampaignFilter{States: []State{StatePreparing, StateOpen}})
	if err != nil {
		return nil, err
	}
	now = now.UTC()
	var ended []string
	for _, c := range list {
		if err := undoSilence(ctx, s, c.ID); err != nil {
			return nil, fmt.Errorf("%s: %w", FormatID(c.ID), err)
		}
		if !c.EndedAt.IsZero() {
			continue
		}
		if _, err := s.Change(ctx, c.ID, func(c *Campaign) (News, error) {
			details := map[string]string{}
			action := "review.postponed"
			if nothingSince {
				c.Deadline = c.Deadline.Add(max(now.Sub(backup), 0))
				c.NextReminder = nextReminder(c, now)
				details["deadline"] = c.Deadline.Format(time.RFC3339)
			} else {
				action = "review.ended"
				c.EndedAt, c.EndMessage, c.NextReminder = now, message.ReviewRestored(backup.UTC().Format(time.RFC3339)), time.Time{}
				ledger.SetMessage(details, "reason", c.EndMessage)
			}
			return News{Entries: []ledger.Entry{{At: now, Action: action, Object: FormatID(c.ID), Details: details}}}, nil
		}); err != nil {
			return nil, fmt.Errorf("%s: %w", FormatID(c.ID), err)
		}
		if !nothingSince {
			ended = append(ended, FormatID(c.ID))
		}
	}
	return ended, nil
}

// undoSilence lets lines that silence decided, and that have no outcome, be decided again.
func undoSilence(ctx context.Context, s Store, id int64) error {
	after := Position{Campaign: id}
	for {
		lines, err := s.Lines(ctx, LineFilter{Campaign: id, States: []LineState{LineDecided, LineApplying}, After: after, Limit: batch})
		if err != nil || len(lines) == 0 {
			return err
		}
		numbers := make([]int, len(lines))
		for i, l := range lines {
			numbers[i] = l.Number
		}
		after.Number = numbers[len(numbers)-1]
		if _, _, err := s.ChangeLines(ctx, id, numbers, func(_ Campaign, l *Line) (bool, News, error) {
			if !l.Silent {
				return false, News{}, nil
			}
			l.reopen()
			return true, News{}, nil
		}); err != nil {
			return err
		}
	}
}
