package hubble

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/exporter"
)

// TestDamagedFileIsALossOfUnknownSize verifies that a rotated file that cannot be read is recorded as a loss of unknown size, in
// the log and in a metric, that the files after it are counted, and that a follower that resumes after it does not report it
// again.
func TestDamagedFileIsALossOfUnknownSize(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "events.log")
	lines := func(name string, from, to int) {
		var b bytes.Buffer
		for i := from; i < to; i++ {
			b.Write(append(exported(t, verdict(i)), '\n'))
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rotated := at(200)
	lines("events-2026-11-02T08-00-00.000.log", 0, 100)
	damaged := filepath.Join(dir, "events-2026-11-02T09-00-00.000.log.gz")
	if err := os.WriteFile(damaged, []byte("this was a gzip file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(damaged, rotated, rotated); err != nil {
		t.Fatal(err)
	}
	lines("events.log", 200, 400)

	l := newMemorySink()
	var log bytes.Buffer
	cfg := config("", l)
	cfg.Lines, cfg.Log = &exporter.File{Path: path, Poll: time.Millisecond}, slog.New(slog.NewTextHandler(&log, nil))
	_, stop := start(t, cfg)
	l.until(t, "what is readable", func(l *memorySink) bool { return l.takenIn == 300 })
	stop()
	wantEdges(t, l, map[audit.Edge]int64{edge(): 300})
	loss := audit.Loss{Cluster: "m1", Reason: audit.LossGap, From: at(99), To: rotated}
	wantLosses(t, l, loss)
	if n := testutil.ToFloat64(cfg.Metrics.damaged.WithLabelValues("m1")); n != 1 {
		t.Errorf("got %v damaged files in the metric, want 1", n)
	}
	if !strings.Contains(log.String(), filepath.Base(damaged)) {
		t.Errorf("the log does not name the file:\n%s", &log)
	}

	lines("events.log", 200, 410)
	_, stop = start(t, cfg)
	l.until(t, "what came later", func(l *memorySink) bool { return l.takenIn == 310 })
	stop()
	wantEdges(t, l, map[audit.Edge]int64{edge(): 310})
	wantLosses(t, l, loss)
}
