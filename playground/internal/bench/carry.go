package bench

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	playgroundfleet "github.com/acp-io/acp/playground/internal/fleet"
)

// propagate replaces KubeFed, which would need 500 s for 10,000 objects: it copies Federated objects to the members as fast as they
// accept them and reports that in the status. It runs until the context ends or the returned function is called, which returns the
// first error.
func (s *scene) propagate(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	work := make(chan *unstructured.Unstructured)
	enqueue := func(o any) {
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetDeletionTimestamp() == nil {
			select {
			case work <- u:
			case <-ctx.Done():
			}
		}
	}
	var running sync.WaitGroup
	// A watch ends when the host is slow; an informer starts another one.
	informer := informerOf(s.host.Resource(federated), cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }})
	running.Go(func() { informer.RunWithContext(ctx) })
	var first error
	var once sync.Once
	for range writers {
		running.Go(func() {
			for {
				select {
				case u := <-work:
					if err := s.propagateOne(ctx, u); err != nil && ctx.Err() == nil {
						once.Do(func() { first = err })
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return func() error {
		cancel()
		running.Wait()
		return first
	}
}

func (s *scene) propagateOne(ctx context.Context, u *unstructured.Unstructured) error {
	if seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); seen == u.GetGeneration() {
		return nil
	}
	template, _, err := unstructured.NestedMap(u.Object, "spec", "template")
	if err != nil {
		return err
	}
	var clusters []any
	for _, m := range playgroundfleet.Members() {
		want := &unstructured.Unstructured{Object: map[string]any{"apiVersion": inMembers.GroupVersion().String(), "kind": "CiliumClusterwideNetworkPolicy",
			"spec": template["spec"], "metadata": template["metadata"]}}
		want = want.DeepCopy()
		want.SetName(u.GetName())
		client := s.members[m].Resource(inMembers)
		_, err := client.Create(ctx, want, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			var there *unstructured.Unstructured
			if there, err = client.Get(ctx, u.GetName(), metav1.GetOptions{}); err == nil {
				want.SetResourceVersion(there.GetResourceVersion())
				_, err = client.Update(ctx, want, metav1.UpdateOptions{})
			}
		}
		if err != nil {
			return fmt.Errorf("carry %s to %s: %w", u.GetName(), m, err)
		}
		clusters = append(clusters, map[string]any{"name": m})
	}
	u = u.DeepCopy()
	u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "clusters": clusters,
		"conditions": []any{map[string]any{"type": "Propagation", "status": "True"}}}
	if _, err := s.host.Resource(federated).UpdateStatus(ctx, u, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("report that %s was propagated: %w", u.GetName(), err)
	}
	return nil
}
