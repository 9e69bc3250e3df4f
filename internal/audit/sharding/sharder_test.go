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

// watched tells who follows, and that nobody does so beside another.
type watched struct {
	t      *testing.T
	mu     sync.Mutex
	by     string
	grown  chan struct{}
	served map[string]int
}

func newWatched(t *testing.T) *watched {
	return &watched{t: t, grown: make(chan struct{}), served: map[string]int{}}
}

func (w *watched) follow(name string) func(context.Context, string) {
	return func(ctx context.Context, _ string) {
		w.set(name)
		<-ctx.Done()
		w.set("")
	}
}

func (w *watched) set(name string) {
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

func (w *watched) until(what string, ok func() bool) {
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
		case <-time.After(20 * time.Second):
			w.t.Fatalf("waited in vain: %s", what)
		}
	}
}

func sharer(t *testing.T, l Leases, name string) *Sharder {
	t.Helper()
	s, err := New(Config{Leases: l, Name: name, Log: slog.New(slog.DiscardHandler), TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t *testing.T, s *Sharder, w *watched, name string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx, "m1", w.follow(name)) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func TestOneFollowsAndTheOtherTakesOver(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w := newWatched(t)
	stopA := start(t, sharer(t, store, "a"), w, "a")
	w.until("a follows", func() bool { return w.by == "a" })
	stopB := start(t, sharer(t, store, "b"), w, "b")
	stopA()
	w.until("b follows", func() bool { return w.by == "b" })
	stopB()
	w.until("nobody follows", func() bool { return w.by == "" })
}

// away is a store whose leases can be out of reach.
type away struct {
	Leases
	mu  sync.Mutex
	err error
}

func (a *away) Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error) {
	a.mu.Lock()
	err := a.err
	a.mu.Unlock()
	if err != nil {
		return false, err
	}
	return a.Leases.Lease(ctx, source, holder, ttl)
}

func (a *away) set(err error) { a.mu.Lock(); defer a.mu.Unlock(); a.err = err }

func TestWhoCannotRenewStopsInTime(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w := newWatched(t)
	a := &away{Leases: store}
	start(t, sharer(t, a, "a"), w, "a")
	w.until("a follows", func() bool { return w.by == "a" })
	a.set(errors.New("no route"))
	w.until("a has stopped", func() bool { return w.by == "" })
	start(t, sharer(t, store, "b"), w, "b") // and never beside a
	w.until("b follows", func() bool { return w.by == "b" })
	a.set(nil)
	w.until("a and b were served once each", func() bool { return w.served["a"] == 1 && w.served["b"] == 1 })
}
