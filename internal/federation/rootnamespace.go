package federation

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// namespaceResource is the resource of FederatedNamespaces.
var namespaceResource = schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatednamespaces"}

const (
	// finalizerRoot protects the FederatedNamespace from deletion: without it KubeFed removes everything in the
	// namespace from every member.
	finalizerRoot = "acp.io/root-namespace"
	// annotationOrphan makes KubeFed keep the members' namespaces when a FederatedNamespace is deleted.
	annotationOrphan = "kubefed.io/orphan"
)

// RootNamespace maintains the FederatedNamespace of a kind's namespace. KubeFed pushes a namespaced object only to
// members that the FederatedNamespace lists, too, and removes it from all others. A FederatedNamespace that is missing
// or narrowed would therefore open what the objects close. So it always lists all members, and the objects restrict the
// placement.
//
// The namespaces themselves are not managed: the FederatedTypeConfig of namespaces has its propagation off, KubeFed's
// account may not write them, and if both are changed, the orphan annotation keeps the members' namespaces. ACP never
// deletes the FederatedNamespace.
type RootNamespace struct {
	namespace string
	client    dynamic.ResourceInterface
	watch     *Watch[rootNamespaceState]
	log       logr.Logger
	trigger   chan struct{}
}

// rootNamespaceState is the FederatedNamespace as it was read.
type rootNamespaceState struct {
	object *unstructured.Unstructured
	// right reports whether it is as it must be.
	right bool
}

// NewRootNamespace returns a RootNamespace that is idle until Run. It calls changed when the FederatedNamespace
// changed.
func NewRootNamespace(host dynamic.Interface, kind Kind, log logr.Logger, changed func()) *RootNamespace {
	r := &RootNamespace{
		namespace: kind.Namespace,
		client:    host.Resource(namespaceResource).Namespace(kind.Namespace),
		log:       log,
		trigger:   make(chan struct{}, 1),
	}
	r.watch = NewWatch(r.client, namespaceResource.Resource, log, r.parse, func(string) {
		select {
		case r.trigger <- struct{}{}:
		default:
		}
		changed()
	})
	return r
}

// Run watches until the context ends.
func (r *RootNamespace) Run(ctx context.Context) error {
	r.watch.Run(ctx)
	return nil
}

// Known reports whether the host has been read.
func (r *RootNamespace) Known() bool {
	listed, err := r.watch.State()
	return listed || err != nil
}

// Problem returns the reason why KubeFed would push nothing in the namespace, or the zero Message.
func (r *RootNamespace) Problem() message.Message {
	if listed, err := r.watch.State(); !listed {
		if err == nil {
			return message.HostNamespacesNotListed()
		}
		return message.HostNamespacesUnreadable(r.namespace)
	}
	state, there := r.watch.Get(r.namespace)
	switch {
	case !there:
		return message.HostNoNamespace(r.namespace)
	case !state.right:
		return message.HostNamespaceChanged(r.namespace)
	}
	return message.Message{}
}

// retryInterval is the delay before a failed write is repeated.
const retryInterval = 2 * time.Second

// KeepCorrect creates and corrects the FederatedNamespace until the context ends.
func (r *RootNamespace) KeepCorrect(ctx context.Context) error {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.trigger:
		case <-again.C:
		}
		if listed, _ := r.watch.State(); !listed {
			continue // the listing triggers the next iteration
		}
		if err := r.ensure(ctx); err != nil && ctx.Err() == nil {
			if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
				r.log.Error(err, "FederatedNamespace cannot be written, so Istio's policies reach no member", "namespace", r.namespace)
			}
			again.Reset(retryInterval)
		}
	}
}

func (r *RootNamespace) ensure(ctx context.Context) error {
	state, there := r.watch.Get(r.namespace)
	if there && state.right {
		return nil
	}
	var written *unstructured.Unstructured
	var err error
	if there {
		written, err = r.client.Update(ctx, r.corrected(state.object), metav1.UpdateOptions{FieldManager: v1alpha1.ManagedBy})
	} else {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(namespaceResource.GroupVersion().String())
		u.SetKind("FederatedNamespace")
		u.SetNamespace(r.namespace)
		u.SetName(r.namespace)
		written, err = r.client.Create(ctx, r.corrected(u), metav1.CreateOptions{FieldManager: v1alpha1.ManagedBy})
	}
	if err != nil {
		return fmt.Errorf("write FederatedNamespace %s: %w", r.namespace, err)
	}
	r.watch.Offer(written)
	r.log.Info("Wrote the FederatedNamespace of Istio's root namespace", "namespace", r.namespace)
	return nil
}

func (r *RootNamespace) parse(u *unstructured.Unstructured) (rootNamespaceState, error) {
	return rootNamespaceState{object: u, right: reflect.DeepEqual(u.Object, r.corrected(u).Object)}, nil
}

// corrected returns the object as it must be. If it is being deleted, the finalizer can be kept, but not added.
func (r *RootNamespace) corrected(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	labels := out.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedBy
	out.SetLabels(labels)
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationOrphan] = "true"
	out.SetAnnotations(annotations)
	if f := out.GetFinalizers(); out.GetDeletionTimestamp() == nil && !slices.Contains(f, finalizerRoot) {
		out.SetFinalizers(append(f, finalizerRoot))
	}
	out.Object["spec"] = map[string]any{"placement": map[string]any{"clusterSelector": map[string]any{}}}
	return out
}
