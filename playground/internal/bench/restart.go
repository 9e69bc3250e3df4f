package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	playgroundfleet "github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

const (
	// quietPeriod is how long no activity must be observed before the adapter counts as quiet.
	quietPeriod = 10 * time.Second
	// quietInterval is the interval at which the requests are counted, which is the precision of the figure.
	quietInterval = 500 * time.Millisecond
	restartLimit  = 20 * time.Minute
)

// control sends a command about processes to the supervisor.
func (f *fleet) control(ctx context.Context, verb string, names ...string) error {
	client := supervisor.NewClient(playgroundfleet.Layout{Dir: f.ready.StateDir}.Run())
	for _, name := range names {
		if err := client.Do(ctx, verb, name); err != nil {
			return fmt.Errorf("%s %s: %w", verb, name, err)
		}
	}
	return nil
}

// restart measures the restart of an adapter with many resources.
func restart(ctx context.Context, o Options, f *fleet, out, progress io.Writer) error {
	if err := f.control(ctx, "stop", "portal", "flow-collector", "kubefed"); err != nil {
		return err
	}
	s, err := enter(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	fmt.Fprintf(progress, "%d enforced resources, carried to the members without KubeFed …\n", o.Resources)
	began := time.Now()
	carrying := s.propagate(ctx)
	// The adapter writes 20 objects a second, which is the rate of KubeFed's client of a member, whatever propagates them. It
	// starts when all objects exist, so that it writes each only once.
	if err := f.control(ctx, "stop", "adapter"); err != nil {
		return errors.Join(err, carrying())
	}
	if err := s.protect(ctx, 0, o.Resources); err != nil {
		return errors.Join(err, carrying())
	}
	if err := f.control(ctx, "start", "adapter"); err != nil {
		return errors.Join(err, carrying())
	}
	if err := s.until(ctx, restartLimit, o.Resources, objectOf, granted); err != nil {
		return errors.Join(err, carrying())
	}
	if _, _, err := f.quiet(ctx, began); err != nil {
		return err
	}
	fmt.Fprintf(progress, "  made in %.0f s; the adapter is restarted …\n", time.Since(began).Seconds())
	if err := f.control(ctx, "kill", "adapter"); err != nil {
		return err
	}
	began = time.Now()
	if err := f.control(ctx, "start", "adapter"); err != nil {
		return err
	}
	took, writes, err := f.quiet(ctx, began)
	if err != nil {
		return err
	}
	rss, err := f.rssOf(ctx, "adapter")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "bench restart_quiet_10k %.1f s\n", took.Seconds())
	fmt.Fprintf(out, "bench restart_writes_10k %d writes\n", writes)
	fmt.Fprintf(out, "bench adapter_rss_10k %.0f MB\n", float64(rss)/1e6)
	return carrying()
}

// activity contains the adapter's total numbers of API reads, writes and reconciles, and the length of its queues.
type activity struct{ reads, writes, reconciles, waiting float64 }

// quiet waits until the adapter of the fleet is quiet.
func (f *fleet) quiet(ctx context.Context, from time.Time) (time.Duration, int, error) {
	return AwaitQuiet(ctx, f.adapterMetrics(), from, len(playgroundfleet.Members()))
}

// adapterActivity reads the metrics of the adapter of the fleet.
func (f *fleet) adapterActivity(ctx context.Context) (activity, error) {
	return activityOf(ctx, f.adapterMetrics())
}

func (f *fleet) adapterMetrics() string {
	return fmt.Sprintf("127.0.0.1:%d", f.ready.Ports["adapter-metrics"])
}

// AwaitQuiet waits until an adapter reconciles and writes nothing, its queues are empty, and its reads are limited to the probes of the
// members. It returns the time from an instant until that began, and the number of writes since the start of the adapter. metrics is
// the address of the adapter's metrics.
func AwaitQuiet(ctx context.Context, metrics string, from time.Time, members int) (time.Duration, int, error) {
	ctx, cancel := context.WithTimeout(ctx, restartLimit)
	defer cancel()
	// Each member is probed every two seconds for each kind that the adapter reads.
	probes := float64(members*16) * quietPeriod.Seconds() / 2
	type sample struct {
		at time.Time
		activity
	}
	var seen []sample
	tick := time.NewTicker(quietInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("the adapter does not become quiet: %w", ctx.Err())
		case <-tick.C:
		}
		now, err := activityOf(ctx, metrics)
		if err != nil {
			seen = nil // the adapter is starting
			continue
		}
		seen = append(seen, sample{time.Now(), now})
		for len(seen) > 0 {
			first := seen[0]
			active := first.writes != now.writes || first.reconciles != now.reconciles || first.waiting > 0
			if !active && time.Since(first.at) <= quietPeriod+quietInterval {
				break
			}
			seen = seen[1:]
		}
		if len(seen) > 0 && time.Since(seen[0].at) >= quietPeriod && now.reconciles > 0 && now.waiting == 0 && now.reads-seen[0].reads <= probes {
			return seen[0].at.Sub(from), int(now.writes), nil
		}
	}
}

// activityOf reads an adapter's metrics.
func activityOf(ctx context.Context, metrics string) (activity, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metrics+"/metrics", nil)
	if err != nil {
		return activity{}, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return activity{}, err
	}
	defer res.Body.Close()
	var a activity
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		line := lines.Text()
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			continue
		}
		switch {
		case strings.HasPrefix(line, "rest_client_requests_total{") && strings.Contains(line, `method="GET"`):
			a.reads += value
		case strings.HasPrefix(line, "rest_client_requests_total{"):
			a.writes += value
		case strings.HasPrefix(line, "controller_runtime_reconcile_total{"):
			a.reconciles += value
		case strings.HasPrefix(line, "workqueue_depth{"), strings.HasPrefix(line, "acp_requests_waiting{"), strings.HasPrefix(line, "acp_units_waiting{"):
			a.waiting += value
		}
	}
	return a, nil
}

func (f *fleet) rssOf(ctx context.Context, process string) (int64, error) {
	status, err := supervisor.NewClient(playgroundfleet.Layout{Dir: f.ready.StateDir}.Run()).Status(ctx)
	if err != nil {
		return 0, err
	}
	for _, s := range status {
		if s.Name == process {
			return s.RSSBytes, nil
		}
	}
	return 0, fmt.Errorf("no process %s", process)
}
