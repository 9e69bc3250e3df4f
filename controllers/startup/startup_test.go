package startup

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/federation"
)

// members are two members, of which the second was not read until all is set.
type members struct {
	all    atomic.Bool
	listed bool
	err    error
}

func (m *members) Registry() (bool, error) { return m.listed, m.err }

func (m *members) Clusters() []federation.Cluster {
	return []federation.Cluster{{Name: "m1"}, {Name: "m2"}}
}

func (m *members) Observe(cluster, _ string) federation.Observation {
	return federation.Observation{Registered: true, Unknown: cluster == "m2" && !m.all.Load()}
}

func TestAfterMembers(t *testing.T) {
	now := func(context.Context) error { return nil }
	checked := func() bool { return true }
	m := &members{listed: true}
	synctest.Test(t, func(t *testing.T) {
		done := make(chan error, 1)
		go func() { done <- AfterMembers(now, clock.RealClock{}, checked, m)(t.Context()) }()
		time.Sleep(Timeout / 2) // of the clock of synctest
		select {
		case err := <-done:
			t.Fatalf("it did not wait for a member that was not read: %v", err)
		default:
		}
		m.all.Store(true)
		if err := <-done; err != nil {
			t.Error(err)
		}
		m.all.Store(false)
		begin := time.Now()
		if err := AfterMembers(now, clock.RealClock{}, checked, m)(t.Context()); err != nil || time.Since(begin) != Timeout {
			t.Errorf("a member that does not answer delays the start by %v: %v", time.Since(begin), err)
		}
	})

	// A registry that cannot be listed is reported by the controllers, and does not delay them.
	if err := AfterMembers(now, clock.RealClock{}, checked, &members{err: errors.New("forbidden")})(t.Context()); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	if err := AfterMembers(func(context.Context) error { return broken }, clock.RealClock{}, checked, m)(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the earlier step", err)
	}
}

// objects reports true after all is set.
type objects struct{ all atomic.Bool }

func (o *objects) State() (bool, error) { return o.all.Load(), nil }

func TestWhenListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, began := &objects{}, make(chan time.Time, 1)
		run := func(context.Context) error { began <- time.Now(); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := WhenListed(host, clock.RealClock{}, run)(ctx); err != nil || len(began) != 0 {
			t.Errorf("it ran %d times without a list: %v", len(began), err)
		}
		listed := time.Now().Add(time.Hour) // no limit ends the wait
		time.AfterFunc(time.Hour, func() { host.all.Store(true) })
		if err := WhenListed(host, clock.RealClock{}, run)(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := <-began; at.Before(listed) || at.After(listed.Add(PollInterval)) {
			t.Errorf("the objects were listed at %s, and it ran at %s", listed, at)
		}
	})
}

// TestWhenKnown checks that the members are read once the host's objects are listed, and also if they cannot be.
func TestWhenKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		run := func(context.Context) error { ran++; return nil }
		host := &objects{}
		time.AfterFunc(time.Hour, func() { host.all.Store(true) })
		begin := time.Now()
		if err := WhenKnown(host, clock.RealClock{}, run)(t.Context()); err != nil || ran != 1 || time.Since(begin) < time.Hour {
			t.Errorf("it ran %d times after %v: %v", ran, time.Since(begin), err)
		}
		if err := WhenKnown(unlistable{}, clock.RealClock{}, run)(t.Context()); err != nil || ran != 2 {
			t.Errorf("it did not run although the objects cannot be listed: %v", err)
		}
	})
}

// unlistable are objects that cannot be listed.
type unlistable struct{}

func (unlistable) State() (bool, error) { return false, errors.New("the kind is not installed") }

func TestAfter(t *testing.T) {
	known := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ready := After(func(context.Context) error { return nil }, known)
	if err := ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	close(known)
	if err := ready(t.Context()); err != nil {
		t.Error(err)
	}
}
