package watch

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"time"

	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/labels"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"

	"github.com/acp-io/acp/playground/dataplane/internal/mesh"
)

const (
	clusterLabel   = "io.cilium.k8s.policy.cluster"
	namespaceLabel = "io.kubernetes.pod.namespace"
)

// identities publishes the identities of the own member's pods as CiliumIdentity objects.
type identities struct {
	cluster string
	client  dynamic.ResourceInterface
	mesh    *mesh.Mesh
	log     *slog.Logger
	queue   workqueue.TypedRateLimitingInterface[string]
}

func newIdentities(cluster string, client dynamic.ResourceInterface, m *mesh.Mesh, log *slog.Logger) *identities {
	return &identities{cluster: cluster, client: client, mesh: m, log: log,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
}

// changed enqueues identities that were added or deleted.
func (p *identities) changed(update mesh.IdentityUpdate) {
	for _, all := range []identity.IdentityMap{update.Added, update.Deleted} {
		for n, lbls := range all {
			if lbls.Get(labels.LabelSourceK8s+":"+clusterLabel) == p.cluster {
				p.queue.Add(strconv.FormatUint(uint64(n), 10))
			}
		}
	}
}

// run publishes until the context ends. It also checks the objects that an earlier process published.
func (p *identities) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, p.queue.ShutDown)
	defer stop()
	for ctx.Err() == nil {
		list, err := p.client.List(ctx, metav1.ListOptions{})
		if err == nil {
			for i := range list.Items {
				p.queue.Add(list.Items[i].GetName())
			}
			break
		}
		p.log.Warn("cannot list the identities; retrying", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	for {
		name, closed := p.queue.Get()
		if closed {
			return
		}
		if err := p.publish(ctx, name); err != nil && ctx.Err() == nil {
			p.log.Warn("cannot publish an identity", "identity", name, "error", err)
			p.queue.AddRateLimited(name)
		} else {
			p.queue.Forget(name)
		}
		p.queue.Done(name)
	}
}

// publish creates, updates or deletes the object of an identity number according to the mesh.
func (p *identities) publish(ctx context.Context, name string) error {
	var wanted map[string]any
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		if id, ok := p.mesh.Identity(identity.NumericIdentity(n)); ok && id.LabelArray.Get(labels.LabelSourceK8s+":"+clusterLabel) == p.cluster {
			wanted = securityLabels(id.LabelArray)
		}
	}
	present, err := p.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	exists := err == nil
	switch {
	case wanted == nil && !exists:
		return nil
	case wanted == nil:
		err = p.client.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	case !exists:
		_, err = p.client.Create(ctx, object(name, wanted), metav1.CreateOptions{})
		return err
	}
	if had, _, _ := unstructured.NestedMap(present.Object, "security-labels"); maps.Equal(had, wanted) {
		return nil
	}
	next := object(name, wanted)
	next.SetResourceVersion(present.GetResourceVersion())
	_, err = p.client.Update(ctx, next, metav1.UpdateOptions{})
	return err
}

// object returns the object that Cilium writes for an identity: all labels with their source, and the namespace as a label of the
// object.
func object(name string, security map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumIdentity",
		"metadata":        map[string]any{"name": name, "labels": map[string]any{namespaceLabel: security[labels.LabelSourceK8s+":"+namespaceLabel]}},
		"security-labels": security}}
}

func securityLabels(all labels.LabelArray) map[string]any {
	out := map[string]any{}
	for _, l := range all {
		out[fmt.Sprintf("%s:%s", l.Source, l.Key)] = l.Value
	}
	return out
}
