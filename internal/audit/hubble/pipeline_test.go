package hubble

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/rollup"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

// lostAnswerStore stores every other batch and returns an error nevertheless.
type lostAnswerStore struct {
	*sqlite.Store
	calls int
}

func (s *lostAnswerStore) Append(ctx context.Context, b *audit.Batch) error {
	s.calls++
	err := s.Store.Append(ctx, b)
	if s.calls%2 == 1 && err == nil {
		return errors.New("the answer was lost")
	}
	return err
}

// countingSink lets a test wait for the events that a follower has passed on.
type countingSink struct {
	*rollup.Aggregator
	taken chan struct{}
}

func (c countingSink) Add(t *audit.Event) {
	c.Aggregator.Add(t)
	c.taken <- struct{}{}
}

// TestCrashesCountOnce kills the collector repeatedly, with everything in memory, on the whole way from Hubble's API to the file.
func TestCrashesCountOnce(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	o := newObserver()
	address := serve(t, o, insecure.NewCredentials())
	unsure := &lostAnswerStore{Store: store}
	const runs, perRun = 12, 40
	for i := range runs {
		totals, err := rollup.New(rollup.Config{Store: unsure, Log: slog.New(slog.DiscardHandler), Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		sink := countingSink{totals, make(chan struct{}, runs*perRun)}
		cfg := config(address, newMemorySink())
		cfg.Resume, cfg.Sink = store, sink
		_, stop := start(t, cfg)
		o.emit(verdicts(i*perRun, (i+1)*perRun)...)
		last := i == runs-1
		for n := 0; n < perRun/2; n++ { // at least these are new in every run
			<-sink.taken
		}
		if i%3 != 0 || last { // otherwise it is killed before it has stored anything
			_ = totals.Flush(t.Context()) // the answer may be lost; the batch is then stored without the collector's knowledge
		}
		if !last {
			stop() // the content of the memory is lost
			continue
		}
		total := func() int64 {
			_ = totals.Flush(t.Context()) // as above
			page, err := store.Connections(t.Context(), audit.ConnectionQuery{})
			if err != nil {
				t.Fatal(err)
			}
			var n int64
			for _, c := range page.Items {
				n += c.Count
			}
			return n
		}
		for total() < runs*perRun {
			select {
			case <-sink.taken:
			case <-time.After(time.Minute):
				t.Fatalf("counted %d connections, want %d", total(), runs*perRun)
			}
		}
		stop()
		if n := total(); n != runs*perRun {
			t.Errorf("counted %d connections, want %d", n, runs*perRun)
		}
	}
	losses, err := store.Losses(t.Context(), audit.LossQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if len(losses.Items) > 0 {
		t.Errorf("got losses %+v, want none: the ring held everything", losses.Items)
	}
}
