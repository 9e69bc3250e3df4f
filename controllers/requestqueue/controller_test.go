package requestqueue

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestControllerWaitsUntilItIsReady checks that a controller starts however long it takes until it is ready, such as to read all members of a
// large fleet. The limit of controller-runtime would end the program.
func TestControllerWaitsUntilItIsReady(t *testing.T) {
	limit := time.Millisecond
	mgr, err := manager.New(&rest.Config{Host: "127.0.0.1:1"}, manager.Options{
		Controller:     config.Controller{CacheSyncTimeout: limit},
		Metrics:        metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	reconciled := make(chan string)
	q := New(clock.RealClock{})
	q.Add(Grant, "a")
	if err := q.AddController(mgr, Controller{Name: "waits", Reconciler: reconcile.TypedFunc[string](
		func(_ context.Context, name string) (reconcile.Result, error) {
			reconciled <- name
			return reconcile.Result{}, nil
		})}, func(ctx context.Context) error {
		select {
		case <-time.After(200 * limit):
		case <-ctx.Done():
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case name := <-reconciled:
		if name != "a" {
			t.Errorf("reconciled %q, want a", name)
		}
	case err := <-ended:
		t.Fatalf("the manager ended: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestBackgroundRequestsAreReconciled checks that a controller reconciles more background requests than it has workers, also if some fail or panic.
func TestBackgroundRequestsAreReconciled(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "127.0.0.1:1"}, manager.Options{
		Metrics:        metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	attempts := map[string]int{}
	all := make(chan struct{})
	q := New(clock.RealClock{})
	want := names(20)
	if err := q.AddController(mgr, Controller{Name: "background", Workers: 2, Reconciler: reconcile.TypedFunc[string](
		func(_ context.Context, name string) (reconcile.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			if attempts[name]++; len(attempts) == len(want) && attempts[name] == 1 {
				close(all)
			}
			switch {
			case attempts[name] > 1:
			case name == want[0]:
				return reconcile.Result{}, errors.New("injected")
			case name == want[1]:
				panic("injected")
			}
			return reconcile.Result{}, nil
		})}, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	for !q.started() {
		select {
		case err := <-ended:
			t.Fatalf("the manager ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	q.Add(Bulk, want...)
	select {
	case <-all:
	case <-time.After(30 * time.Second):
		mu.Lock()
		t.Errorf("%d of %d background requests were reconciled", len(attempts), len(want))
		mu.Unlock()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// started reports whether the controller has started.
func (q *Queue) started() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue != nil
}
