package accessreview

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// Worker prepares campaigns, applies decisions to grants, reminds reviewers, lets the silence decide after the deadline and
// closes campaigns. One replica works at a time; what another one did is never repeated, because each step is stored before
// the next one and changes of grants are idempotent.
type Worker struct {
	*Service
	Name     string // unique among replicas
	Evidence EvidenceReader
	Every    time.Duration
	Log      *slog.Logger
	wake     chan struct{}
	// step is called at the points where a crash matters most, so that tests can simulate crashes.
	step func(point string)
}

// NewWorker returns a worker. It sets the Wake of the service.
func NewWorker(s *Service, name string, e EvidenceReader, every time.Duration, log *slog.Logger) *Worker {
	w := &Worker{Service: s, Name: name, Evidence: e, Every: every, Log: log, wake: make(chan struct{}, 1), step: func(string) {}}
	s.Wake = func() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	return w
}

// Run works until the context ends.
func (w *Worker) Run(ctx context.Context) {
	t := time.NewTicker(w.Every)
	defer t.Stop()
	for {
		if err := w.Once(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errNotLeading) {
			w.Log.Warn("access reviews could not be worked on; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-t.C:
		}
	}
}

var errNotLeading = errors.New("another replica works on access reviews")

// lease is how long a replica works without renewing its lease; longer than one batch takes.
const lease = time.Minute

// lead renews the lease. It is called before each batch.
func (w *Worker) lead(ctx context.Context) error {
	leads, err := w.Store.Lead(ctx, w.Name, w.Now(), lease)
	if err == nil && !leads {
		err = errNotLeading
	}
	return err
}

// Once does what is due now. An error about one campaign does not affect the others.
func (w *Worker) Once(ctx context.Context) error {
	if err := w.lead(ctx); err != nil {
		return err
	}
	list, err := w.Store.Campaigns(ctx, CampaignFilter{States: []State{StatePreparing, StateOpen}})
	if err != nil {
		return err
	}
	var failed error
	for _, c := range list {
		if err := w.campaign(ctx, c); err != nil {
			if errors.Is(err, errNotLeading) || ctx.Err() != nil {
				return err
			}
			failed = errors.Join(failed, fmt.Errorf("%s: %w", FormatID(c.ID), err))
		}
	}
	return failed
}

func (w *Worker) campaign(ctx context.Context, c Campaign) error {
	if c.State == StatePreparing {
		return w.prepare(ctx, c)
	}
	steps := []func(context.Context, *Campaign) error{w.sweep, w.remind, w.silence, w.apply, w.close}
	for _, step := range steps {
		if err := w.lead(ctx); err != nil {
			return err
		}
		if err := step(ctx, &c); err != nil {
			return err
		}
	}
	return nil
}

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
				ResourceName: l.ResourceName, Actions: l.Actions, Since: l.Since, End: l.End, Requesters: l.Requesters, SIDs: l.SIDs, Version: l.Grant}
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

// sweepOverlap is how far back a sweep looks beyond the previous one, for tickets of replicas whose clocks are behind and
// of transactions that end late.
const sweepOverlap = 10 * time.Minute

// sweep brings open lines up to date whose grants were changed since the last sweep.
func (w *Worker) sweep(ctx context.Context, c *Campaign) error {
	now := w.Now().UTC()
	pairs, err := w.Grants.ChangedGrants(ctx, c.Swept.Add(-sweepOverlap))
	if err != nil {
		return err
	}
	for _, p := range pairs {
		lines, err := w.Store.Lines(ctx, LineFilter{Campaign: c.ID, ApplicationName: p.ApplicationName, ResourceName: p.ResourceName,
			States: []LineState{LineOpen, LineDecided}})
		if err != nil {
			return err
		}
		for i := range lines {
			if err := w.refresh(ctx, &lines[i]); err != nil {
				return err
			}
		}
	}
	*c, err = w.Store.Change(ctx, c.ID, func(c *Campaign) (News, error) { c.Swept = now; return News{}, nil })
	return err
}

// refresh compares a line with its grant.
func (w *Worker) refresh(ctx context.Context, l *Line) error {
	g, stands, err := w.Grants.StandingGrant(ctx, l.Target)
	if err != nil {
		return err
	}
	if probe := *l; !probe.follow(g, stands, w.Now()) {
		return nil
	}
	err = w.change(ctx, l, func(_ Campaign, l *Line) (bool, []ledger.Entry, error) {
		now := w.Now().UTC()
		changed := l.follow(g, stands, now)
		return changed, outcomeEntry(l, now), nil
	})
	return err
}

// change changes one line, unless it was changed since it was read.
func (w *Worker) change(ctx context.Context, l *Line, f func(Campaign, *Line) (bool, []ledger.Entry, error)) error {
	version := l.Version
	lines, failed, err := w.Store.ChangeLines(ctx, l.Campaign, []int{l.Number}, func(c Campaign, l *Line) (bool, []ledger.Entry, error) {
		if l.Version != version {
			return false, nil, nil
		}
		return f(c, l)
	})
	if err == nil {
		err = failed[l.Number]
	}
	if err == nil && len(lines) == 1 {
		*l = lines[0]
	}
	return err
}

// outcomeEntry returns the ledger entry of the outcome of a line, if it has one.
func outcomeEntry(l *Line, now time.Time) []ledger.Entry {
	if l.State != LineDone {
		return nil
	}
	return []ledger.Entry{l.entry(now, "", "review.outcome")}
}

