package accessreview

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
)

const (
	// batch is the number of lines of one transaction.
	batch = 500
	// evidenceGracePeriod is the time for which the flow store cannot be read before a campaign opens without evidence.
	evidenceGracePeriod = time.Hour
)

// prepare collects the lines and opens the campaign. After a crash it begins again.
func (w *Worker) prepare(ctx context.Context, c Campaign) error {
	now := w.Now().UTC()
	if !c.EndedAt.IsZero() {
		_, err := w.Store.Change(ctx, c.ID, func(c *Campaign) (News, error) {
			if c.State != StatePreparing {
				return News{}, ErrNotBuilding
			}
			c.State, c.ClosedAt, c.Final = StateClosed, now, &Counts{}
			return News{Entries: []ledger.Entry{closedEntry(c, now)}}, nil
		})
		return err
	}
	cat := w.Catalog()
	lines, err := w.collect(ctx, cat, c, now)
	var refused *approval.Error
	if errors.As(err, &refused) && refused.Code == approval.CodeInvalid {
		return w.abandon(ctx, c.ID, refused.Message) // it would be refused again
	}
	if err != nil {
		return err
	}
	if err := w.addEvidence(ctx, c, lines, now); errors.Is(err, errNotLeading) || ctx.Err() != nil || !w.HostKnown() {
		return err
	} else if err != nil {
		if c.UnreadableSince.IsZero() || now.Sub(c.UnreadableSince) < evidenceGracePeriod {
			_, stored := w.Store.Change(ctx, c.ID, func(c *Campaign) (News, error) {
				if c.Unreadable = true; c.UnreadableSince.IsZero() {
					c.UnreadableSince = now
				}
				return News{}, nil
			})
			return errors.Join(err, stored)
		}
		w.Log.Warn("an access review opens without evidence, because the flows cannot be read", "review", FormatID(c.ID), "error", err)
	}
	order := map[Decision]int{Revoke: 0, Shorten: 1, None: 2, Keep: 3}
	slices.SortStableFunc(lines, func(a, b Line) int { return cmp.Compare(order[a.Recommendation], order[b.Recommendation]) })
	for i := range lines {
		lines[i].Number, lines[i].Version = i+1, 1
	}
	build := rand.Text()
	if err := w.Store.Rebuild(ctx, c.ID, build); err != nil {
		return err
	}
	for part := range slices.Chunk(lines, batch) {
		if err := w.lead(ctx); err != nil {
			return err
		}
		if err := w.Store.AddLines(ctx, c.ID, build, part); err != nil {
			return err
		}
		w.step("added")
	}
	counts := map[string]int64{}
	for _, l := range lines {
		for _, p := range l.Reviewers {
			counts[p]++
		}
	}
	opened := w.Now().UTC() // the lines took a while
	_, err = w.Store.Change(ctx, c.ID, func(c *Campaign) (News, error) {
		if c.Build != build || c.State != StatePreparing {
			return News{}, ErrNotBuilding
		}
		if !c.EndedAt.IsZero() {
			return News{}, ErrNotBuilding // the next pass closes it
		}
		c.postpone(opened)
		// The first sweep finds changes that were made since the grants were read.
		c.State, c.OpenedAt, c.Swept, c.Build = StateOpen, opened, now.Add(-sweepOverlap), ""
		c.NextReminder = nextReminder(c, opened)
		n := News{Entries: []ledger.Entry{{At: opened, Action: "review.opened", Object: FormatID(c.ID),
			Details: map[string]string{"lines": fmt.Sprint(len(lines)), "reviewers": fmt.Sprint(len(counts)), "deadline": c.Deadline.Format(time.RFC3339)}}}}
		if len(counts) > 0 {
			n.Notifications = append(n.Notifications, notification(c, eventOpened, opened, counts))
		}
		return n, nil
	})
	if err == nil {
		w.step("opened")
	}
	return err
}

// abandon closes a campaign whose lines cannot be collected.
func (w *Worker) abandon(ctx context.Context, id int64, why message.Message) error {
	now := w.Now().UTC()
	_, err := w.Store.Change(ctx, id, func(c *Campaign) (News, error) {
		if c.State != StatePreparing {
			return News{}, ErrNotBuilding
		}
		c.State, c.ClosedAt, c.EndedAt, c.EndMessage, c.Final = StateClosed, now, now, why, &Counts{}
		details := map[string]string{}
		ledger.SetMessage(details, "reason", why)
		ended := ledger.Entry{At: now, Action: "review.ended", Object: FormatID(c.ID), Details: details}
		n := notification(c, eventAbandoned, now, map[string]int64{c.CreatedBy: 0})
		n.Facts.Message = why
		return News{Entries: []ledger.Entry{ended, closedEntry(c, now)}, Notifications: []notify.ResourceEvent{n}}, nil
	})
	return err
}

// shortPreparation is how long collecting the lines takes at most without moving the deadline.
const shortPreparation = 5 * time.Minute

// postpone moves the deadline of a campaign that opens late, so that the reviewers have the time that was planned.
func (c *Campaign) postpone(opening time.Time) {
	if late := opening.Sub(c.CreatedAt); late > shortPreparation {
		c.Deadline = c.Deadline.Add(late)
	}
}

// grantsAtOnce bounds the resources of one query to the flow store.
const grantsAtOnce = 2000

// addEvidence sets the evidence and the recommendation of lines. After an error, the remaining lines have none.
func (w *Worker) addEvidence(ctx context.Context, c Campaign, lines []Line, now time.Time) error {
	for part := range slices.Chunk(lines, grantsAtOnce) {
		if err := w.lead(ctx); err != nil {
			return err
		}
		grants := make([]approval.StandingGrant, len(part))
		for i, l := range part {
			grants[i] = approval.StandingGrant{Target: l.Target, Application: l.Application, ApplicationName: l.ApplicationName, Resource: l.Resource,
				ResourceName: l.ResourceName, Scope: l.Scope, Actions: l.Actions, Since: l.Since, End: l.End, Requesters: l.Requesters,
				SIDs: l.SIDs, Version: l.Grant}
		}
		found, err := w.Evidence.Evidence(ctx, grants, c.WindowDays, now)
		if err != nil {
			return err
		}
		for i := range part {
			part[i].Evidence = found[part[i].Target]
			part[i].Recommendation = recommend(part[i].Evidence, now)
		}
	}
	return nil
}
