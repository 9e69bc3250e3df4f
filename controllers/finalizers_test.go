package controllers_test

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	running.Go(func() {
		for ctx.Err() == nil {
			for _, kind := range []federation.Kind{federation.CiliumPolicy, federation.CiliumGroup, federation.IstioPolicy} {
				objects := c.Resource(kind.FederatedResource)
				list, err := objects.List(ctx, metav1.ListOptions{})
				if err != nil {
					continue // some hosts lack a kind
				}
				for i := range list.Items {
					if o := &list.Items[i]; o.GetDeletionTimestamp() != nil {
						// The object may be gone by now; otherwise the next pass patches it.
						_, _ = objects.Namespace(o.GetNamespace()).
							Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
					}
				}
			}
			time.Sleep(20 * time.Millisecond) // poll interval
		}
	})
	return func() error { cancel(); running.Wait(); return nil }, nil
}
