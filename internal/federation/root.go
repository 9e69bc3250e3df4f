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
)

// namespaceResource is that of FederatedNamespaces.
var namespaceResource = schema.GroupVersionResource{Group: "types.kubefed.io", Version: "v1beta1", Resource: "federatednamespaces"}

const (
	// finalizerRoot keeps the FederatedNamespace: without it KubeFed takes everything in the namespace out of every member.
	finalizerRoot = "acp.io/root-namespace"
	// annotationOrphan tells KubeFed to leave the members' namespaces alone when a FederatedNamespace goes.
	annotationOrphan = "kubefed.io/orphan"
)

// Root is the FederatedNamespace of a kind's namespace. KubeFed brings an object with a namespace to those members only that
// the FederatedNamespace names, too, and takes it out of all others: one that is gone, or that somebody narrowed, opens what
// the objects close. So it names all members, always, and the objects say where they go.
//
// The namespaces themselves are nobody's business: the FederatedTypeConfig of namespaces has its propagation off, KubeFed's
// account has no right to write them, and if somebody changes both, deleting the FederatedNamespace leaves them there.
// ACP never deletes it.
type Root struct {
	namespace string
	client    dynamic.ResourceInterface
	watch     *Watch[rootState]
	log       logr.Logger
	wake      chan struct{}
}

// rootState is the FederatedNamespace as it was read.
type rootState struct {
	object *unstructured.Unstructured
	// right: it is as it has to be.
	right bool
}

// NewRoot makes a Root that knows nothing until Run. It calls changed when the FederatedNamespace did.
func NewRoot(host dynamic.Interface, kind Kind, log logr.Logger, changed func()) *Root {
	r := &Root{namespace: kind.Namespace, client: host.Resource(namespaceResource).Namespace(kind.Namespace), log: log, wake: make(chan struct{}, 1)}
	r.watch = NewWatch(r.client, namespaceResource.Resource, log, r.parse, func(string) {
		select {
		case r.wake <- struct{}{}:
		default:
		}
		changed()
	})
	return r
}

// Run watches until the context ends.
func (r *Root) Run(ctx context.Context) error {
	r.watch.Run(ctx)
	return nil
}

// Known tells whether the host was asked.
func (r *Root) Known() bool {
	listed, err := r.watch.State()
	return listed || err != nil
}

// Problem says why KubeFed would carry nothing in the namespace; "": it would.
func (r *Root) Problem() string {
	if listed, err := r.watch.State(); !listed {
		if err == nil {
			return "the FederatedNamespaces of the host are not listed yet"
		}
		return fmt.Sprintf("the host has no FederatedNamespaces in the namespace %s, or the adapter may not read them: apply deploy/kubefed/istio", r.namespace)
	}
	state, there := r.watch.Get(r.namespace)
	switch {
	case !there:
		return fmt.Sprintf("the host has no FederatedNamespace %s yet; the adapter's log says why it cannot make it", r.namespace)
	case !state.right:
		return fmt.Sprintf("somebody changed the FederatedNamespace %s of the host; the adapter writes it again", r.namespace)
	}
	return ""
}

// retry is when a write that failed is tried again.
const retry = 2 * time.Second

// Keep makes the FederatedNamespace, and makes it right again, until the context ends.
func (r *Root) Keep(ctx context.Context) error {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-again.C:
		}
		if listed, _ := r.watch.State(); !listed {
			continue // listing it wakes this
		}
		if err := r.ensure(ctx); err != nil && ctx.Err() == nil {
			if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
				r.log.Error(err, "FederatedNamespace cannot be written, so Istio's policies reach no member", "namespace", r.namespace)
			}
			again.Reset(retry)
		}
	}
}

func (r *Root) ensure(ctx context.Context) error {
	state, there := r.watch.Get(r.namespace)
	if there && state.right {
		return nil
	}
	var written *unstructured.Unstructured
	var err error
	if there {
		written, err = r.client.Update(ctx, r.mended(state.object), metav1.UpdateOptions{FieldManager: v1alpha1.ManagedBy})
	} else {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(namespaceResource.GroupVersion().String())
		u.SetKind("FederatedNamespace")
		u.SetNamespace(r.namespace)
		u.SetName(r.namespace)
		written, err = r.client.Create(ctx, r.mended(u), metav1.CreateOptions{FieldManager: v1alpha1.ManagedBy})
	}
	if err != nil {
		return fmt.Errorf("write FederatedNamespace %s: %w", r.namespace, err)
	}
	r.watch.Offer(written)
	r.log.Info("Wrote the FederatedNamespace of Istio's root namespace", "namespace", r.namespace)
	return nil
}

func (r *Root) parse(u *unstructured.Unstructured) (rootState, error) {
	return rootState{object: u, right: reflect.DeepEqual(u.Object, r.mended(u).Object)}, nil
}

// mended is the object as it has to be. Of one that is being deleted the finalizer can be kept, but not put back.
func (r *Root) mended(u *unstructured.Unstructured) *unstructured.Unstructured {
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
