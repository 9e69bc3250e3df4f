package class

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// holderOf returns why the class cannot be deleted, with what has to be done before, or zero, and the finalizer of its kind. Objects
// other than classes have none.
func (r *Reconciler) holderOf(o client.Object) (holder message.Message, finalizer string) {
	switch o := o.(type) {
	case *v1alpha1.ResourceClass:
		if name := r.Cache.ResourceBlockingDeletion(string(o.Spec.Pattern)); name != "" {
			holder = message.ConditionResourceClassInUse(name)
		}
		return holder, v1alpha1.FinalizerResourceClass
	case *v1alpha1.SubjectClass:
		if ref := r.Cache.StatementBlockingDeletion(string(o.Spec.Pattern), r.Clock.Now()); ref != "" {
			holder = message.ConditionSubjectClassInUse(ref)
		}
		return holder, v1alpha1.FinalizerSubjectClass
	default:
		return message.Message{}, ""
	}
}

// reconcileFinalizer adds the finalizer to a class, and removes it when the class is to be deleted and nothing holds
// it. Without a ResourceClass its units would stay as they are, and a revocation would reach no member; without a
// SubjectClass a deny of its subjects could not be expressed. gone reports whether the finalizer was removed.
func (r *Reconciler) reconcileFinalizer(ctx context.Context, c client.Object, finalizer string, held bool) (gone bool, err error) {
	before, ok := c.DeepCopyObject().(client.Object)
	if !ok {
		return false, fmt.Errorf("copy %T: it is no object", c) // not possible: a copy has the same type
	}
	switch {
	case c.GetDeletionTimestamp() == nil && controllerutil.AddFinalizer(c, finalizer):
	case c.GetDeletionTimestamp() != nil && !held && controllerutil.RemoveFinalizer(c, finalizer):
		gone = true
	default:
		return false, nil
	}
	// The patch applies only to the version that was read. A resource that was created meanwhile does not change the
	// class, but its own finalizer is older than its first object in a member, and the class is then reconciled again.
	err = r.Client.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return gone, fmt.Errorf("write the finalizer of %s %s: %w", r.kind, c.GetName(), err)
	}
	return gone, nil
}

// retry returns a short delay after a conflict, because the event of the conflicting change may already have been
// handled.
func retry(err error) time.Duration {
	if apierrors.IsConflict(err) {
		return conflictRequeueDelay
	}
	return 0
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
