package class

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/acp-io/acp/api/v1alpha1"
)

// keep puts the finalizer on a class, and takes it off when the class is to be deleted and nothing holds it. Without a
// class its units stay as they are, and a revocation would reach no member. gone: the class was let go.
func (r *Reconciler) keep(ctx context.Context, c *v1alpha1.ResourceClass, holder string) (gone bool, err error) {
	before := c.DeepCopy()
	switch {
	case c.DeletionTimestamp == nil && controllerutil.AddFinalizer(c, v1alpha1.FinalizerResourceClass):
	case c.DeletionTimestamp != nil && holder == "" && controllerutil.RemoveFinalizer(c, v1alpha1.FinalizerResourceClass):
		gone = true
	default:
		return false, nil
	}
	// Only what was read may be let go: a resource that came meanwhile changes nothing of the class, but its own
	// finalizer is older than its first object in a member, and the class is looked at again then.
	err = r.Client.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return gone, fmt.Errorf("write the finalizer of ResourceClass %s: %w", c.Name, err)
	}
	return gone, nil
}

// retry is soon after a conflict, whose event may have come already.
func retry(err error) time.Duration {
	if apierrors.IsConflict(err) {
		return soon
	}
	return 0
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
