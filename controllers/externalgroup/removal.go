package externalgroup

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/internal/federation"
)

// remove takes one step of the way out: place nowhere, and delete once no member has it.
func (r *Reconciler) remove(ctx context.Context, e *federation.Object) error {
	switch {
	case e.Meta.DeletionTimestamp != nil:
		return nil
	case len(e.Placement) > 0 || e.Foreign:
		next := *e
		next.Meta = *e.Meta.DeepCopy()
		next.Placement, next.Overrides, next.Foreign = nil, nil, false
		next.Meta.Annotations = federation.Overlay(next.Meta.Annotations, map[string]string{
			federation.AnnotationEverPlaced: federation.JoinNames(r.stillHeld(e))})
		if _, err := r.Federated.Apply(ctx, &next); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Placed federated group nowhere", "name", e.Meta.Name)
		return nil
	case !e.Propagation.Seen || len(r.stillHeld(e)) > 0:
		return nil // the member, or KubeFed, wakes the reconciler
	}
	// A cache that stands still must not make a member forgotten.
	for _, c := range r.ever(e) {
		absent, err := r.Fleet.Absent(ctx, c, e.Meta.Name)
		if err == nil && !absent {
			err = fmt.Errorf("member %s still has it", c)
		}
		if err != nil {
			return fmt.Errorf("before deleting %s: %w", e.Meta.Name, err)
		}
	}
	if err := r.Federated.Delete(ctx, e); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Deleted federated group", "name", e.Meta.Name)
	return nil
}

// ever are the members that may have the object: those it was placed in, and those that KubeFed lists.
func (r *Reconciler) ever(e *federation.Object) []string {
	out := append(federation.SplitNames(e.Meta.Annotations[federation.AnnotationEverPlaced]), e.Placement...)
	out = slices.AppendSeq(out, maps.Keys(e.Propagation.Clusters))
	forget := federation.SplitNames(e.Meta.Annotations[federation.AnnotationForget])
	out = slices.DeleteFunc(out, func(c string) bool {
		return slices.Contains(forget, c) && !r.Fleet.Observe(c, e.Meta.Name).Registered
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// stillHeld are the members that may have the object and were not seen without it since KubeFed was told to remove it.
func (r *Reconciler) stillHeld(e *federation.Object) []string {
	return slices.DeleteFunc(r.ever(e), func(c string) bool {
		o := r.Fleet.Observe(c, e.Meta.Name)
		return !slices.Contains(e.Placement, c) && e.Propagation.Seen && o.Registered && o.Reachable && o.Object == nil
	})
}
