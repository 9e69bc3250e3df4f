package externalgroup

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/internal/federation"
)

// remove makes one step of a removal: place the object nowhere, and delete it once no member has it.
func (r *Reconciler) remove(ctx context.Context, e *federation.Object) error {
	switch {
	case e.Meta.DeletionTimestamp != nil:
		return nil
	case len(e.Placement) > 0 || e.ForeignFields:
		if _, err := r.Federated.Apply(ctx, e.WithoutPlacement(r.notSeenWithout(e))); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Placed federated group nowhere", "name", e.Meta.Name)
		return nil
	case !e.Handled() || len(r.notSeenWithout(e)) > 0:
		return nil // An event of the member or of its engine triggers the next step.
	}
	if err := federation.DeleteAbsent(ctx, r.Federated, r.Fleet, e, r.everPlaced(e)); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Deleted federated group", "name", e.Meta.Name)
	return nil
}

// everPlaced returns the members that may have the object.
func (r *Reconciler) everPlaced(e *federation.Object) []string {
	return slices.DeleteFunc(e.EverPlaced(), func(c string) bool {
		return e.IsForgotten(c) && !r.Fleet.Observe(c, e.Meta.Name).Registered
	})
}

// notSeenWithout returns the members that may have the object and were not seen without it since their engines were to
// remove it.
func (r *Reconciler) notSeenWithout(e *federation.Object) []string {
	return slices.DeleteFunc(r.everPlaced(e), func(c string) bool {
		return !slices.Contains(e.Placement, c) && e.SeenWithout(c, r.Fleet.Observe(c, e.Meta.Name))
	})
}
