package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/freeport"
)

// Options of a run.
type Options struct {
	Repo    string
	BinDir  string
	Tickets int
	// Only contains the names of the parts to measure. Empty means all.
	Only []string
	// Units is the number of units that change at once, Pushes the number of single changes, and Resources the number of resources
	// at the restart of the adapter.
	Units, Pushes, Resources int
}

// Run starts a fleet for each group of parts, measures them, and prints the figures to out and the progress to progress.
func Run(ctx context.Context, o Options, out, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "acp-bench-")
	if err != nil {
		return fmt.Errorf("make a folder for the fleets: %w", err)
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
			return
		}
		fmt.Fprintf(progress, "the fleet's state and logs are kept in %s\n", dir)
	}()
	started := false
	for i, group := range groups() {
		wanted := slices.DeleteFunc(group, func(p part) bool { return !o.wants(p.name) })
		if len(wanted) == 0 {
			continue
		}
		if err := measure(ctx, o, filepath.Join(dir, fmt.Sprint("state-", i)), wanted, !started, out, progress); err != nil {
			return err
		}
		started = true
	}
	return nil
}

// measure starts a fleet twice, the second time with a warm cache, and measures parts with it. ready also prints how long the second start
// took.
func measure(ctx context.Context, o Options, stateDir string, parts []part, ready bool, out, progress io.Writer) (err error) {
	port, err := freeport.Find()
	if err != nil {
		return err
	}
	fmt.Fprintln(progress, "first start, which makes the state …")
	first, err := startFleet(ctx, o, stateDir, port)
	if err != nil {
		return err
	}
	if err := first.stop(); err != nil {
		return err
	}
	fmt.Fprintln(progress, "second start …")
	f, err := startFleet(ctx, o, stateDir, port)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := f.stop(); err == nil {
			err = stopErr
		}
	}()
	if ready {
		fmt.Fprintf(out, "bench run_ready_warm %.1f s\n", f.took.Seconds())
	}
	for _, p := range parts {
		if err := p.measure(ctx, o, f, out, progress); err != nil {
			return fmt.Errorf("measure %s: %w", p.name, err)
		}
	}
	return nil
}

// part is a named part of a run. Later parts of a group leave more objects behind.
type part struct {
	name    string
	measure func(ctx context.Context, o Options, f *fleet, out, progress io.Writer) error
}

// groups returns the parts, each group for a fleet of its own: the direct engine is measured with as many resources as KubeFed is.
func groups() [][]part {
	return [][]part{
		{{"tickets", tickets}, {"toggles", toggles}, {"rss", wholeFleet}, {"push", push}, {"restart", restart}},
		{{"direct", direct}},
	}
}

// Parts returns the valid names for Options.Only.
func Parts() []string {
	var names []string
	for _, p := range slices.Concat(groups()...) {
		names = append(names, p.name)
	}
	return names
}

func (o *Options) wants(part string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, part) }

func tickets(ctx context.Context, o Options, f *fleet, out, progress io.Writer) error {
	fmt.Fprintf(progress, "%d tickets, one after the other …\n", o.Tickets)
	samples, err := approveToRealized(ctx, f.ready.PortalURL, o.Tickets+1)
	if err != nil {
		return err
	}
	// After its start KubeFed checks every 10 s whether it is in sync (its SyncedPollPeriod) and propagates nothing before. This
	// affects only the first ticket, which is therefore reported separately and is not part of the p99.
	fmt.Fprintf(out, "bench approve_to_realized_just_started %.0f ms\n", Millis(samples[0].took))
	samples = samples[1:]
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(b.took, a.took) })
	for _, slow := range samples[:min(3, len(samples))] {
		fmt.Fprintf(progress, "  among the slowest: %.0f ms: %s\n", Millis(slow.took), slow.story)
	}
	updates := make([]time.Duration, len(samples))
	for i, s := range samples {
		updates[i] = s.took
	}
	fmt.Fprintf(out, "bench approve_to_realized_p50 %.0f ms\n", Millis(Quantile(updates, 0.50)))
	fmt.Fprintf(out, "bench approve_to_realized_p99 %.0f ms\n", Millis(Quantile(updates, 0.99)))
	return nil
}

func toggles(ctx context.Context, o Options, f *fleet, out, progress io.Writer) error {
	fmt.Fprintf(progress, "%d temporary audits, one after the other …\n", o.Tickets)
	times, err := toggleToRealized(ctx, f.ready.PortalURL, o.Tickets)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "bench toggle_to_realized_p50 %.0f ms\n", Millis(Quantile(times, 0.50)))
	fmt.Fprintf(out, "bench toggle_to_realized_p99 %.0f ms\n", Millis(Quantile(times, 0.99)))
	return nil
}

func wholeFleet(ctx context.Context, _ Options, f *fleet, out, _ io.Writer) error {
	rss, err := f.rss(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "bench fleet_rss %.0f MB\n", float64(rss)/1e6)
	return nil
}

// Quantile returns the quantile q by the nearest-rank method, or 0 for an empty list.
func Quantile(durations []time.Duration, q float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Millis returns a duration in milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
