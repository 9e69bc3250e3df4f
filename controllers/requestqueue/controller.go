package requestqueue

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Each request is retried with exponential backoff. maxRetryDelay also bounds how long a revocation waits once the host works
// again. reconcileTimeout bounds how long a worker waits for a response. The number of workers bounds concurrent requests.
const (
	minRetryDelay    = 50 * time.Millisecond
	maxRetryDelay    = 30 * time.Second
	reconcileTimeout = 30 * time.Second
)

// startLimit is how long a controller may wait until it is ready. It waits until the members were read, which took more than the two minutes of
// controller-runtime's default with 100 members and 1,000,000 objects: the program ended, and its successor had to read all of them again.
const startLimit = 24 * time.Hour

func retries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetryDelay, maxRetryDelay)
}

// Controller is a controller that gets its requests from a Queue.
type Controller struct {
	Name string
	// Key is the key of a request in log lines, for example "resource".
	Key string
	// Workers is the number of requests that are reconciled concurrently; 0 means 1.
	Workers    int
	Reconciler reconcile.TypedReconciler[string]
}

// AddController registers a controller with the manager. It starts when ready returns.
func (q *Queue) AddController(mgr manager.Manager, c Controller, ready func(context.Context) error) error {
	base := mgr.GetLogger().WithValues("controller", c.Name)
	q.limitBackground(c)
	made, err := controller.NewTyped(c.Name, mgr, controller.TypedOptions[string]{
		Reconciler: reconcile.TypedFunc[string](func(ctx context.Context, name string) (reconcile.Result, error) {
			defer q.reconciled(name)
			return c.Reconciler.Reconcile(ctx, name)
		}),
		MaxConcurrentReconciles: c.Workers, RateLimiter: retries(), ReconciliationTimeout: reconcileTimeout, CacheSyncTimeout: startLimit,
		LogConstructor: func(request *string) logr.Logger {
			if request == nil {
				return base
			}
			return base.WithValues(c.Key, *request)
		},
	})
	if err != nil {
		return err
	}
	return made.Watch(q.Source(ready))
}

// limitBackground makes the queue pass background requests only as fast as the controller handles them.
func (q *Queue) limitBackground(c Controller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.maxPassed, q.gauge = max(c.Workers, 1), waitingGauge.WithLabelValues(c.Name)
}
