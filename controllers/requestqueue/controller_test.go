package requestqueue

import (
	"context"
	"net/http"
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
