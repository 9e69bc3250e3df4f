package protectedresource

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// errConflict means that a ProtectedResource changed since it was read. Its event triggers the next reconcile.
var errConflict = errors.New("the ProtectedResource changed meanwhile")

// admit decides whether a plan may be applied now, and returns stepApplied if it may. Otherwise it returns the step at
// which the plan waits, and the group that is missing if that is the reason.
func (r *Reconciler) admit(f *facts, p *plan, priority writequeue.Priority) (at step, missingGroup string) {
	if priority < writequeue.Revocation {
		missingGroup = missingGroupOf(f, p)
	}
	if r.missingGroups.InGrace(f.Resource, missingGroup != "", f.Now, missingGroupTimeout) {
		return stepMissingGroup, missingGroup
	}
	if r.recent.inFlight(f.Existing, p.Writes, r.systemClock().Now(), r.MaxInFlight) {
		return stepInFlight, ""
	}
	members := federation.MembersOf(p.Writes)
	request := writequeue.Request{Unit: f.Resource, Priority: priority, Members: r.withoutPriorities(members)}
	prioritized := len(members) > 0 && len(request.Members) == 0 // every member's engine writes urgent objects first
	if len(p.Writes) > 0 && !prioritized && !r.Queue.TryAdmit(request, f.Now) {
		return stepQueued, ""
	}
	return stepApplied, ""
}

// withoutPriorities returns the members for which the write queue has to hold back what is not urgent.
func (r *Reconciler) withoutPriorities(members []string) []string {
	if r.Engines == nil {
		return members
	}
	return r.Engines.WithoutPriorities(members)
}

// apply carries out the plan of an outcome, and records in the outcome what was written.
func (r *Reconciler) apply(ctx context.Context, out *outcome, priority writequeue.Priority) error {
	f, p := out.Facts, &out.Plan
	if err := r.addFinalizers(ctx, f, p); err != nil {
		return err
	}
	write := r.writeGroupsFirst
	if priority >= writequeue.Revocation {
		write = r.writeUrgently
	}
	if err := write(ctx, out, priority); err != nil {
		return err
	}
	for _, gone := range p.Deletes {
		if err := r.remove(ctx, f, gone); err != nil {
			return err
		}
	}
	return nil
}

// writeGroupsFirst writes the groups that the unit refers to, and then the unit's objects. Without the groups, a deny in the unit would match nothing,
// and a workload that it closes would refuse the clients in the groups.
func (r *Reconciler) writeGroupsFirst(ctx context.Context, out *outcome, priority writequeue.Priority) error {
	if err := r.writeGroups(ctx, out); err != nil {
		return err
	}
	return r.writeObjects(ctx, out, out.Plan.Writes, priority)
}

// writeUrgently writes what a plan of high priority changes. A group that cannot be written must not delay the revocation of a client that is not in
// it: the unit's objects are written first if no group affects what they open. Otherwise, if the groups cannot be written, only the objects
// are written for the members in which no group affects it.
func (r *Reconciler) writeUrgently(ctx context.Context, out *outcome, priority writequeue.Priority) error {
	held := out.Facts.heldForGroups(&out.Plan)
	if len(held) == 0 {
		if err := r.writeObjects(ctx, out, out.Plan.Writes, priority); err != nil {
			return err
		}
		return r.writeGroups(ctx, out)
	}
	err := r.writeGroups(ctx, out)
	if err == nil {
		return r.writeObjects(ctx, out, out.Plan.Writes, priority)
	}
	problem := out.Problem
	writes, failed := out.Facts.withoutChangesIn(held, &out.Plan)
	if failed == nil {
		failed = r.writeObjects(ctx, out, writes, priority)
	}
	out.Problem = problem
	return errors.Join(err, failed)
}

// writeObjects writes objects of the unit.
func (r *Reconciler) writeObjects(ctx context.Context, out *outcome, writes []*federation.Object, priority writequeue.Priority) error {
	f := out.Facts
	for _, next := range writes {
		annotateTraces(f, next)
		begin := r.systemClock().Now()
		written, err := r.Federated.Apply(ctx, next)
		if err != nil {
			out.Problem = &statuscache.Problem{Reason: v1alpha1.ReasonWriteFailed,
				Message: message.UnitNotWritten(next.Meta.Name)}
			return err
		}
		end := r.systemClock().Now()
		log.FromContext(ctx).Info("Wrote federated object", "name", written.Key(), "revision", written.Meta.Labels[v1alpha1.LabelRevision],
			"placement", written.Placement)
		urgent := priority >= writequeue.Revocation && r.Engines != nil
		out.ObjectWrites = append(out.ObjectWrites, objectWrite{Object: written, Begin: begin, End: end, Urgent: urgent})
		if urgent {
			r.Engines.DeliverUrgent(written)
		}
		r.recent.written(written.Key(), end)
		r.UpdatePending(written.Key())
		r.measureExpiry(f, written)
		out.Existing = replace(out.Existing, written)
	}
	return nil
}

// writeGroups writes the groups that the unit refers to, if the plan writes something.
func (r *Reconciler) writeGroups(ctx context.Context, out *outcome) error {
	if len(out.Plan.Writes) == 0 {
		return nil
	}
	for _, subject := range out.Facts.Subjects {
		if err := r.Groups.Ensure(ctx, out.Facts.View, subject); err != nil {
			out.Problem = &statuscache.Problem{Reason: v1alpha1.ReasonWriteFailed, Message: message.UnitGroupNotWritten()}
			return err
		}
	}
	return nil
}

// addFinalizers adds the finalizer to the ProtectedResources before the first object of the unit is written, so that
// none of them can be deleted and leave the object behind.
func (r *Reconciler) addFinalizers(ctx context.Context, f *facts, p *plan) error {
	if len(p.Writes) == 0 {
		return nil
	}
	for i, o := range f.Objects {
		if o.DeletionTimestamp != nil || controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerProtectedResource) {
			continue
		}
		next := o.DeepCopy()
		controllerutil.AddFinalizer(next, v1alpha1.FinalizerProtectedResource)
		if err := r.patch(ctx, o, next); err != nil {
			return fmt.Errorf("add the finalizer to ProtectedResource %s: %w", o.Name, err)
		}
		f.Objects[i] = next
	}
	return nil
}

func (r *Reconciler) remove(ctx context.Context, f *facts, o *federation.Object) error {
	if err := federation.DeleteAbsent(ctx, r.Federated, r.Fleet, o, f.everPlaced(o)); err != nil {
		return err
	}
	r.recent.forget(o.Key())
	log.FromContext(ctx).Info("Deleted federated object", "name", o.Meta.Name, "resource", f.Resource)
	return nil
}

// patch changes the metadata of exactly the version that was read. next receives the object that the API server
// returns.
func (r *Reconciler) patch(ctx context.Context, old, next *v1alpha1.ProtectedResource) error {
	err := r.Client.Patch(ctx, next, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return errConflict
	}
	return client.IgnoreNotFound(err)
}

func replace(all []*federation.Object, o *federation.Object) []*federation.Object {
	out := []*federation.Object{o}
	for _, e := range all {
		if e.Key() != o.Key() {
			out = append(out, e)
		}
	}
	return out
}
