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

// Output takes whole lines. An error means that they were not taken; whether they are tried again is the output's matter.
type Output interface {
	Write(ctx context.Context, lines []byte) error
	Close() error
}

// Config of a Tap. Zero values get the defaults that the fields name.
type Config struct {
	Output Output
	Log    *slog.Logger
	// Registerer of the metrics; nil: they are kept to itself.
	Registerer prometheus.Registerer
	// Queue is how many connections wait for the output before they are dropped; 20,000.
	Queue int
	// BatchLines and BatchEvery bound what is written at a time, and how long a line waits; 500 and 1 s.
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

// New returns a Tap; Run makes it write.
func New(cfg Config) (*Writer, error) {
	if cfg.Output == nil || cfg.Log == nil {
		return nil, errors.New("configure the tap: the output and the logger must be set")
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
		cfg: cfg, queue: make(chan audit.Flow, cfg.Queue),
		written: prometheus.NewCounter(prometheus.CounterOpts{Name: "acp_flow_tap_written_total", Help: "Lines of the audit log that the tap's output has taken."}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_tap_dropped_total",
			Help: "Lines of the audit log that were dropped: the queue was full, or the output did not take them. The flow store has them."}, []string{"reason"}),
	}
	cfg.Registerer.MustRegister(t.written, t.dropped)
	return t, nil
}

// Flow implements hubble.Tap. It never blocks.
func (t *Writer) Flow(f *audit.Flow) {
	select {
	case t.queue <- *f:
	default:
		t.dropped.WithLabelValues("queue").Inc()
	}
}

// lastWrite bounds the end of the program.
const lastWrite = 5 * time.Second

// Run writes until the context ends, and what is in the queue then. The caller stops the sources first.
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
	// What is being written when the context ends is finished.
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
			return fmt.Errorf("close the tap: %w", err)
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
			t.cfg.Log.Info("the tap's output takes lines again")
		}
	default:
		t.dropped.WithLabelValues("output").Add(float64(lines))
		if !t.failing {
			t.cfg.Log.Error("the tap's output does not take lines; they are dropped and counted, the flow store has them", "error", err)
		}
	}
	t.failing = err != nil
}
