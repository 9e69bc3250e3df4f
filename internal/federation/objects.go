package federation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
)

// ErrStale means that the object changed since it was read. Nothing was written; the newer version is already in the
// view.
var ErrStale = errors.New("the federated object changed meanwhile")

// Objects is a watched view of the Federated objects of one kind on the host.
type Objects struct {
	kind   Kind
	client dynamic.ResourceInterface
	watch  *Watch[*Object]
}

// NewObjects returns a view that is empty until Run. It calls changed with the object's name and the resource of the
// object, and with empty strings when the view as a whole began to work or failed. A deleted object has no resource.
func NewObjects(host dynamic.Interface, kind Kind, log logr.Logger, changed func(name, resource string)) *Objects {
	o := &Objects{kind: kind, client: host.Resource(kind.FederatedResource)}
	if kind.Namespace != "" {
		o.client = host.Resource(kind.FederatedResource).Namespace(kind.Namespace)
	}
	o.watch = NewWatch(o.client, kind.FederatedResource.Resource, log,
		func(u *unstructured.Unstructured) (*Object, error) { return ParseObject(kind, u), nil },
		func(name string) {
			resource := ""
			if obj, ok := o.watch.Get(name); ok {
				resource = obj.Resource()
			}
			changed(name, resource)
		})
	o.watch.group = (*Object).Resource
	return o
}

// Resource returns the name of the resource of the object from ACP's annotation, or "" for an object that is not ACP's.
func (o *Object) Resource() string {
	if o.Meta.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy {
		return ""
	}
	return o.Meta.Annotations[AnnotationResource]
}

// isOfWildcard reports whether the object contains the rules of a wildcard of resources, which apply to pods of other units.
func (o *Object) isOfWildcard() bool { return strings.HasSuffix(o.Resource(), "*") }

// Run watches until the context ends.
func (o *Objects) Run(ctx context.Context) error {
	o.watch.Run(ctx)
	return nil
}

// State reports whether the objects were listed, and the error if not.
func (o *Objects) State() (bool, error) { return o.watch.State() }

// IsKindNotInstalled reports whether an error of State means that the cluster does not serve the kind of the objects, because its
// CustomResourceDefinition is not installed.
func IsKindNotInstalled(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// Get returns the object of that name.
func (o *Objects) Get(name string) (*Object, bool) { return o.watch.Get(name) }

// Of returns the objects about a resource, by name.
func (o *Objects) Of(resource string) []*Object {
	if resource == "" {
		return nil
	}
	return o.watch.Group(resource)
}

// List returns all objects by name.
func (o *Objects) List() []*Object { return o.watch.List() }

// finalizerKubeFed is the finalizer that KubeFed's sync controller adds to every object before it propagates it, and
// removes when no member has it any more (v0.10.0, pkg/controller/sync/controller.go).
const finalizerKubeFed = "kubefed.io/sync-controller"

// Apply creates the object, or updates it if its Meta has a resource version, and returns the resulting object. After
// ErrStale the caller has to decide again.
func (o *Objects) Apply(ctx context.Context, obj *Object) (*Object, error) {
	u, err := obj.Unstructured()
	if err != nil {
		return nil, err
	}
	var written *unstructured.Unstructured
	if obj.Meta.ResourceVersion == "" {
		// An object that is created with the finalizer saves KubeFed a write, and a status that would be delayed by a
		// second because of that write.
		u.SetFinalizers([]string{finalizerKubeFed})
		written, err = o.client.Create(ctx, u, metav1.CreateOptions{FieldManager: v1alpha1.ManagedBy})
	} else {
		written, err = o.client.Update(ctx, u, metav1.UpdateOptions{FieldManager: v1alpha1.ManagedBy})
	}
	switch {
	case err == nil:
		parsed := ParseObject(o.kind, written)
		if written.GetDeletionTimestamp() == nil || len(written.GetFinalizers()) > 0 { // otherwise the write has deleted it
			_ = o.watch.store(written, parsed, false) // what is read of the host has no bounds
		}
		return parsed, nil
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || (apierrors.IsNotFound(err) && obj.Meta.ResourceVersion != ""):
		o.refresh(ctx, obj.Meta.Name)
		return nil, fmt.Errorf("write %s %s: %w", o.kind.Federated.Kind, obj.Meta.Name, ErrStale)
	default:
		return nil, fmt.Errorf("write %s %s: %w", o.kind.Federated.Kind, obj.Meta.Name, err)
	}
}

// refresh reads one object without the cache, so that the next decision does not use a version that is known to be
// stale.
func (o *Objects) refresh(ctx context.Context, name string) {
	if live, err := o.client.Get(ctx, name, metav1.GetOptions{}); err == nil {
		o.watch.Offer(live)
	}
}

// Delete deletes the object if its version is the one that was decided on.
func (o *Objects) Delete(ctx context.Context, obj *Object) error {
	pre := metav1.Preconditions{UID: &obj.Meta.UID, ResourceVersion: &obj.Meta.ResourceVersion}
	err := o.client.Delete(ctx, obj.Meta.Name, metav1.DeleteOptions{Preconditions: &pre})
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		o.refresh(ctx, obj.Meta.Name)
		return fmt.Errorf("delete %s %s: %w", o.kind.Federated.Kind, obj.Meta.Name, ErrStale)
	default:
		return fmt.Errorf("delete %s %s: %w", o.kind.Federated.Kind, obj.Meta.Name, err)
	}
}
