package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// view contains the objects of a member, updated by a watch of its own.
type view struct {
	mu      sync.Mutex
	ingress map[string]string
	changed chan struct{}
}

// follow starts a view and returns it once all objects were listed.
func follow(ctx context.Context, client dynamic.ResourceInterface) (*view, error) {
	v := &view{ingress: map[string]string{}, changed: make(chan struct{})}
	informer := informerOf(client, cache.ResourceEventHandlerFuncs{AddFunc: v.put, UpdateFunc: func(_, now any) { v.put(now) }, DeleteFunc: v.remove})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, errors.New("stopped before it was listed")
	}
	return v, nil
}

func informerOf(client dynamic.ResourceInterface, handler cache.ResourceEventHandler) cache.Controller {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return client.Watch(ctx, o)
			},
		},
		ObjectType: &unstructured.Unstructured{}, Handler: handler,
	})
	return informer
}

func (v *view) put(o any) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	rules, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "ingress") // an absent field gives an empty text
	closed, _, _ := unstructured.NestedBool(u.Object, "spec", "enableDefaultDeny", "ingress")
	text, err := json.Marshal(map[string]any{"rules": rules, "closed": closed})
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if had, ok := v.ingress[u.GetName()]; ok && had == string(text) {
		return
	}
	v.ingress[u.GetName()] = string(text)
	v.tell()
}

func (v *view) remove(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.ingress, u.GetName())
	v.tell()
}

func (v *view) tell() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// lacks returns the name of one of n objects that is missing or has the wrong content, or "" when there is none.
func (v *view) lacks(n int, of func(i int) string, is func(ingress string) bool) (string, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range n {
		if text, ok := v.ingress[of(i)]; !ok || !is(text) {
			return of(i), v.changed
		}
	}
	return "", v.changed
}

// until waits until every member has n objects with the right content.
func (s *scene) until(ctx context.Context, limit time.Duration, n int, of func(i int) string, is func(ingress string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for member, v := range s.views {
		for {
			missing, changed := v.lacks(n, of, is)
			if missing == "" {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return fmt.Errorf("member %s does not have %s as it should be: %w", member, missing, ctx.Err())
			}
		}
	}
	return nil
}
