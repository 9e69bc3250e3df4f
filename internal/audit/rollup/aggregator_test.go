package rollup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
)

// store is an audit.Writer in memory that can fail before or after it has stored a batch.
type store struct {
	mu            sync.Mutex
	batches       map[string]*audit.Batch
	attempts      []string
	failBefore    error
	failAfter     error // the batch is stored and the answer lost
	prunedBefore  time.Time
	appendStarted chan struct{}
}

func newStore() *store {
	return &store{batches: map[string]*audit.Batch{}, appendStarted: make(chan struct{}, 1000)}
}

func (s *store) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *store) Append(_ context.Context, b *audit.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts = append(s.attempts, b.ID)
	select {
	case s.appendStarted <- struct{}{}:
	default:
	}
	if s.failBefore != nil {
		return s.failBefore
	}
	s.batches[b.ID] = b
	return s.failAfter
}

func (s *store) Resume(context.Context, string) (audit.Resume, error) { return audit.Resume{}, nil }

func (s *store) Holder(context.Context, string) (string, error)                     { return "", nil }
func (s *store) Lease(context.Context, string, string, time.Duration) (bool, error) { return true, nil }

func (s *store) Release(context.Context, string, string) error { return nil }

func (s *store) Prune(_ context.Context, r audit.Retention) (int64, error) {
	s.set(func() { s.prunedBefore = r.Rollups })
	return 0, nil
}

func (s *store) total() (rollups, losses int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		for _, r := range b.Rollups {
			rollups += r.Count
		}
		for _, l := range b.Losses {
			losses += l.Count
		}
	}
	return rollups, losses
}

