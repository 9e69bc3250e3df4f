package auditlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/audit"
)

// Output receives complete lines. An error of Write means that the lines were not written and are dropped; an Output that retries
// does so before it returns.
type Output interface {
	Write(ctx context.Context, lines []byte) error
	Close() error
}

// Config configures a Writer. Zero values get the defaults that the fields name.
type Config struct {
	Output Output
	Log    *slog.Logger
	// Registerer registers the metrics. Default: a private registry.
	Registerer prometheus.Registerer
	// Queue is the number of connections that may wait for the output; further ones are dropped. Default: 20,000.
	Queue int
	// BatchLines is the number of lines at which a batch is written (default 500), and BatchEvery the longest time that a line
	// waits (default 1 s).
	BatchLines int
	BatchEvery time.Duration
}

// Writer writes the audit log.
type Writer struct {
	cfg     Config
	queue   chan audit.Flow
	written prometheus.Counter
	dropped *prometheus.CounterVec
	failing bool
}

// New returns a Writer. Run writes what Flow enqueues.
func New(cfg Config) (*Writer, error) {
	if cfg.Output == nil || cfg.Log == nil {
		return nil, errors.New("configure the audit log: the output and the logger must be set")
	}
	if cfg.Registerer == nil {
		cfg.Registerer = prometheus.NewRegistry()
	}
	if cfg.Queue <= 0 {
		cfg.Queue = 20_000
	}
	if cfg.BatchLines <= 0 {
		cfg.BatchLines = 500
	}
	if cfg.BatchEvery <= 0 {
		cfg.BatchEvery = time.Second
	}
	t := &Writer{
		cfg:   cfg,
		queue: make(chan audit.Flow, cfg.Queue),
		written: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "acp_flow_audit_log_written_total", Help: "Lines of the audit log that were written to its output."},
		),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "acp_flow_audit_log_dropped_total",
			Help: "Lines of the audit log that were dropped because the queue was full or the output failed. The flow store has the connections.",
		}, []string{"reason"}),
	}
	cfg.Registerer.MustRegister(t.written, t.dropped)
	return t, nil
}

// Flow implements hubble.FlowListener: it enqueues a copy of the flow, or drops it if the queue is full. It never blocks.
func (t *Writer) Flow(f *audit.Flow) {
	select {
	case t.queue <- *f:
	default:
		t.dropped.WithLabelValues("queue").Inc()
	}
}

// lastWrite bounds how long writing may continue after the context has ended.
const lastWrite = 5 * time.Second

// Run writes batches until the context ends, then writes what is left in the queue, within five seconds, and closes the output.
// The caller stops the sources first.
func (t *Writer) Run(ctx context.Context) error {
	var batch bytes.Buffer
	lines := 0
	flush := func(ctx context.Context) {
		if lines > 0 {
			t.write(ctx, batch.Bytes(), lines)
			batch.Reset()
			lines = 0
		}
	}
	add := func(ctx context.Context, f *audit.Flow) {
		b, err := json.Marshal(RecordOf(f))
		if err != nil {
			t.dropped.WithLabelValues("output").Inc()
			return
		}
		batch.Write(append(b, '\n'))
		if lines++; lines >= t.cfg.BatchLines {
			flush(ctx)
		}
	}
	// A write that is under way when the context ends is completed.
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWrite, cancel) })()
	ticker := time.NewTicker(t.cfg.BatchEvery)
	defer ticker.Stop()
	for {
		select {
		case f := <-t.queue:
			add(writing, &f)
			continue
		case <-ticker.C:
			flush(writing)
			continue
		case <-ctx.Done():
		}
		for len(t.queue) > 0 {
			f := <-t.queue
			add(writing, &f)
		}
		flush(writing)
		if err := t.cfg.Output.Close(); err != nil {
			return fmt.Errorf("close the audit log: %w", err)
		}
		return nil
	}
}

func (t *Writer) write(ctx context.Context, b []byte, lines int) {
	err := t.cfg.Output.Write(ctx, b)
	switch err {
	case nil:
		t.written.Add(float64(lines))
		if t.failing {
			t.cfg.Log.Info("the audit log's output works again")
		}
	default:
		t.dropped.WithLabelValues("output").Add(float64(lines))
		if !t.failing {
			t.cfg.Log.Error("the audit log's output fails; its lines are dropped and counted, and the flow store has the connections", "error", err)
		}
	}
	t.failing = err != nil
}
