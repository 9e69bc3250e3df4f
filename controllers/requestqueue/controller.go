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

// Towards a host that is slow or refuses: each request is tried again at growing intervals, the longest of which is also how
// long a revocation waits at most once the host is well; and a worker gives up on an answer that does not come. How much is
// asked at the same time is bounded by the workers.
const (
	firstRetry       = 50 * time.Millisecond
	longestRetry     = 30 * time.Second
	reconcileTimeout = 30 * time.Second
)

func retries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, longestRetry)
}

// Controller is one that gets its requests from a feed.
type Controller struct {
	Name string
	// Key is what the log calls a request, for example "resource".
	Key string
	// Workers reconcile different requests at the same time; 0 is one.
	Workers    int
	Reconciler reconcile.TypedReconciler[string]
}

// AddController registers a controller, which starts when ready returns.
func (f *Queue) AddController(mgr manager.Manager, c Controller, ready func(context.Context) error) error {
	base := mgr.GetLogger().WithValues("controller", c.Name)
	made, err := controller.NewTyped(c.Name, mgr, controller.TypedOptions[string]{
		Reconciler: c.Reconciler, MaxConcurrentReconciles: c.Workers,
		RateLimiter: retries(), ReconciliationTimeout: reconcileTimeout,
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
	return made.Watch(f.Source(ready))
}
