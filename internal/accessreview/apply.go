package accessreview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// silence decides the open lines after the deadline, as the campaign says.
func (w *Worker) silence(ctx context.Context, c *Campaign) error {
	if now := w.Now(); c.EndedAt.IsZero() && now.Before(c.Deadline) {
		return nil
	}
	for {
		if err := w.lead(ctx); err != nil {
			return err
		}
		lines, err := w.Store.Lines(ctx, LineFilter{Campaign: c.ID, States: []LineState{LineOpen}, Limit: batch})
		if err != nil || len(lines) == 0 {
			return err
		}
		numbers := make([]int, len(lines))
		for i, l := range lines {
			numbers[i] = l.Number
		}
		now := w.Now().UTC()
		if _, failed, err := w.Store.ChangeLines(ctx, c.ID, numbers, func(c Campaign, l *Line) (bool, News, error) {
			if l.State != LineOpen {
				return false, News{}, nil
			}
			if !c.EndedAt.IsZero() {
				l.done(OutcomeSkipped, now)
				return true, outcomeNews(l, now), nil
			}
			l.Silent, l.DecidedAt, l.State = true, now, LineDecided
			switch c.Silence {
			case SilenceKeep:
				l.Decision = Keep
				l.done(OutcomeKept, now)
			case SilenceRevoke:
				l.Decision = Revoke
			default:
				l.Decision, l.Until = Shorten, now.Add(c.Grace).Truncate(time.Second)
			}
			return true, News{Entries: []ledger.Entry{l.entry(now, "", "review.silent")}}, nil
		}); err != nil {
			return err
		} else if len(failed) > 0 {
			return fmt.Errorf("%d lines could not be decided by silence", len(failed))
		}
		w.step("silent")
	}
}

// apply applies decisions to grants. An error about one line does not affect the others.
func (w *Worker) apply(ctx context.Context, c *Campaign) error {
	var failed failures
	after := Position{Campaign: c.ID}
	for {
		if err := w.lead(ctx); err != nil {
			return err
		}
		lines, err := w.Store.Lines(ctx, LineFilter{Campaign: c.ID, States: []LineState{LineDecided, LineApplying}, After: after, Limit: batch})
		if err != nil || len(lines) == 0 {
			return errors.Join(failed.err(), err)
		}
		for i := range lines {
			l := &lines[i]
			after.Number = l.Number
			if err := w.applyLine(ctx, l); err != nil {
				if ctx.Err() != nil {
					return err
				}
				failed.add(fmt.Errorf("line %d: %w", l.Number, err))
			}
			if i%20 == 19 {
				if err := w.lead(ctx); err != nil {
					return err
				}
			}
		}
	}
}

// applyLine compares the grant with what was decided about it, and then changes it. After a crash in between it is changed
// without a second comparison, because the change itself made it differ.
func (w *Worker) applyLine(ctx context.Context, l *Line) error {
	if l.State == LineDecided {
		g, stands, err := w.Grants.StandingGrant(ctx, l.Target)
		if err != nil {
			return err
		}
		if err := w.change(ctx, l, func(c Campaign, l *Line) (bool, News, error) {
			now := w.Now().UTC()
			if l.State != LineDecided {
				return false, News{}, nil
			}
			if l.Silent && !c.EndedAt.IsZero() { // nobody decided it, and the end of the campaign leaves it as it is
				l.done(OutcomeSkipped, now)
				return true, outcomeNews(l, now), nil
			}
			_, news := l.follow(&c, g, stands, now)
			if l.State == LineDecided {
				l.State = LineApplying
			}
			return true, news, nil
		}); err != nil || l.State != LineApplying {
			return err
		}
		w.step("applying")
	}
	d := approval.ReviewDecision{Person: l.DecidedBy, OnBehalfOf: l.OnBehalfOf, Review: l.Ref(), SIDs: l.SIDs, Until: l.Until}
	d.Why.Comment = l.Comment
	if l.DecidedBy == "" {
		d.Why.Message = message.ReviewNobodyDecided(FormatID(l.Campaign))
	}
	outcome, execute := OutcomeRevoked, w.Grants.RevokeReviewed
	if l.Decision == Shorten {
		outcome, execute = OutcomeShortened, w.Grants.ShortenReviewed
	}
	result, err := execute(ctx, l.Target, d)
	if err != nil {
		return err
	}
	w.step("executed")
	if !result.Changed { // all of it ended, or has an earlier end, without the review
		outcome = OutcomeEnded
	}
	err = w.change(ctx, l, func(_ Campaign, l *Line) (bool, News, error) {
		now := w.Now().UTC()
		l.done(outcome, now)
		news := outcomeNews(l, now)
		if len(result.Later) > 0 { // an extension that nobody reviewed stands
			l.Changed = now
			news.Entries[0].Details["notReviewed"] = strings.Join(result.Later, " ")
		}
		return true, news, nil
	})
	w.step("recorded")
	return err
}
