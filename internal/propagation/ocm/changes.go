package ocm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
)

func (s *Works) client(cluster string) dynamic.ResourceInterface {
	return s.config.Host.Resource(WorkResource).Namespace(cluster)
}

// errSuperseded means that a ManifestWork has another version than the one that a change was decided on. Nothing was changed, and an event
// of that version follows.
var errSuperseded = errors.New("the ManifestWork changed meanwhile")

// write creates or replaces a ManifestWork.
func (s *Works) write(ctx context.Context, d *desired, nonce string) error {
	next := d.unstructured(nonce)
	if d.name == nameOf(d.key) {
		s.discardHandled(place{d.cluster, d.key}, bodyOf(next))
	}
	now := s.get(d.cluster, d.name)
	if now == nil {
		_, err := s.client(d.cluster).Create(ctx, next, metav1.CreateOptions{FieldManager: v1alpha1.ManagedBy})
		if !apierrors.IsAlreadyExists(err) {
			return wrap("create", d, err)
		}
		// The cache is behind, or the label by which ManifestWorks are watched was removed.
		found, e := s.client(d.cluster).Get(ctx, d.name, metav1.GetOptions{})
		switch {
		case e != nil:
			return wrap("read", d, e)
		case d.purpose != purposeRead:
			now = parseWork(found)
		case found.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy:
			return errSuperseded
		default: // A read request is always a new ManifestWork, because the report that an object is missing has no nonce.
			return wrap("create", d, err)
		}
	}
	// A replacement without the finalizers would complete the deletion of the ManifestWork before the agent has removed the object, so only the
	// fields that the engine owns are written.
	return wrap("update", d, s.patch(ctx, now, []map[string]any{
		{"op": "add", "path": "/metadata/annotations", "value": next.GetAnnotations()},
		{"op": "add", "path": "/metadata/labels", "value": next.GetLabels()},
		{"op": "add", "path": "/spec", "value": next.Object["spec"]},
	}))
}

// patch changes a ManifestWork if its spec is still the given one: a request that timed out, or one of an earlier leader, that arrives late
// must not replace a later version.
func (s *Works) patch(ctx context.Context, now *work, patch []map[string]any) error {
	raw, err := json.Marshal(append([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": string(now.uid)},
		{"op": "test", "path": "/metadata/generation", "value": now.generation},
	}, patch...))
	if err != nil {
		return err
	}
	_, err = s.client(now.cluster).Patch(ctx, now.name, types.JSONPatchType, raw, metav1.PatchOptions{FieldManager: v1alpha1.ManagedBy})
	if !apierrors.IsInvalid(err) {
		return err
	}
	// The host refuses a failed test and an invalid content alike.
	live, e := s.client(now.cluster).Get(ctx, now.name, metav1.GetOptions{})
	if e == nil && (live.GetUID() != now.uid || live.GetGeneration() != now.generation) {
		return errSuperseded
	}
	return err
}

// suspend makes the agent only report on the object of a ManifestWork.
func (s *Works) suspend(ctx context.Context, w *work) error {
	s.discardHandled(place{w.cluster, w.key}, "")
	return wrap("suspend", &desired{cluster: w.cluster, name: w.name}, s.patchWithNewNonce(ctx, w, []map[string]any{
		{"op": "add", "path": annotationPath(annotationPurpose), "value": string(purposeHold)},
		{"op": "add", "path": "/spec/manifestConfigs/0/updateStrategy", "value": map[string]any{"type": readOnly}},
	}))
}

// release makes the agent stop owning the object of a ManifestWork, so that it stays in the member when the ManifestWork is deleted. The
// agent removes its owner reference, which it does not do with the strategy ReadOnly. CreateOnly changes nothing else in an object that exists.
func (s *Works) release(ctx context.Context, w *work) error {
	s.discardHandled(place{w.cluster, w.key}, "")
	return wrap("release", &desired{cluster: w.cluster, name: w.name}, s.patchWithNewNonce(ctx, w, []map[string]any{
		{"op": "add", "path": annotationPath(annotationPurpose), "value": string(purposeRelease)},
		{"op": "add", "path": "/spec/deleteOption", "value": map[string]any{"propagationPolicy": "Orphan"}},
		{"op": "add", "path": "/spec/manifestConfigs/0/updateStrategy", "value": map[string]any{"type": createOnly}},
	}))
}

// refresh makes the agent report on a ManifestWork again, whose content stays as it is.
func (s *Works) refresh(ctx context.Context, w *work) error {
	return wrap("refresh", &desired{cluster: w.cluster, name: w.name}, s.patchWithNewNonce(ctx, w, nil))
}

// patchWithNewNonce makes changes to a ManifestWork and gives it a new nonce, so that the agent reports on the object again.
func (s *Works) patchWithNewNonce(ctx context.Context, w *work, changes []map[string]any) error {
	nonce := s.nonce(w.cluster)
	return s.patch(ctx, w, append(changes,
		map[string]any{"op": "add", "path": annotationPath(annotationNonce), "value": nonce},
		map[string]any{"op": "add", "path": "/spec/manifestConfigs/0/conditionRules/0/messageExpression", "value": reportMessage(nonce)}))
}

func annotationPath(key string) string {
	return "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1")
}

// deleteReadRequest deletes the ManifestWork of a read request.
func (s *Works) deleteReadRequest(ctx context.Context, cluster, name string) {
	err := s.client(cluster).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // it is deleted when it is old
		s.config.Log.V(1).Info("ManifestWork was not deleted", "member", cluster, "name", name, "because", err.Error())
	}
}

func wrap(action string, d *desired, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s ManifestWork %s/%s: %w", action, d.cluster, d.name, err)
}

// remove deletes a ManifestWork, which makes the agent delete the object if it owns it.
func (s *Works) remove(ctx context.Context, w *work) error {
	err := s.client(w.cluster).Delete(ctx, w.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &w.uid, ResourceVersion: &w.resourceVersion}})
	switch {
	case apierrors.IsConflict(err):
		return errSuperseded
	case err == nil || apierrors.IsNotFound(err):
		return nil
	}
	return fmt.Errorf("delete ManifestWork %s/%s: %w", w.cluster, w.name, err)
}
