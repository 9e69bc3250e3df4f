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

// carry takes KubeFed's place, which would need 500 s for 10,000 objects: it brings Federated objects to the members as fast as
// they take them, and says so in the status. It goes on until the context ends, or what it returns is called.
func (s *scene) carry(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	work := make(chan *unstructured.Unstructured)
	hand := func(o any) {
		if u, ok := o.(*unstructured.Unstructured); ok && u.GetDeletionTimestamp() == nil {
			select {
			case work <- u:
			case <-ctx.Done():
			}
		}
	}
	var running sync.WaitGroup
	// A watch ends when the host is slow; an informer begins another one.
	informer := informerOf(s.host.Resource(federated), cache.ResourceEventHandlerFuncs{AddFunc: hand, UpdateFunc: func(_, now any) { hand(now) }})
	running.Go(func() { informer.RunWithContext(ctx) })
	var first error
	var once sync.Once
	for range writers {
		running.Go(func() {
			for {
				select {
				case u := <-work:
					if err := s.carryOne(ctx, u); err != nil && ctx.Err() == nil {
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

func (s *scene) carryOne(ctx context.Context, u *unstructured.Unstructured) error {
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
		return fmt.Errorf("tell that %s was carried: %w", u.GetName(), err)
	}
	return nil
}
