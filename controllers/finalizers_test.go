package controllers_test

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
)

// removeFinalizers acts as KubeFed for Federated objects that are being deleted: it removes their finalizers, until it is stopped. It leaves
// the objects in the members to the tests.
func removeFinalizers(host *rest.Config) (stop func() error, err error) {
	c, err := dynamic.NewForConfig(rest.CopyConfig(host))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, kind := range []federation.Kind{federation.CiliumPolicy, federation.CiliumGroup, federation.IstioPolicy} {
		running.Go(func() {
			for ctx.Err() == nil {
				removeFinalizersOf(ctx, c.Resource(kind.FederatedResource))
				select {
				case <-ctx.Done():
				case <-time.After(time.Second): // some hosts lack a kind
				}
			}
		})
	}
	return func() error { cancel(); running.Wait(); return nil }, nil
}

// removeFinalizersOf watches objects, and removes the finalizers of those that are being deleted, until the watch ends. It does not list them
// again and again, because the API server would spend most of the tests' time on that.
func removeFinalizersOf(ctx context.Context, objects dynamic.NamespaceableResourceInterface) {
	w, err := objects.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Deleted || o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) == 0 {
			continue
		}
		// The object may be gone by now.
		_, _ = objects.Namespace(o.GetNamespace()).
			Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
}
