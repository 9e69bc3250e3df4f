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
	// clockOff is how wrong clocks are.
	clockOff = 10 * time.Minute
	// auditor may look into the ledger.
	auditor = "hannah"
)

// now is the time that what is enforced follows: that of the adapters, which is not behind the host's.
func (d *drill) now() time.Time {
	if d.outage == nil {
		return time.Now()
	}
	return time.Now().Add(d.outage.ahead)
}

// wrongClocks starts programs anew with clocks that are off, and after the outage with right ones.
func (d *drill) wrongClocks(ctx context.Context, off time.Duration, programs ...string) (*outage, error) {
	o := &outage{lasts: 2 + d.IntN(2), end: func(ctx context.Context) error { return d.startAnew(ctx, 0, programs...) }}
	return o, d.startAnew(ctx, off, programs...)
}

func (d *drill) startAnew(ctx context.Context, off time.Duration, programs ...string) error {
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
		if err := saysItsClock(filepath.Join(d.Fleet.Layout.Logs(), p+".log"), off); err != nil {
			return err
		}
	}
	return nil
}

// saysItsClock makes sure that the clock is wrong: a program that is not built for drills would pass every one.
func saysItsClock(file string, off time.Duration) error {
	log, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("look whether the clock was set: %w", err)
	}
	const says = "built for drills: the clock is off by "
	_, rest, found := cutLast(log, []byte(says))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	if !found || string(line) != off.String() {
		return fmt.Errorf("the clock was not set to be off by %s (%q in %s): build the programs with the tag drill, as `make faults` does", off, line, file)
	}
	return nil
}

func cutLast(s, sep []byte) (before, after []byte, found bool) {
	if i := bytes.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, nil, false
}

// ahead or behind.
func (d *drill) aside() (off time.Duration, word string) {
	if d.IntN(2) == 0 {
		return clockOff, "ahead"
	}
	return -clockOff, "behind"
}

// clockOfAdapters: a grant that has ended must not come back with clocks that are behind; one that has some minutes left
// ends with clocks that are ahead, and comes back when they are right again.
func clockOfAdapters(ctx context.Context, d *drill) (*outage, string, error) {
	off, word := d.aside()
	t, app := pick(d.Rand, d.targets()), pick(d.Rand, apps)
	s := d.statement(t, app)
	if s.NotAfter = seconds(3); off > 0 {
		s.NotAfter = seconds(300)
	}
	if err := d.say(ctx, t, s); err != nil {
		return nil, "", err
	}
	if off < 0 {
		if err := d.sleepUntil(ctx, s.NotAfter.Time); err != nil {
			return nil, "", err
		}
	}
	if err := d.settle(ctx, calm); err != nil {
		return nil, "", err
	}
	o, err := d.wrongClocks(ctx, off, "adapter", "adapter-2")
	o.ahead = max(0, off)
	return o, fmt.Sprintf("%s %s, after a grant of %s to %s until %s", clockOff, word, app, t.short, s.NotAfter.Format(time.TimeOnly)), err
}

// clockOfPortal: what people asked for has to come, also what was under way, and the ledger's chain has to hold.
func clockOfPortal(ctx context.Context, d *drill) (*outage, string, error) {
	off, word := d.aside()
	if _, err := d.people(ctx); err != nil {
		return nil, "", err
	}
	did, err := byTicket(ctx, d)
	if err != nil {
		return nil, "", err
	}
	o, err := d.wrongClocks(ctx, off, "portal")
	right := o.end
	o.end = func(ctx context.Context) error {
		return errors.Join(d.ledgerIntact(ctx), right(ctx), d.ledgerIntact(ctx))
	}
	return o, fmt.Sprintf("%s %s, after ticket %s", clockOff, word, did), err
}

// ledgerIntact has the auditor verify the whole chain.
func (d *drill) ledgerIntact(ctx context.Context) error {
	people, err := d.people(ctx)
	if err != nil {
		return err
	}
	var said struct {
		Intact bool   `json:"intact"`
		Lines  int64  `json:"lines"`
		Reason string `json:"reason"`
	}
	if err := people[auditor].Call(ctx, http.MethodPost, "/ledger/verify", map[string]any{}, &said); err != nil {
		return fmt.Errorf("verify the ledger: %w", err)
	}
	if !said.Intact || said.Lines == 0 {
		return fmt.Errorf("the ledger is said to be broken: %+v", said)
	}
	return nil
}

// clockOfCollector: connections go on being counted, and none are said to be lost.
func clockOfCollector(ctx context.Context, d *drill) (*outage, string, error) {
	off, word := d.aside()
	before, err := d.counted(ctx)
	if err != nil {
		return nil, "", err
	}
	o, err := d.wrongClocks(ctx, off, "flow-collector")
	if err != nil {
		return nil, "", err
	}
	right := o.end
	o.end = func(ctx context.Context) error {
		meanwhile, err := d.countsOn(ctx, before)
		if err := errors.Join(err, right(ctx)); err != nil {
			return err
		}
		_, err = d.countsOn(ctx, meanwhile)
		return err
	}
	return o, fmt.Sprintf("%s %s", clockOff, word), nil
}

// flows is how much the collector has counted, and what it knows to be missing.
type flows struct {
	connections int64
	losses      int
}

// countsOn waits until more connections were counted than before.
func (d *drill) countsOn(ctx context.Context, before flows) (now flows, err error) {
	return now, d.until(ctx, calm, func(ctx context.Context) error {
		if now, err = d.counted(ctx); err != nil {
			return err
		}
		if now.losses > before.losses {
			return fmt.Errorf("%d losses of flows, and %d before the collector's clock was wrong", now.losses, before.losses)
		}
		if now.connections <= before.connections {
			return fmt.Errorf("%d connections were counted, as many as before the collector was started anew", now.connections)
		}
		return nil
	})
}

func (d *drill) counted(ctx context.Context) (out flows, err error) {
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
