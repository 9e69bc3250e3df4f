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
	// calm is how long nothing may happen before it counts as quiet.
	calm = 10 * time.Second
	// lookForCalm is how often the requests are counted, and so how exact the figure is.
	lookForCalm  = 500 * time.Millisecond
	restartLimit = 20 * time.Minute
)

// control asks the supervisor for something about processes.
func (f *fleet) control(ctx context.Context, verb string, names ...string) error {
	client := supervisor.NewClient(playgroundfleet.Layout{Dir: f.ready.StateDir}.Run())
	for _, name := range names {
		if err := client.Do(ctx, verb, name); err != nil {
			return fmt.Errorf("%s %s: %w", verb, name, err)
		}
	}
	return nil
}

// restart measures an adapter that is restarted with many resources.
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
	carrying := s.carry(ctx)
	// The adapter writes as fast as KubeFed's client of a member could, 20 a second, whoever carries. It starts when everything is
	// there, so that it writes each only once.
	if err := f.control(ctx, "stop", "adapter"); err != nil {
		return errors.Join(err, carrying())
	}
	if err := s.protect(ctx, o.Resources); err != nil {
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

// asked is what the adapter says that it asked API servers for and looked at, in all, and what is in its queues.
type asked struct{ reads, writes, looks, waiting float64 }

// quiet waits until the adapter looks at nothing, writes nothing, has nothing to do, and asks for no more than its probes of the members do. It
// returns when that began, from an instant, and how much was written since the adapter's start.
func (f *fleet) quiet(ctx context.Context, from time.Time) (time.Duration, int, error) {
	ctx, cancel := context.WithTimeout(ctx, restartLimit)
	defer cancel()
	// Each member is probed every two seconds for each kind that is read there.
	probes := float64(len(playgroundfleet.Members())*16) * calm.Seconds() / 2
	type sample struct {
		at time.Time
		asked
	}
	var seen []sample
	tick := time.NewTicker(lookForCalm)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("the adapter does not become quiet: %w", ctx.Err())
		case <-tick.C:
		}
		now, err := f.asks(ctx)
		if err != nil {
			seen = nil // it is being started
			continue
		}
		seen = append(seen, sample{time.Now(), now})
		for len(seen) > 0 && (time.Since(seen[0].at) > calm+lookForCalm || seen[0].writes != now.writes || seen[0].looks != now.looks || seen[0].waiting > 0) {
			seen = seen[1:]
		}
		if len(seen) > 0 && time.Since(seen[0].at) >= calm && now.looks > 0 && now.waiting == 0 && now.reads-seen[0].reads <= probes {
			return seen[0].at.Sub(from), int(now.writes), nil
		}
	}
}

// asks reads the adapter's metrics.
func (f *fleet) asks(ctx context.Context) (asked, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", f.ready.Ports["adapter-metrics"]), nil)
	if err != nil {
		return asked{}, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return asked{}, err
	}
	defer res.Body.Close()
	var a asked
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
			a.looks += value
		case strings.HasPrefix(line, "workqueue_depth{"), strings.HasPrefix(line, "acp_bulk_waiting{"):
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
