package accessreview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/ledger"
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
	trigger  chan struct{}
	// renewEvery is the interval at which the lease is renewed during a pass.
	renewEvery time.Duration
	// swept contains the versions of the changed tickets that were compared with the lines of a campaign.
	swept map[int64]map[int64]int64
	// step is called at the points where a crash matters most, so that tests can simulate crashes.
	step func(point string)
}

// NewWorker returns a worker. It sets the Requeue of the service.
func NewWorker(s *Service, name string, e EvidenceReader, every time.Duration, log *slog.Logger) *Worker {
	w := &Worker{Service: s, Name: name, Evidence: e, Every: every, Log: log, trigger: make(chan struct{}, 1),
		renewEvery: lease / 3, swept: map[int64]map[int64]int64{}, step: func(string) {}}
	s.Requeue = func() {
		select {
		case w.trigger <- struct{}{}:
		default:
		}
	}
	return w
}

// Run processes the due steps of campaigns, every Every and when the service requests it, until the context ends.
func (w *Worker) Run(ctx context.Context) {
	t := time.NewTicker(w.Every)
	defer t.Stop()
	for {
		if err := w.Once(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errNotLeading) {
			w.Log.Warn("access reviews could not be processed; retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.trigger:
		case <-t.C:
		}
	}
}

var errNotLeading = errors.New("another replica works on access reviews")

// lease is how long another replica waits after the last renewal before it continues the work.
const lease = time.Minute

// lead renews the lease. It is called before each batch as well, so that no batch begins after the lease was lost.
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
	return w.keepLeading(ctx, w.pass)
}

// keepLeading calls f and renews the lease until f returns, because a query of the flow store can take longer than the
// lease. It cancels the context of f when the lease is lost, or cannot be renewed in time.
func (w *Worker) keepLeading(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer cancel(nil)
	renewing.Go(func() {
		t := time.NewTicker(w.renewEvery)
		defer t.Stop()
		failures := 0
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			err := w.lead(ctx)
			switch failures++; {
			case err == nil:
				failures = 0
			case errors.Is(err, errNotLeading) || failures > 1:
				cancel(err)
				return
			}
		}
	})
	err := f(ctx)
	if lost := context.Cause(ctx); lost != nil {
		return lost
	}
	return err
}

// pass works on every campaign once. Open ones come first, because their deadlines do not wait while the lines of another
// one are collected.
func (w *Worker) pass(ctx context.Context) error {
	list, err := w.Store.Campaigns(ctx, CampaignFilter{States: []State{StatePreparing, StateOpen}})
	if err != nil {
		return err
	}
	order := map[State]int{StateOpen: 0, StatePreparing: 1}
	slices.SortStableFunc(list, func(a, b Campaign) int { return order[a.State] - order[b.State] })
	maps.DeleteFunc(w.swept, func(id int64, _ map[int64]int64) bool {
		return !slices.ContainsFunc(list, func(c Campaign) bool { return c.ID == id })
	})
	var failed failures
	for _, c := range list {
		if err := w.campaign(ctx, c); err != nil {
			if errors.Is(err, errNotLeading) || ctx.Err() != nil {
				return err
			}
			failed.add(fmt.Errorf("%s: %w", FormatID(c.ID), err))
		}
	}
	return failed.err()
}

// maxFailures bounds the errors of one pass that are kept.
const maxFailures = 20

// failures collects errors of independent parts of the work.
type failures struct {
	list []error
	more int
}

func (f *failures) add(err error) {
	if len(f.list) < maxFailures {
		f.list = append(f.list, err)
	} else {
		f.more++
	}
}

func (f *failures) err() error {
	if f.more > 0 {
		return errors.Join(append(f.list, fmt.Errorf("%d more failures", f.more))...)
	}
	return errors.Join(f.list...)
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

// close closes a campaign of which every line has an outcome, and whose lines cannot be decided any more.
func (w *Worker) close(ctx context.Context, c *Campaign) error {
	now := w.Now().UTC()
	if c.Deciding(now) {
		return nil
	}
	_, err := w.Store.Change(ctx, c.ID, func(c *Campaign) (News, error) {
		all, err := w.Store.Count(ctx, nil, c.ID)
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
