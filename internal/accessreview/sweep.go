package accessreview

import (
	"context"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// sweepOverlap is how far back a sweep looks beyond the previous one, for tickets of replicas whose clocks are behind and
// of transactions that end late.
const sweepOverlap = 10 * time.Minute

// sweep brings open lines up to date whose grants were changed since the last sweep.
func (w *Worker) sweep(ctx context.Context, c *Campaign) error {
	now := w.Now().UTC()
	pairs, versions, err := w.Grants.ChangedGrants(ctx, c.Swept.Add(-sweepOverlap), w.swept[c.ID])
	if err != nil {
		return err
	}
	for _, p := range pairs {
		lines, err := w.Store.Lines(ctx, LineFilter{Campaign: c.ID, Pair: p,
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
	w.swept[c.ID] = versions // the overlap of the next sweep contains them again
	if now.Sub(c.Swept) < sweepOverlap/2 {
		return nil
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
	if probe := *l; !probe.behind(g, stands) {
		return nil
	}
	return w.change(ctx, l, func(c Campaign, l *Line) (bool, News, error) {
		changed, news := l.follow(&c, g, stands, w.Now().UTC())
		return changed, news, nil
	})
}

// change changes one line, unless it was changed since it was read.
func (w *Worker) change(ctx context.Context, l *Line, f func(Campaign, *Line) (bool, News, error)) error {
	version := l.Version
	lines, failed, err := w.Store.ChangeLines(ctx, l.Campaign, []int{l.Number}, func(c Campaign, l *Line) (bool, News, error) {
		if l.Version != version {
			return false, News{}, nil
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

// outcomeNews returns the ledger entry of the outcome of a line, if it has one.
func outcomeNews(l *Line, now time.Time) News {
	if l.State != LineDone {
		return News{}
	}
	return News{Entries: []ledger.Entry{l.entry(now, "", "review.outcome")}}
}
