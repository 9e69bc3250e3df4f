package feed

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Controller is one that gets its requests from a feed.
type Controller struct {
	Name string
	// Key is what the log calls a request, for example "resource".
	Key string
	// Workers reconcile different requests at the same time; 0 is one.
	Workers    int
	Reconciler reconcile.TypedReconciler[string]
}

// Drive registers a controller, which starts when ready returns.
func (f *Feed) Drive(mgr manager.Manager, c Controller, ready func(context.Context) error) error {
	base := mgr.GetLogger().WithValues("controller", c.Name)
	made, err := controller.NewTyped(c.Name, mgr, controller.TypedOptions[string]{
		Reconciler: c.Reconciler, MaxConcurrentReconciles: c.Workers,
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
