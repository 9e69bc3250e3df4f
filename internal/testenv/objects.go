package testenv

import (
	"context"
	"fmt"
	"reflect"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects is a cache that holds nothing and tells its handlers of what it is given, at once and in that order. It needs
// no API server, so a fleet of any size costs only what the handlers do. Everything but GetInformer is missing.
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

// Change tells of an object that came (old is nil), changed, or went (now is nil).
func (o *Objects) Change(old, now client.Object) error {
	some := now
	if some == nil {
		some = old
	}
	h, ok := o.handlers[reflect.TypeOf(some)]
	switch {
	case !ok:
		return fmt.Errorf("nobody listens for %T", some)
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

// listed is the registration of a handler that has nothing to wait for.
type listed struct {
	toolscache.ResourceEventHandlerRegistration
}

func (listed) HasSynced() bool { return true }
