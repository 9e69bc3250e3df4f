// Package reporter contains the loop of acp-node: it polls the agent of its node, and writes the node's report to
// the API server of the member.
package reporter

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/nodereport"
	"github.com/acp-io/acp/internal/nodereport/ciliumagent"
)

// Agent is the agent of the node.
type Agent interface {
	Health(ctx context.Context) (ciliumagent.Health, error)
	Policies(ctx context.Context) (ciliumagent.Policies, error)
	Endpoints(ctx context.Context) ([]ciliumagent.Endpoint, error)
}

// Writer writes a report.
type Writer interface {
	Write(ctx context.Context, r *nodereport.Report) error
}

// Config configures a Reporter.
type Config struct {
	Node   string
	Agent  Agent
	Writer Writer
	Log    *slog.Logger
	// Interval is the time between two reads of the agent. Heartbeat is the time after which a report is written, and all
	// policies are read, although nothing seems to have changed; it must be well below nodereport.StaleAfter.
	Interval, Heartbeat time.Duration
	// Now is the clock of the node.
	Now func() time.Time
}

// Reporter reports about one node.
type Reporter struct {
	config  Config
	tracker *nodereport.Tracker
	metrics *metrics
	read    time.Time // when all policies were read

	mu      sync.Mutex
	written *nodereport.Report
	problem error
}

// New returns a Reporter that is idle until Run.
func New(c Config) *Reporter {
	return &Reporter{config: c, tracker: nodereport.NewTracker(c.Node), metrics: newMetrics()}
}

// Run reports until the context ends.
func (r *Reporter) Run(ctx context.Context) {
	tick := time.NewTicker(r.config.Interval)
	defer tick.Stop()
	for {
		r.step(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Ready returns nil if the last report that had to be written was written. An agent that does not answer is reported, and
// is no reason to restart acp-node.
func (r *Reporter) Ready(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problem
}

// Reported reports whether a report was written.
func (r *Reporter) Reported() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written != nil
}

// step reads the agent once, and writes the report if it says something else or the last one becomes old.
func (r *Reporter) step(ctx context.Context) {
	report := r.look(ctx)
	if ctx.Err() != nil {
		return // the look was interrupted
	}
	r.metrics.observe(&report)
	r.mu.Lock()
	before := r.written
	r.mu.Unlock()
	if report.EqualExceptTime(before) && report.Time.Sub(before.Time) < r.config.Heartbeat {
		return
	}
	err := r.config.Writer.Write(ctx, &report)
	r.metrics.wrote(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && ctx.Err() == nil && r.problem == nil {
		r.config.Log.Error("The report cannot be written; retrying", "error", err)
	}
	if r.problem = err; err == nil {
		r.written = &report
	}
}

// look returns what the agent says now. The endpoints are read after the policies: an endpoint that enforces a later state
// than the policies were read in enforces these policies, too, or their successors.
func (r *Reporter) look(ctx context.Context) nodereport.Report {
	now := r.config.Now()
	report, err := r.ask(ctx, now)
	if err != nil {
		return r.tracker.Failed(now, err)
	}
	return report
}

func (r *Reporter) ask(ctx context.Context, now time.Time) (nodereport.Report, error) {
	health, err := r.config.Agent.Health(ctx)
	if err != nil {
		return nodereport.Report{}, err
	}
	endpoints, err := r.config.Agent.Endpoints(ctx)
	if err != nil {
		return nodereport.Report{}, err
	}
	if r.tracker.NeedsPolicies(endpoints) || now.Sub(r.read) >= r.config.Heartbeat || now.Before(r.read) {
		policies, err := r.config.Agent.Policies(ctx)
		if err != nil {
			return nodereport.Report{}, err
		}
		r.tracker.Take(policies)
		r.read = now
		if endpoints, err = r.config.Agent.Endpoints(ctx); err != nil {
			return nodereport.Report{}, err
		}
	}
	return r.tracker.Report(now, health, endpoints), nil
}