// remind notifies the reviewers of open lines.
func (w *Worker) remind(ctx context.Context, c *Campaign) error {
	now := w.Now().UTC()
	if c.NextReminder.IsZero() || now.Before(c.NextReminder) || !c.Deciding(now) {
		return nil
	}
	waiting, err := w.Store.Waiting(ctx, c.ID)
	if err != nil {
		return err
	}
	counts := map[string]int64{}
	for p, n := range waiting {
		counts[p] = int64(n)
	}
	due := c.NextReminder
	*c, err = w.Store.Change(ctx, c.ID, func(c *Campaign) (News, error) {
		if !c.NextReminder.Equal(due) {
			return News{}, nil // another replica did it
		}
		c.NextReminder = nextReminder(c, now)
		if len(counts) == 0 {
			return News{}, nil
		}
		return News{
			Entries: []ledger.Entry{
				{At: now, Action: "review.reminded", Object: FormatID(c.ID), Details: map[string]string{"people": fmt.Sprint(len(counts))}},
			},
			Notifications: notifications(c, eventReminded, now, counts),
		}, nil
	})
	return err
}

// lastReminder is how long before the deadline the last reminder is sent.
const lastReminder = 24 * time.Hour

// nextReminder returns the next time to remind: each interval after the opening, and a day before the deadline.
func nextReminder(c *Campaign, now time.Time) time.Time {
	last := c.Deadline.Add(-lastReminder)
	if c.RemindEvery > 0 {
		next := now.Add(c.RemindEvery)
		if next.Before(last.Add(-lastReminder / 2)) {
			return next
		}
	}
	if last.After(now) {
		return last
	}
	return time.Time{}
}

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
		if _, failed, err := w.Store.ChangeLines(ctx, c.ID, numbers, func(c Campaign, l *Line) (bool, []ledger.Entry, error) {
			if l.State != LineOpen {
				return false, nil, nil
			}
			if !c.EndedAt.IsZero() {
				l.done(OutcomeSkipped, now)
				return true, outcomeEntry(l, now), nil
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
			return true, []ledger.Entry{l.entry(now, "", "review.silent")}, nil
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
	var failed error
	after := Position{Campaign: c.ID}
	for {
		if err := w.lead(ctx); err != nil {
			return err
		}
		lines, err := w.Store.Lines(ctx, LineFilter{Campaign: c.ID, States: []LineState{LineDecided, LineApplying}, After: after, Limit: batch})
		if err != nil || len(lines) == 0 {
			return errors.Join(failed, err)
		}
		for i := range lines {
			l := &lines[i]
			after.Number = l.Number
			if err := w.applyLine(ctx, l); err != nil {
				if ctx.Err() != nil {
					return err
				}
				failed = errors.Join(failed, fmt.Errorf("line %d: %w", l.Number, err))
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
		if err := w.change(ctx, l, func(c Campaign, l *Line) (bool, []ledger.Entry, error) {
			now := w.Now().UTC()
			if l.State != LineDecided {
				return false, nil, nil
			}
			if l.Silent && !c.EndedAt.IsZero() { // nobody decided it, and the end of the campaign leaves it as it is
				l.done(OutcomeSkipped, now)
				return true, outcomeEntry(l, now), nil
			}
			if l.follow(g, stands, now); l.State == LineDecided {
				l.State = LineApplying
			}
			return true, outcomeEntry(l, now), nil
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
	err = w.change(ctx, l, func(_ Campaign, l *Line) (bool, []ledger.Entry, error) {
		now := w.Now().UTC()
		l.done(outcome, now)
		entries := outcomeEntry(l, now)
		if len(result.Later) > 0 { // an extension that nobody reviewed stands
			l.Changed = now
			for i := range entries {
				entries[i].Details["notReviewed"] = strings.Join(result.Later, " ")
			}
		}
		return true, entries, nil
	})
	w.step("recorded")
	return err
}

// close closes a campaign of which every line has an outcome, and whose lines cannot be decided any more.
func (w *Worker) close(ctx context.Context, c *Campaign) error {
	now := w.Now().UTC()
	if c.Deciding(now) {
		return nil
	}
	_, err := w.Store.Change(ctx, c.ID, func(c *Campaign) (News, error) {
		all, err := w.Store.Count(ctx, "", c.ID)
		if err != nil {
			return News{}, err
		}
		n := all[c.ID]
		if c.State != StateOpen || c.Deciding(now) || n.Open+n.Applying > 0 {
			return News{}, errUnchanged
		}
		c.State, c.ClosedAt, c.NextReminder, c.Final = StateClosed, now, time.Time{}, &n
		people := map[string]int64{c.CreatedBy: int64(n.Total)}
		return News{Entries: []ledger.Entry{closedEntry(c, now)}, Notifications: notifications(c, eventClosed, now, people)}, nil
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

var errUnchanged = errors.New("nothing to change")

func closedEntry(c *Campaign, now time.Time) ledger.Entry {
	n := c.Final
	return ledger.Entry{At: now, Action: "review.closed", Object: FormatID(c.ID), Details: map[string]string{"lines": fmt.Sprint(n.Total),
		"kept": fmt.Sprint(n.Kept), "shortened": fmt.Sprint(n.Shortened), "revoked": fmt.Sprint(n.Revoked), "ended": fmt.Sprint(n.Ended),
		"skipped": fmt.Sprint(n.Skipped), "silent": fmt.Sprint(n.Silent)}}
}
