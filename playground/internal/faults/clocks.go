package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

const (
	// clockSkew is the offset of a wrong clock.
	clockSkew = 10 * time.Minute
	// auditor is a user who may read and verify the ledger.
	auditor = "hannah"
)

// now returns the time that enforcement follows: the later of the adapters' clock and the host's clock.
func (d *drill) now() time.Time {
	if d.outage == nil {
		return time.Now()
	}
	return time.Now().Add(d.outage.clockAhead)
}

// skewClocks restarts programs with a clock offset, and returns an outage whose end restarts them with correct clocks.
func (d *drill) skewClocks(ctx context.Context, off time.Duration, programs ...string) (*outage, error) {
	o := &outage{remaining: 2 + d.IntN(2), end: func(ctx context.Context) error { return d.restartWithClock(ctx, 0, programs...) }}
	return o, d.restartWithClock(ctx, off, programs...)
}

// restartWithClock restarts programs with a clock offset and checks that their logs confirm it.
func (d *drill) restartWithClock(ctx context.Context, off time.Duration, programs ...string) error {
	for _, p := range programs {
		if err := os.WriteFile(filepath.Join(d.clocks, p), []byte(off.String()), 0o600); err != nil {
			return fmt.Errorf("set the clock of %s: %w", p, err)
		}
		if err := d.Supervisor.Kill(p); err != nil {
			return err
		}
	}
	if err := d.Supervisor.StartAndWait(ctx, programs...); err != nil {
		return err
	}
	for _, p := range programs {
		if err := checkLoggedClock(filepath.Join(d.Fleet.Layout.Logs(), p+".log"), off); err != nil {
			return err
		}
	}
	return nil
}

// checkLoggedClock returns an error unless the log of a program confirms its clock offset. Without this check a program that was
// built without the drill tag would pass every step with a wrong clock.
func checkLoggedClock(file string, off time.Duration) error {
	log, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("check whether the clock was set: %w", err)
	}
	const prefix = "built for drills: the clock is off by "
	_, rest, found := cutLast(log, []byte(prefix))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if !found || string(line) != off.String() {
		return fmt.Errorf("the clock was not set to be off by %s (%q in %s): build the programs with the tag drill, as `make faults` does", off, line, file)
	}
	return nil
}

// cutLast slices s around the last instance of sep.
func cutLast(s, sep []byte) (before, after []byte, found bool) {
	if i := bytes.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, nil, false
}

// pickSkew returns a random clock offset, ahead or behind, and the word for it.
func (d *drill) pickSkew() (off time.Duration, word string) {
	if d.IntN(2) == 0 {
		return clockSkew, "ahead"
	}
	return -clockSkew, "behind"
}

// clockOfAdapters restarts the adapters with wrong clocks. With clocks that are behind, a grant that has expired must not take effect
// again. With clocks that are ahead, a grant with some minutes left expires early and takes effect again with correct clocks.
func clockOfAdapters(ctx context.Context, d *drill) (*outage, string, error) {
	off, word := d.pickSkew()
	t, app := pick(d.Rand, d.targets()), pick(d.Rand, grantedApps)
	s := d.statement(t, app)
	if s.NotAfter = seconds(3); off > 0 {
		s.NotAfter = seconds(300)
	}
	if err := d.addStatement(ctx, t, s); err != nil {
		return nil, "", err
	}
	if off < 0 {
		if err := d.sleepUntil(ctx, s.NotAfter.Time); err != nil {
			return nil, "", err
		}
	}
	if err := d.waitForConvergence(ctx, healthyTimeout); err != nil {
		return nil, "", err
	}
	o, err := d.skewClocks(ctx, off, "adapter", "adapter-2")
	o.clockAhead = max(0, off)
	return o, fmt.Sprintf("%s %s, after a grant of %s to %s until %s", clockSkew, word, app, t.short, s.NotAfter.Format(time.TimeOnly)), err
}

// clockOfPortal restarts the portal with a wrong clock. Tickets must reach their states, including those in progress, and the hash
// chain of the ledger must stay intact.
func clockOfPortal(ctx context.Context, d *drill) (*outage, string, error) {
	off, word := d.pickSkew()
	if _, err := d.portalSessions(ctx); err != nil {
		return nil, "", err
	}
	did, err := ticketStep(ctx, d)
	if err != nil {
		return nil, "", err
	}
	o, err := d.skewClocks(ctx, off, "portal")
	right := o.end
	o.end = func(ctx context.Context) error {
		return errors.Join(d.checkLedger(ctx), right(ctx), d.checkLedger(ctx))
	}
	return o, fmt.Sprintf("%s %s, after ticket %s", clockSkew, word, did), err
}

// checkLedger verifies the whole chain of the ledger through the portal, as the auditor.
func (d *drill) checkLedger(ctx context.Context) error {
	sessions, err := d.portalSessions(ctx)
	if err != nil {
		return err
	}
	var report struct {
		Intact bool  `json:"intact"`
		Lines  int64 `json:"lines"`
		Reason struct {
			Text string `json:"text"`
		} `json:"reason"`
	}
	if err := sessions[auditor].Call(ctx, http.MethodPost, "/ledger/verify", map[string]any{}, &report); err != nil {
		return fmt.Errorf("verify the ledger: %w", err)
	}
	if !report.Intact || report.Lines == 0 {
		return fmt.Errorf("the ledger is reported as broken: %+v", report)
	}
	return nil
}

// clockOfCollector restarts the collector with a wrong clock. It must continue to count connections and must record no losses.
func clockOfCollector(ctx context.Context, d *drill) (*outage, string, error) {
	off, word := d.pickSkew()
	before, err := d.readFlows(ctx)
	if err != nil {
		return nil, "", err
	}
	o, err := d.skewClocks(ctx, off, "flow-collector")
	if err != nil {
		return nil, "", err
	}
	right := o.end
	o.end = func(ctx context.Context) error {
		meanwhile, err := d.waitForMoreFlows(ctx, before)
		if err := errors.Join(err, right(ctx)); err != nil {
			return err
		}
		_, err = d.waitForMoreFlows(ctx, meanwhile)
		return err
	}
	return o, fmt.Sprintf("%s %s", clockSkew, word), nil
}

// flows contains the number of connections that the collector has counted and the number of losses that it has recorded.
type flows struct {
	connections int64
	losses      int
}

// waitForMoreFlows waits until more connections are counted than before, and returns an error when a new loss is recorded.
func (d *drill) waitForMoreFlows(ctx context.Context, before flows) (now flows, err error) {
	return now, d.poll(ctx, healthyTimeout, func(ctx context.Context) error {
		if now, err = d.readFlows(ctx); err != nil {
			return err
		}
		if now.losses > before.losses {
			return fmt.Errorf("%d losses of flows, but %d before the clock of the collector was changed", now.losses, before.losses)
		}
		if now.connections <= before.connections {
			return fmt.Errorf("%d connections were counted, not more than before the collector was restarted", now.connections)
		}
		return nil
	})
}

// readFlows reads the totals from the flow store.
func (d *drill) readFlows(ctx context.Context) (out flows, err error) {
	store, err := sqlite.OpenReader(ctx, d.FlowFile)
	if err != nil {
		return out, fmt.Errorf("open the flow store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Totals(ctx, audit.Filter{}, func(t audit.Total) error {
		out.connections += t.Count
		return nil
	}); err != nil {
		return out, fmt.Errorf("count connections: %w", err)
	}
	losses, err := store.Losses(ctx, audit.LossQuery{})
	out.losses = len(losses.Items)
	return out, err
}
