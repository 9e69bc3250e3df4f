//go:build unix

package rollup

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

const fullDiskEnv = "ACP_TEST_FULL_DISK"

// TestFullDisk counts into a file that the system prevents from growing, starting in the middle of a transaction. The limit
// applies to a whole process, so the test runs in one of its own.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullDiskEnv); dir != "" {
		fullDisk(t, dir)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), fullDiskEnv+"="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS: TestFullDisk")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// limitFiles bounds the size of every file that this process writes.
func limitFiles(t *testing.T, bytes uint64) {
	t.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		t.Fatal(err)
	}
	l.Cur = min(bytes, l.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		t.Fatal(err)
	}
}

func fullDisk(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ) // a write beyond the limit then returns an error
	path := filepath.Join(dir, "flows.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const maxKeys = 1000
	var log bytes.Buffer
	a, err := New(Config{Store: s, Log: slog.New(slog.NewTextHandler(&log, nil)), FlushKeys: maxKeys / 2, MaxKeys: maxKeys, FlushEvery: time.Hour,
		Now: func() time.Time { return audittest.T0 }})
	if err != nil {
		t.Fatal(err)
	}
	counted := int64(0)
	take := func(n int) {
		for range n {
			i := int(counted)
			e := audittest.Edge(func(e *audit.Edge) { e.Subject = fmt.Sprint(strings.Repeat("long", 50), i) })
			a.Add(
				&audit.Event{
					SeenEvent: audit.SeenEvent{Source: "m1", Time: audittest.T0, ID: uint64(i)},
					Count:     1,
					Position:  audittest.T0,
					EdgeGroup: &audit.EdgeGroup{Edges: []audit.Edge{e}},
				},
			)
			counted++
		}
	}
	take(100)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	wal, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	limitFiles(t, uint64(wal.Size())+100<<10) // less than the next batch needs
	const rounds = 3
	for range rounds {
		take(3 * maxKeys)
		if err := a.Flush(t.Context()); !errors.Is(err, audit.ErrReadOnly) {
			t.Fatalf("Flush to a full disk: %v, want ErrReadOnly", err)
		}
		a.mu.Lock()
		waiting, keys := len(a.waiting), a.current.count()
		a.mu.Unlock()
		if waiting > 1 || keys > maxKeys {
			t.Errorf("got %d batches and %d roll-ups in memory, want at most 1 and %d", waiting, keys, maxKeys)
		}
	}
	if n := testutil.ToFloat64(a.metrics.failures); n != rounds {
		t.Errorf("got %v failures, want %d", n, rounds)
	}
	balance := func(when string) {
		t.Helper()
		stored, lost := int64(0), int64(0)
		if err := s.Totals(t.Context(), audit.Filter{}, func(x audit.Total) error { stored += x.Count; return nil }); err != nil {
			t.Fatal(err)
		}
		page, err := s.Losses(t.Context(), audit.LossQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Items {
			lost += l.Count
			if l.Reason != audit.LossStore {
				t.Errorf("got a loss with reason %s", l.Reason)
			}
		}
		dropped := int64(testutil.ToFloat64(a.metrics.dropped.WithLabelValues("m1")))
		if stored+lost != counted || lost != dropped || stored <= maxKeys {
			t.Errorf(
				"%s: got %d stored, %d lost and %d in the metric, of %d; want each stored or lost, and the metric equal",
				when,
				stored,
				lost,
				dropped,
				counted,
			)
		}
	}
	limitFiles(t, ^uint64(0))
	if err := a.Flush(t.Context()); err != nil {
		t.Fatalf("Flush with free space: %v", err)
	}
	balance("when there is room again")
	take(maxKeys)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	balance("later")
	for _, said := range []string{"level=ERROR", "can be written again"} {
		if n := strings.Count(log.String(), said); n != 1 {
			t.Errorf("got %d log lines %q, want 1:\n%s", n, said, &log)
		}
	}
}