func aggregator(t *testing.T, s *store, change ...func(*Config)) *Aggregator {
	t.Helper()
	cfg := Config{Store: s, Log: slog.New(slog.DiscardHandler), FlushEvery: time.Hour, Now: func() time.Time { return audittest.T0 }}
	for _, c := range change {
		c(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return a
}

func countedEvent(i int, edges ...audit.Edge) *audit.Event {
	at := audittest.T0.Add(time.Duration(i) * time.Second)
	t := &audit.Event{SeenEvent: audit.SeenEvent{Source: "m1", Time: at, ID: uint64(i)}, Count: 1, Position: at, ForgetBefore: at.Add(-10 * time.Second)}
	if len(edges) > 0 {
		t.EdgeGroup = &audit.EdgeGroup{Edges: edges}
	}
	return t
}

func client(i int) audit.Edge {
	return audittest.Edge(func(e *audit.Edge) { e.Subject = fmt.Sprint(i) })
}

func TestBatchIncludesItsPosition(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	for i := range 90 {
		a.Add(countedEvent(i, client(0)))
	}
	a.Add(countedEvent(90)) // remembered and not counted
	if err := a.Flush(t.Context()); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	if len(s.batches) != 1 {
		t.Fatalf("got %d batches, want 1", len(s.batches))
	}
	b := s.batches[s.attempts[0]]
	var counts []string
	for _, r := range b.Rollups {
		counts = append(counts, fmt.Sprint(r.Bucket.Sub(audittest.T0), r.Count, r.FirstSeen.Sub(audittest.T0), r.LastSeen.Sub(audittest.T0)))
	}
	if len(counts) == 2 && counts[0] > counts[1] {
		counts[0], counts[1] = counts[1], counts[0]
	}
	if diff := cmp.Diff([]string{"0s 60 0s 59s", "1m0s 30 1m0s 1m29s"}, counts); diff != "" {
		t.Errorf("roll-ups (-want +got):\n%s", diff)
	}
	end := audittest.T0.Add(90 * time.Second)
	if diff := cmp.Diff([]audit.Position{{Source: "m1", Time: end}}, b.Positions); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	if len(b.Seen) != 11 {
		t.Errorf("got %d seen events, want the 11 of the last 10 s", len(b.Seen))
	}
	if diff := cmp.Diff(map[string]time.Time{"m1": end.Add(-10 * time.Second)}, b.ForgetSeen); diff != "" {
		t.Errorf("ForgetSeen (-want +got):\n%s", diff)
	}
	if err := a.Flush(t.Context()); err != nil || len(s.attempts) != 1 {
		t.Errorf("empty flush: got error %v and %d attempts", err, len(s.attempts))
	}
}

func TestBatchIsRetriedUnchangedAfterALostAnswer(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	a.Add(countedEvent(0, client(0)))
	s.failAfter = errors.New("connection reset")
	if err := a.Flush(t.Context()); !errors.Is(err, s.failAfter) || !errors.Is(a.Err(), s.failAfter) {
		t.Fatalf("Flush: %v, Err: %v", err, a.Err())
	}
	a.Add(countedEvent(1, client(0)))
	s.failAfter = nil
	if err := a.Flush(t.Context()); err != nil || a.Err() != nil {
		t.Fatalf("Flush: %v, Err: %v", err, a.Err())
	}
	if len(s.attempts) != 3 || s.attempts[0] != s.attempts[1] || s.attempts[1] == s.attempts[2] {
		t.Errorf("got attempts %v, want the first batch twice with the same ID, then another", s.attempts)
	}
	if n, _ := s.total(); n != 2 {
		t.Errorf("got %d stored connections, want 2", n)
	}
}

func TestConnectionsBeyondMaxKeysAreRecordedAsLost(t *testing.T) {
	s := newStore()
	var log bytes.Buffer
	a := aggregator(t, s, func(c *Config) {
		c.FlushKeys, c.MaxKeys = 5, 10
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	s.failBefore = fmt.Errorf("%w: disk full", audit.ErrReadOnly)
	for i := range 3 {
		a.Add(countedEvent(i, client(i)))
		if err := a.Flush(t.Context()); !errors.Is(err, audit.ErrReadOnly) {
			t.Fatalf("Flush: %v", err)
		}
	}
	for i := 3; i < 40; i++ {
		a.Add(countedEvent(i, client(i)))
	}
	a.Add(countedEvent(40, client(5))) // counted in an existing roll-up
	s.failBefore = nil
	if err := a.Flush(t.Context()); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	stored, lost := s.total()
	if stored+lost != 41 || lost != 41-12 {
		t.Errorf("got %d stored and %d lost, want 12 and 29", stored, lost)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("got %d log lines about the failure, want 1:\n%s", n, log.String())
	}
	if !strings.Contains(log.String(), "can be written again") {
		t.Errorf("the recovery was not logged:\n%s", log.String())
	}
}

func TestRunStoresPendingCountsAtTheEndAndPrunes(t *testing.T) {
	s := newStore()
	a := aggregator(t, s, func(c *Config) { c.Retention = 48 * time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	a.Add(countedEvent(0, client(0)))
	cancel()
	if err := <-done; err != nil {
		t.Fatalf("Run: %v", err)
	}
	if n, _ := s.total(); n != 1 {
		t.Errorf("got %d stored connections after the end, want 1", n)
	}
	if want := audittest.T0.Add(-48 * time.Hour); !s.prunedBefore.Equal(want) {
		t.Errorf("got prune time %v, want %v", s.prunedBefore, want)
	}
}

// TestCanceledFlushIsNoFailureOfTheStore checks that a flush whose caller has stopped is neither logged nor reported as a failure of the store,
// and that its batch is kept. A flush that the store did not complete in time is a failure.
func TestCanceledFlushIsNoFailureOfTheStore(t *testing.T) {
	var logged bytes.Buffer
	s := newStore()
	a := aggregator(t, s, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
	a.Add(countedEvent(1, client(1)))
	s.set(func() { s.failBefore = context.Canceled })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Flush(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Flush: %v", err)
	}
	if a.Err() != nil || logged.Len() > 0 {
		t.Errorf("the store counts as failed: %v, %s", a.Err(), logged.String())
	}
	late, done := context.WithTimeout(t.Context(), 0)
	defer done()
	s.set(func() { s.failBefore = context.DeadlineExceeded })
	if err := a.Flush(late); err == nil || a.Err() == nil || logged.Len() == 0 {
		t.Errorf("a store that is too slow is not reported: %v, %v", err, a.Err())
	}
	s.set(func() { s.failBefore = nil })
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, _ := s.total(); n != 1 {
		t.Errorf("%d connections are stored, want 1", n)
	}
}

func TestFlushKeysTriggersAFlush(t *testing.T) {
	s := newStore()
	a := aggregator(t, s, func(c *Config) { c.FlushKeys, c.MaxKeys = 3, 100 }) // the ticker does not fire during the test
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for i := range 3 {
		a.Add(countedEvent(i, client(i)))
	}
	<-s.appendStarted
	cancel()
	if err := <-done; err != nil {
		t.Fatalf("Run: %v", err)
	}
	if n, _ := s.total(); n != 3 {
		t.Errorf("got %d stored connections, want 3", n)
	}
}

func TestConcurrentSourcesAddUp(t *testing.T) {
	s := newStore()
	a := aggregator(t, s, func(c *Config) { c.FlushEvery = time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var wg sync.WaitGroup
	const sources, events = 4, 500
	for range sources {
		wg.Go(func() {
			for i := range events {
				a.Add(countedEvent(i, client(i%7)))
				a.AddLoss(audit.Loss{Cluster: "m1", Reason: audit.LossRing, Count: 1, From: audittest.T0, To: audittest.T0})
			}
		})
	}
	wg.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Fatalf("Run: %v", err)
	}
	if n, lost := s.total(); n != sources*events || lost != sources*events {
		t.Errorf("got %d stored and %d lost, want %d of each", n, lost, sources*events)
	}
}

func TestSeenIsBoundedWhileTheStoreFails(t *testing.T) {
	p := newPending(&Config{MaxKeys: 1, MaxFlows: 1, Now: time.Now}, 0, nil)
	const rate = 1000 // events per second
	for i := range 100 * rate {
		at := audittest.T0.Add(time.Duration(i) * time.Second / rate)
		p.add(
			&audit.Event{SeenEvent: audit.SeenEvent{Source: "m1", Time: at, ID: uint64(i)}, Position: at, ForgetBefore: at.Add(-10 * time.Second)},
			newPortTracker(1),
		)
	}
	if n := len(p.source("m1").seen); n > 4*10*rate {
		t.Errorf("got %d seen events, want about the last %d, which can be delivered again", n, 10*rate)
	}
	if n := len(p.batch("x", "").Seen); n != 11*rate {
		t.Errorf("got %d seen events in the batch, want those of the last 10 s in whole seconds: %d", n, 11*rate)
	}
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"NoStore": {Log: slog.New(slog.DiscardHandler)},
		"NoLog":   {Store: newStore()},
		"Keys":    {Store: newStore(), Log: slog.New(slog.DiscardHandler), FlushKeys: 10, MaxKeys: 9},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(cfg); err == nil {
				t.Error("New accepted the configuration")
			}
		})
	}
}
