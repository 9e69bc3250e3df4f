package direct

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/federation"
)

// FieldManager is the engine's field manager in the members.
const FieldManager = federation.DirectFieldManager

// reservedLabels are the prefixes of the label keys of which only the recorded ones may be on an object, because policies select
// groups of addresses by them.
var reservedLabels = []string{"acp.io/", "class.acp.io/"}

// resource returns the client of an object's kind.
func resource(c dynamic.Interface, k federation.Kind) dynamic.ResourceInterface {
	if k.Namespace != "" {
		return c.Resource(k.TargetResource).Namespace(k.Namespace)
	}
	return c.Resource(k.TargetResource)
}

// base is the version of an object in a member that a change replaces, so that the change is refused if another engine wrote there
// meanwhile. The zero value stands for any version.
type base struct {
	// read reports whether the member was read for the change, and live is what it had, or nil.
	read bool
	live *unstructured.Unstructured
}

// target returns the object that a member has to have.
func target(o *federation.Object, cluster string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(o.Kind.Target)
	u.SetNamespace(o.Kind.Namespace)
	u.SetName(o.Meta.Name)
	u.SetLabels(federation.Overlay(labelsIn(o, cluster), map[string]string{federation.LabelKubeFed: "true"}))
	u.Object["spec"] = o.SpecIn(cluster)
	return u
}

// write applies a recorded object in a member. Fields that another manager owns survive a server-side apply, and could be a grant
// that was revoked: if the result is not exactly what is recorded, the object is replaced. It returns the resource version of the result.
func write(ctx context.Context, c dynamic.Interface, o *federation.Object, cluster string, on base, revision federation.Revision) (string, error) {
	want := target(o, cluster)
	if on.read {
		if on.live == nil {
			got, err := resource(c, o.Kind).Create(ctx, want, metav1.CreateOptions{FieldManager: FieldManager})
			if err != nil {
				return "", err
			}
			return got.GetResourceVersion(), nil
		}
		want.SetResourceVersion(on.live.GetResourceVersion())
	}
	raw, err := json.Marshal(want.Object)
	if err != nil {
		return "", fmt.Errorf("encode %s for %s: %w", o.Key(), cluster, err)
	}
	force := true
	got, err := resource(c, o.Kind).Patch(ctx, o.Meta.Name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: FieldManager, Force: &force})
	switch {
	case err != nil:
		return "", err
	case exact(got, want, revision):
		return got.GetResourceVersion(), nil
	}
	got.Object["spec"] = want.Object["spec"]
	for k := range got.Object {
		if !known(k) {
			delete(got.Object, k)
		}
	}
	labels := got.GetLabels()
	maps.DeleteFunc(labels, func(k, _ string) bool { return isReserved(k) })
	got.SetLabels(federation.Overlay(labels, want.GetLabels()))
	if got, err = resource(c, o.Kind).Update(ctx, got, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil {
		return "", err
	}
	return got.GetResourceVersion(), nil
}

// exact reports whether an object has the wanted spec, no other content, and no other reserved label.
func exact(got, want *unstructured.Unstructured, revision federation.Revision) bool {
	for k := range got.Object {
		if !known(k) {
			return false
		}
	}
	labels := want.GetLabels()
	for k := range got.GetLabels() {
		if _, wanted := labels[k]; !wanted && isReserved(k) {
			return false
		}
	}
	have, _ := got.Object["spec"].(map[string]any)
	asked, _ := want.Object["spec"].(map[string]any)
	// Equal content has equal revisions, which take several times as long to compute.
	return equality.Semantic.DeepEqual(have, asked) || revision(have) == revision(asked)
}

// known reports whether a field of an object is one that is written or that the API server or the dataplane fills in.
func known(field string) bool {
	switch field {
	case "apiVersion", "kind", "metadata", "spec", "status":
		return true
	}
	return false
}

func isReserved(label string) bool {
	for _, prefix := range reservedLabels {
		if strings.HasPrefix(label, prefix) {
			return true
		}
	}
	return false
}

// erase deletes an object in a member. It reports whether the member may still have it, because of a finalizer.
func erase(ctx context.Context, c dynamic.Interface, o *federation.Object, on base) (remains bool, err error) {
	r, opts := resource(c, o.Kind), metav1.DeleteOptions{}
	if on.read {
		if on.live == nil {
			return false, nil
		}
		uid, version := on.live.GetUID(), on.live.GetResourceVersion()
		opts.Preconditions = &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
	}
	if err := r.Delete(ctx, o.Meta.Name, opts); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	}
	_, err = r.Get(ctx, o.Meta.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return true, err
}

// Reasons of reports.
const (
	reasonNoCredentials = "NoCredentials"
	reasonNoAnswer      = "NoAnswer"
	reasonRecord        = "RecordNotReadable"
	reasonNotReadable   = "MemberNotReadable"
	reasonSuperseded    = "Superseded"
)

// reasonOf returns the reason of a failed request, which does not change from one attempt to the next.
func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return reasonNoAnswer
}

// refused reports whether the API server rejected a request, so that it certainly changed nothing. A proxy answers ServiceUnavailable, too, when it
// lost the API server after it had sent the request.
func refused(err error) bool {
	return apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) &&
		!apierrors.IsInternalError(err) && !apierrors.IsServiceUnavailable(err)
}
