package testenv

import (
	"context"
	"fmt"
	"reflect"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects is a cache without objects that passes the events it is given to its handlers synchronously. It needs no API
// server, so a fleet of any size costs only the work of the handlers. Only GetInformer is implemented.
type Objects struct {
	cache.Cache
	handlers map[reflect.Type]toolscache.ResourceEventHandler
}

// GetInformer returns the informer of a kind.
func (o *Objects) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if o.handlers == nil {
		o.handlers = map[reflect.Type]toolscache.ResourceEventHandler{}
	}
	return informer{add: func(h toolscache.ResourceEventHandler) { o.handlers[reflect.TypeOf(obj)] = h }}, nil
}

// Change sends the event of an object that was created (old is nil), changed, or deleted (now is nil).
func (o *Objects) Change(old, now client.Object) error {
	some := now
	if some == nil {
		some = old
	}
	h, ok := o.handlers[reflect.TypeOf(some)]
	switch {
	case !ok:
		return fmt.Errorf("no handler is registered for %T", some)
	case old == nil:
		h.OnAdd(now, false)
	case now == nil:
		h.OnDelete(old)
	default:
		h.OnUpdate(old, now)
	}
	return nil
}

type informer struct {
	cache.Informer
	add func(toolscache.ResourceEventHandler)
}

func (i informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.add(h)
	return listed{}, nil
}

// listed is the registration of a handler that is always synced.
type listed struct {
	toolscache.ResourceEventHandlerRegistration
}

func (listed) HasSynced() bool { return true }
