package sharding

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit/sqlite"
)

const ttl = 900 * time.Millisecond

// followRecorder records which collector follows a source, and fails the test if two follow it at the same time.
type followRecorder struct {
	t      *testing.T
	mu     sync.Mutex
	by     string
	grown  chan struct{}
	served map[string]int
}

func newFollowRecorder(t *testing.T) *followRecorder {
	return &followRecorder{t: t, grown: make(chan struct{}), served: map[string]int{}}
}

func (w *followRecorder) follow(name string) func(context.Context, string) {
	return func(ctx context.Context, _ string) {
		w.set(name)
		<-ctx.Done()
		w.set("")
	}
}

func (w *followRecorder) set(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name != "" && w.by != "" {
		w.t.Errorf("%s follows while %s does", name, w.by)
	}
	if w.by = name; name != "" {
		w.served[name]++
	}
	close(w.grown)
	w.grown = make(chan struct{})
}

func (w *followRecorder) until(what string, ok func() bool) {
	w.t.Helper()
	for {
		w.mu.Lock()
		done, grown := ok(), w.grown
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-grown:
		case <-time.After(time.Minute):
			w.t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func newSharder(t *testing.T, l Leases, name string) *Sharder {
	t.Helper()
	s, err := New(Config{Leases: l, Name: name, Log: slog.New(slog.DiscardHandler), TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t *testing.T, s *Sharder, w *followRecorder, name string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx, "m1", w.follow(name)) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func TestOnlyOneCollectorFollowsAndAnotherTakesOver(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w := newFollowRecorder(t)
	stopA := start(t, newSharder(t, store, "a"), w, "a")
	w.until("a follows", func() bool { return w.by == "a" })
	stopB := start(t, newSharder(t, store, "b"), w, "b")
	stopA()
	w.until("b follows", func() bool { return w.by == "b" })
	stopB()
	w.until("nobody follows", func() bool { return w.by == "" })
}

// failingLeases is a store whose lease requests fail while err is set.
type failingLeases struct {
	Leases
	mu  sync.Mutex
	err error
}

func (a *failingLeases) Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error) {
	a.mu.Lock()
	err := a.err
	a.mu.Unlock()
	if err != nil {
		return false, err
	}
	return a.Leases.Lease(ctx, source, holder, ttl)
}

func (a *failingLeases) set(err error) { a.mu.Lock(); defer a.mu.Unlock(); a.err = err }

func TestFollowingStopsBeforeAnUnrenewedLeaseExpires(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w := newFollowRecorder(t)
	a := &failingLeases{Leases: store}
	start(t, newSharder(t, a, "a"), w, "a")
	w.until("a follows", func() bool { return w.by == "a" })
	a.set(errors.New("no route"))
	w.until("a has stopped", func() bool { return w.by == "" })
	start(t, newSharder(t, store, "b"), w, "b") // the recorder fails if b follows while a does
	w.until("b follows", func() bool { return w.by == "b" })
	a.set(nil)
	w.until("a and b were served once each", func() bool { return w.served["a"] == 1 && w.served["b"] == 1 })
}
