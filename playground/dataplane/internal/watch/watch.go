// Package watch updates the mesh with the pods of all members, and the engine with the policies of its own member, from their API
// servers. It writes back whether a policy is valid and which identities the member's pods have, as Cilium does.
package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/acp-io/acp/playground/dataplane/internal/engine"
	"github.com/acp-io/acp/playground/dataplane/internal/mesh"
)

var (
	policyResource   = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"}
	identityResource = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumidentities"}
	groupResource    = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumcidrgroups"}
)

// Watcher watches one member.
type Watcher struct {
	// Cluster is the own member. Configs has one entry per member.
	Cluster string
	Configs map[string]*rest.Config
	Mesh    *mesh.Mesh
	Engine  *engine.Engine
	Log     *slog.Logger
	// Silent disables all writes; another process writes what agents write to their member.
	Silent bool

	identities *identities
}

// Start starts the watches and returns once the objects of the own member are enforced. It waits for an unreachable foreign member
// in the background only, as the agents of a cluster mesh do.
func (w *Watcher) Start(ctx context.Context) error {
	client, err := dynamic.NewForConfig(w.Configs[w.Cluster])
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", w.Cluster, err)
	}
	w.identities = newIdentities(w.Cluster, client.Resource(identityResource), w.Mesh, w.Log)
	var own []cache.InformerSynced
	for cluster, config := range w.Configs {
		synced, err := w.pods(ctx, cluster, config)
		if err != nil {
			return err
		}
		if cluster == w.Cluster {
			own = append(own, synced)
		}
	}
	synced, err := w.policies(ctx, client)
	if err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), append(own, synced...)...) {
		return fmt.Errorf("wait for the objects of %s: %w", w.Cluster, context.Cause(ctx))
	}
	// Only after the caches are filled can the identities be determined that were published before and have no pod any more.
	if !w.Silent {
		go w.identities.run(ctx)
	}
	return nil
}

func (w *Watcher) pods(ctx context.Context, cluster string, config *rest.Config) (cache.InformerSynced, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", cluster, err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	reg, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.upsertPod(cluster, obj) },
		UpdateFunc: func(_, obj any) { w.upsertPod(cluster, obj) },
		DeleteFunc: func(obj any) {
			if pod, ok := last(obj).(*corev1.Pod); ok {
				update := w.Mesh.Delete(cluster, pod.Namespace, pod.Name)
				w.apply(update)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the pods of %s: %w", cluster, err)
	}
	factory.Start(ctx.Done())
	return reg.HasSynced, nil
}

func (w *Watcher) upsertPod(cluster string, obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.HostNetwork { // a pod on its host's network has the host's identity
		return
	}
	update, err := w.Mesh.Upsert(mesh.Pod{
		Cluster: cluster, Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels,
		IP: pod.Status.PodIP, Node: pod.Spec.NodeName, ServiceAccount: pod.Spec.ServiceAccountName,
	})
	if err != nil {
		w.Log.Error("a pod has no identity", "pod", pod.Namespace+"/"+pod.Name, "error", err)
	}
	w.apply(update)
}

func (w *Watcher) apply(update mesh.IdentityUpdate) {
	w.Engine.UpdateIdentities(update.Added, update.Deleted)
	w.identities.changed(update)
}

func (w *Watcher) policies(ctx context.Context, client dynamic.Interface) ([]cache.InformerSynced, error) {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	validity := newValidity(client.Resource(policyResource), w.Log)
	if !w.Silent {
		go validity.run(ctx)
	}
	policies, err := factory.ForResource(policyResource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { w.setPolicy(obj, validity) },
		UpdateFunc: func(before, obj any) {
			if !sameContent(before, obj) {
				w.setPolicy(obj, validity)
			}
		},
		DeleteFunc: func(obj any) {
			if u, ok := last(obj).(*unstructured.Unstructured); ok {
				w.Engine.DeletePolicy(u.GetName())
				w.Log.Info("policy deleted", "policy", u.GetName())
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the policies of %s: %w", w.Cluster, err)
	}
	groups, err := factory.ForResource(groupResource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.setGroup(obj) },
		UpdateFunc: func(_, obj any) { w.setGroup(obj) },
		DeleteFunc: func(obj any) {
			if u, ok := last(obj).(*unstructured.Unstructured); ok {
				w.Engine.DeleteGroup(u.GetName())
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the CIDR groups of %s: %w", w.Cluster, err)
	}
	factory.Start(ctx.Done())
	return []cache.InformerSynced{policies.HasSynced, groups.HasSynced}, nil
}

// sameContent reports whether an update changed neither spec nor identity. Other changes, above all of our own condition, do not
// affect the engine.
func sameContent(before, after any) bool {
	a, okA := before.(*unstructured.Unstructured)
	b, okB := after.(*unstructured.Unstructured)
	return okA && okB && a.GetGeneration() == b.GetGeneration() && a.GetUID() == b.GetUID()
}

func (w *Watcher) setPolicy(obj any, v *validity) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	began := time.Now()
	var ccnp ciliumv2.CiliumClusterwideNetworkPolicy
	err := decode(u, &ccnp)
	if err == nil {
		err = w.Engine.SetPolicy(&ccnp)
	}
	if err != nil {
		w.Log.Warn("policy rejected; the previous version stays in force", "policy", u.GetName(), "error", err)
	} else {
		w.Log.Info("policy in force", "policy", u.GetName(), "generation", u.GetGeneration(), "took", time.Since(began))
	}
	v.set(u.GetName(), cause(err))
}

// cause returns the error message of Cilium without the prefixes of this package.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

func (w *Watcher) setGroup(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	var group ciliumv2.CiliumCIDRGroup
	if err := decode(u, &group); err != nil {
		w.Log.Warn("CIDR group refused", "group", u.GetName(), "error", err)
		return
	}
	w.Engine.SetGroup(&group)
}

// decode converts through JSON, because Cilium's selectors have JSON methods of their own.
func decode(u *unstructured.Unstructured, into any) error {
	data, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("encode %s: %w", u.GetName(), err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decode %s: %w", u.GetName(), err)
	}
	return nil
}

// last returns the last known state of a deleted object.
func last(obj any) any {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return obj
}
