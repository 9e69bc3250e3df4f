package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/audit/hubble/relaytest"
	"github.com/acp-io/acp/playground/internal/bench"
)

// together measures single revocations while people request and decide access in the portal, and the collector follows the connections of all members.
// The portal, the collector, the people and the relays are on the machine of the adapter, the host and the members, too.
func (r *run) together(ctx context.Context) (err error) {
	if r.People == 0 && r.Flows == 0 {
		return nil
	}
	r.say("%d revocations, each after the previous one, while %d people decide and %d flows happen every second …", r.Changes, r.People, r.Flows)
	ctx, end := context.WithCancel(ctx)
	defer end()
	var relays *relaytest.Relays
	if r.Flows > 0 {
		if relays, err = r.startCollector(ctx); err != nil {
			return err
		}
		defer relays.Close()
	}
	p := &people{run: r}
	if r.People > 0 {
		if p, err = r.startPortal(ctx); err != nil {
			return err
		}
	}
	before, err := r.costs(ctx)
	if err != nil {
		return err
	}
	began, sent := time.Now(), sentBy(relays)
	changes, err := r.whileDeciding(ctx, p)
	if err != nil {
		return err
	}
	took, sent := time.Since(began), sentBy(relays)-sent
	after, err := r.costs(ctx)
	if err != nil {
		return err
	}
	after.Print(r.progress, "a revocation and a grant, with what happened meanwhile", before, r.Changes)
	r.figure("together_seconds", took.Seconds(), "s")
	r.quantiles("together_revoke", changes.observed)
	r.quantiles("together_revoke_written", changes.written)
	if err := r.memoryOf("together_adapter_rss", adapterProcess); err != nil {
		return err
	}
	if r.People > 0 {
		r.figure("together_decisions_per_s", float64(len(p.decided))/took.Seconds(), "per_s")
		r.quantiles("together_decide", p.decided)
		r.quantiles("together_approve", p.approved)
		if err := r.memoryOf("together_portal_rss", portalProcess); err != nil {
			return err
		}
	}
	if r.Flows > 0 {
		r.figure("together_flows_per_s", float64(sent)/took.Seconds(), "per_s")
		if err := r.collected(ctx, relays); err != nil {
			return err
		}
	}
	for _, name := range []string{portalProcess, collectorProcess} {
		if name == portalProcess && r.People == 0 || name == collectorProcess && r.Flows == 0 {
			continue
		}
		if err := r.supervisor.Stop(name); err != nil {
			return err
		}
	}
	return nil
}

func sentBy(relays *relaytest.Relays) int64 {
	if relays == nil {
		return 0
	}
	return relays.Sent()
}

// whileDeciding measures revocations while people decide.
func (r *run) whileDeciding(ctx context.Context, p *people) (times, error) {
	deciding, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- p.decide(deciding) }()
	changes, err := r.oneByOne(ctx, nil)
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return times{}, err
	}
	if r.People > 0 && len(p.approved) == 0 {
		return times{}, errors.New("no request became effective: the run needs more revocations (--changes)")
	}
	return changes, nil
}

// collected prints how far the collector is behind, and what it lost when it has stored what happened.
func (r *run) collected(ctx context.Context, relays *relaytest.Relays) error {
	behind, err := r.delay(ctx)
	if err != nil {
		return err
	}
	r.figure("together_flows_behind", behind.Seconds(), "s")
	if err := r.memoryOf("together_collector_rss", collectorProcess); err != nil {
		return err
	}
	stored, decided, err := r.stored(ctx, relays)
	if err != nil {
		return err
	}
	r.figure("together_flows_lost", float64(relays.Sent()-stored), "flows")
	if decided < stored {
		return fmt.Errorf("the policies decide about %d of %d stored connections, want all", decided, stored)
	}
	return nil
}

// quantiles prints the median and the 99th percentile of times.
func (r *run) quantiles(name string, times []time.Duration) {
	r.figure(name+"_p50", bench.Millis(bench.Quantile(times, 0.50)), "ms")
	r.figure(name+"_p99", bench.Millis(bench.Quantile(times, 0.99)), "ms")
}

// memoryOf prints the resident memory of a process.
func (r *run) memoryOf(figure, process string) error {
	bytes, err := r.rssOf(process)
	if err != nil {
		return err
	}
	r.figure(figure, float64(bytes)/megabyte, "MB")
	return nil
}
