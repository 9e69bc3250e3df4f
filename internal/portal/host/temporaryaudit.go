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

var _ rollout.HostWriter = (*Writer)(nil)

// SetTemporaryAudit implements rollout.HostWriter. It writes with the resource version that it has read and compared.
func (w *Writer) SetTemporaryAudit(
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

// resourcesPage is the number of ProtectedResources that are read in one call.
const resourcesPage = 500

// ProtectedResources reads the names and specs of all ProtectedResources from the API server, as they are at the time of the first call. It
// implements Objects of rollout.FleetDowngrader.
func (w *Writer) ProtectedResources(ctx context.Context) ([]*v1alpha1.ProtectedResource, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*writeTimeout)
	defer cancel()
	var out []*v1alpha1.ProtectedResource
	for next := ""; ; {
		var page v1alpha1.ProtectedResourceList
		if err := w.Client.List(ctx, &page, client.Limit(resourcesPage), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list the ProtectedResources: %w", err)
		}
		for _, o := range page.Items { // without the statuses, which are most of what is read
			out = append(out, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Spec: o.Spec})
		}
		if next = page.Continue; next == "" {
			return out, nil
		}
	}
}

// Instruct implements rollout.HostWriter. It replaces the annotation whatever it was, because only the last instruction counts. But an
// instruction of the guard does not replace one of a person that the adapter has not handled yet.
func (w *Writer) Instruct(ctx context.Context, name string, i waves.Instruction) error {
	var o v1alpha1.ProtectedResource
	return w.instruct(ctx, externalchanges.KindProtectedResource, name, i, &o, func() (string, *metav1.MicroTime) {
		if o.Status.Rollout == nil {
			return "", nil
		}
		return o.Status.Rollout.Instruction, o.Status.Rollout.InstructionAt
	})
}

// InstructClass implements rollout.HostWriter, with the same rules.
func (w *Writer) InstructClass(ctx context.Context, name string, i waves.Instruction) error {
	var o v1alpha1.ResourceClass
	return w.instruct(ctx, externalchanges.KindResourceClass, name, i, &o, func() (string, *metav1.MicroTime) {
		if o.Status.Rollout == nil {
			return "", nil
		}
		return o.Status.Rollout.Instruction, o.Status.Rollout.InstructionAt
	})
}

// instruct writes an instruction to an object, which is read into o. last returns the id of the last instruction that the adapter has
// handled, and the time of the last one that it has carried out, according to o.
func (w *Writer) instruct(ctx context.Context, kind, name string, i waves.Instruction, o client.Object, last func() (string, *metav1.MicroTime)) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := i.Validate(); err != nil {
		return fmt.Errorf("instruct the rollout of %s %s: %w", kind, name, err)
	}
	for range maxConflicts {
		err := w.Client.Get(ctx, client.ObjectKey{Name: name}, o)
		switch {
		case apierrors.IsNotFound(err):
			return rollout.ErrGone
		case err != nil:
			return fmt.Errorf("read %s %s: %w", kind, name, err)
		}
		handled, at := last()
		if i.By == waves.Guard && personWaits(o, handled) {
			return nil
		}
		given := i.LaterThan(at)
		if w.NoteInstruction != nil {
			w.NoteInstruction(ctx, externalchanges.Instructed{Kind: kind, Object: name, Instruction: given})
		}
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.AnnotationRollout] = given.String()
		o.SetAnnotations(annotations)
		if err = w.Client.Update(ctx, o); err == nil {
			return nil
		}
		if !isConflict(true, err) {
			return refused(name, err)
		}
	}
	return fmt.Errorf("write %s %s: it changed %d times in between", kind, name, maxConflicts)
}

// personWaits reports whether an object has an instruction of a person that the adapter has not handled yet.
func personWaits(o client.Object, handled string) bool {
	present, err := waves.InstructionOf(o)
	return err == nil && present != nil && present.By != waves.Guard && handled != present.ID
}
