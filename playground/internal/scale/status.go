package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
)

// reported is a status of a resource with the time at which it arrived.
type reported struct {
	status v1alpha1.ProtectedResourceStatus
	at     time.Time
}

// follow returns the statuses of a resource that are written from now on, until the context ends.
func (r *run) follow(ctx context.Context, i int) (<-chan reported, error) {
	client := r.host.Resource(resources)
	// The version of the list is that of the whole store. That of the object may be so old that the API server has dropped the events
	// since then, and it ends a watch from there.
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", resourceName(i)).String()}
	now, err := client.List(ctx, only)
	if err != nil {
		return nil, err
	}
	only.ResourceVersion = now.GetResourceVersion()
	w, err := client.Watch(ctx, only)
	if err != nil {
		return nil, err
	}
	out := make(chan reported, 1000)
	go func() {
		defer w.Stop()
		defer close(out)
		for event := range w.ResultChan() {
			at := time.Now()
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				if ctx.Err() == nil { // otherwise the end of the context interrupted an event
					r.say("the watch of %s reports: %v", resourceName(i), apierrors.FromObject(event.Object))
				}
				continue
			}
			var resource v1alpha1.ProtectedResource
			if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &resource) != nil {
				continue
			}
			select {
			case out <- reported{resource.Status, at}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// realized waits until a status says that all members but some were read with a revision, and returns when it arrived.
func (r *run) realized(ctx context.Context, statuses <-chan reported, revision string, without map[int]bool) (time.Time, error) {
	ignored := map[v1alpha1.ClusterName]bool{}
	for i := range without {
		ignored[v1alpha1.ClusterName(r.names[i])] = true
	}
	last := "no status was written"
	for {
		select {
		case s, ok := <-statuses:
			if !ok {
				return time.Time{}, errors.New("the watch of the resource ended")
			}
			n := 0
			for c := range s.status.All() {
				if !ignored[c.Name] && c.State == v1alpha1.MemberRealized && c.ObservedRevision == revision {
					n++
				}
			}
			if n == r.Members-len(without) {
				return s.at, nil
			}
			last = fmt.Sprintf("the last status says it of %d", n)
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("revision %s was not read back from all members, %s: %w", revision, last, ctx.Err())
		}
	}
}

// statuses measures the largest objects on the host.
func (r *run) statuses(ctx context.Context) error {
	r.say("the largest statuses …")
	largest := 0
	for _, gvr := range []schema.GroupVersionResource{policies, resources, v1alpha1.GroupVersion.WithResource("memberclusters"),
		v1alpha1.GroupVersion.WithResource("resourceclasses")} {
		size, name, err := r.largest(ctx, gvr, "status")
		if err != nil {
			return err
		}
		r.say("  %s: %d bytes (%s)", gvr.Resource, size, name)
		largest = max(largest, size)
	}
	r.figure("status_bytes", float64(largest), "bytes")
	record, name, err := r.largest(ctx, schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1",
		Resource: "federatedciliumclusterwidenetworkpolicies"}, "")
	if err != nil {
		return err
	}
	r.say("  records: %d bytes (%s)", record, name)
	r.figure("record_bytes", float64(record), "bytes")
	return nil
}

// largest returns the size of the largest object of a kind, or of a field of it, and the object's name.
func (r *run) largest(ctx context.Context, gvr schema.GroupVersionResource, field string) (size int, name string, err error) {
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := r.host.Resource(gvr).List(ctx, options)
		if err != nil {
			return 0, "", fmt.Errorf("list %s: %w", gvr.Resource, err)
		}
		for i := range list.Items {
			var part any = list.Items[i].Object
			if field != "" {
				part = list.Items[i].Object[field]
			}
			text, err := json.Marshal(part)
			if err != nil {
				return 0, "", err
			}
			if len(text) > size {
				size, name = len(text), list.Items[i].GetName()
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return size, name, nil
		}
	}
}
