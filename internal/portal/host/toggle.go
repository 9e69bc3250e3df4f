package host

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/waves"
)

var _ rollout.Switch = (*Writer)(nil)

// Toggle implements rollout.Switch. It writes with the resource version that it has read and compared.
func (w *Writer) Toggle(
	ctx context.Context,
	name, version string,
	audit *v1alpha1.TemporaryAudit,
	check func(context.Context, v1alpha1.ProtectedResourceSpec) error,
) (*v1alpha1.ProtectedResource, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for range maxConflicts {
		var o v1alpha1.ProtectedResource
		err := w.Client.Get(ctx, client.ObjectKey{Name: name}, &o)
		switch {
		case apierrors.IsNotFound(err):
			return nil, rollout.ErrGone
		case err != nil:
			return nil, fmt.Errorf("read ProtectedResource %s: %w", name, err)
		case version != "" && o.ResourceVersion != version:
			return nil, rollout.ErrChanged
		}
		if err := check(ctx, o.Spec); err != nil {
			return nil, err
		}
		if equality.Semantic.DeepEqual(o.Spec.TemporaryAudit, audit) {
			return &o, nil
		}
		o.Spec.TemporaryAudit = audit
		err = w.Client.Update(ctx, &o)
		if err == nil {
			return &o, nil
		}
		if !isConflict(true, err) {
			return nil, refused(name, err)
		}
		if version != "" {
			return nil, rollout.ErrChanged
		}
	}
	return nil, fmt.Errorf("write ProtectedResource %s: it changed %d times in between", name, maxConflicts)
}

// Instruct implements rollout.Switch. It replaces the annotation whatever it was, because only the last instruction counts. But an
// instruction of the guard does not replace one of a person that the adapter has not handled yet.
func (w *Writer) Instruct(ctx context.Context, name string, i waves.Instruction) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := i.Validate(); err != nil {
		return fmt.Errorf("instruct the rollout of ProtectedResource %s: %w", name, err)
	}
	if w.NoteInstruction != nil {
		w.NoteInstruction(ctx, externalchanges.Instructed{Object: name, Instruction: i})
	}
	for range maxConflicts {
		var o v1alpha1.ProtectedResource
		err := w.Client.Get(ctx, client.ObjectKey{Name: name}, &o)
		switch {
		case apierrors.IsNotFound(err):
			return rollout.ErrGone
		case err != nil:
			return fmt.Errorf("read ProtectedResource %s: %w", name, err)
		}
		if i.By == waves.Guard && personWaits(&o) {
			return nil
		}
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, v1alpha1.AnnotationRollout, i.String())
		if err = w.Client.Update(ctx, &o); err == nil {
			return nil
		}
		if !isConflict(true, err) {
			return refused(name, err)
		}
	}
	return fmt.Errorf("write ProtectedResource %s: it changed %d times in between", name, maxConflicts)
}

// personWaits reports whether an object has an instruction of a person that the adapter has not handled yet.
func personWaits(o *v1alpha1.ProtectedResource) bool {
	present, err := waves.InstructionOf(o)
	return err == nil && present != nil && present.By != waves.Guard && (o.Status.Rollout == nil || o.Status.Rollout.Instruction != present.ID)
}
