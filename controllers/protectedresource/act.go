package protectedresource

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// errConflict reports that a ProtectedResource changed since it was read. Its event triggers the next reconcile.
var errConflict = errors.New("the ProtectedResource changed meanwhile")

// outcome is the result of executing a plan.
type outcome struct {
	Plan plan
	// Existing are the Federated objects after the plan.
	Existing []*federation.Object
	Problem  *statuscache.Problem
	// Handovers are the writes of this plan.
	Handovers []handover
	// Wrote reports that some of them were changed by this plan.
	Wrote bool
	// Deferred reports that the plan was put off: it is not urgent and KubeFed is at its limit, or a group is missing,
	// or KubeFed is still writing the same object.
	Deferred bool
	// RequeueSoon reports that no event will trigger the next attempt.
	RequeueSoon bool
	// MissingGroup is a group that must exist first, or the plan would refuse clients that it should allow; "" if there
	// is none.
	MissingGroup string
}

// act decides, and executes the decision if it is the unit's turn. asked reports that a user waits for this unit in
// particular. If there is a problem, nothing is written and the existing objects stay.
func (r *Reconciler) act(ctx context.Context, f *facts, asked bool) (outcome, error) {
	out := outcome{Existing: f.Existing, Problem: f.Problem}
	if f.Problem != nil && len(f.Rendered) == 0 {
		out.Plan = plan{Desired: map[string]map[string]string{}, Frozen: true}
		for _, e := range f.Existing {
			out.Plan.Desired[e.Key()] = f.currentRevisions(e)
		}
		return out, nil
	}
	p, err := decide(f)
	if err != nil {
		return out, err
	}
	out.Plan = p
	kind := priorityOf(f, &p, asked)
	missing := ""
	if kind < writequeue.Revocation {
		missing = missingGroupOf(f, &p)
	}
	if r.missingGroups.InGrace(f.Resource, missing != "", f.Now, missingGroupTimeout) {
		out.Deferred, out.MissingGroup = true, missing
		return out, nil
	}
	if r.recent.inFlight(f.Existing, p.Writes, r.MaxInFlight) {
		out.Deferred, out.RequeueSoon = true, true
		return out, nil
	}
	if len(p.Writes) > 0 && !r.Queue.TryAdmit(writequeue.Request{Unit: f.Resource, Priority: kind, Members: federation.MembersOf(p.Writes)}, f.Now) {
		out.Deferred = true
		return out, nil
	}
	if err := r.addFinalizers(ctx, f, &p); err != nil {
		return out, err
	}
	if err := r.writeGroups(ctx, f, &p); err != nil {
		out.Problem = &statuscache.Problem{Reason: v1alpha1.ReasonWriteFailed,
			Message: message.UnitGroupNotWritten()}
		return out, err
	}
	for _, next := range p.Writes {
		annotateTraces(f, next)
		begin := time.Now()
		written, err := r.Federated.Apply(ctx, next)
		if err != nil {
			out.Problem = &statuscache.Problem{Reason: v1alpha1.ReasonWriteFailed,
				Message: message.UnitNotWritten(next.Meta.Name)}
			return out, err
		}
		log.FromContext(ctx).Info("Wrote federated object", "name", written.Key(), "revision", written.Meta.Labels[v1alpha1.LabelRevision],
			"placement", written.Placement)
		direct := kind >= writequeue.Revocation && r.MemberWriter != nil
		out.Handovers = append(out.Handovers, handover{Object: written, Begin: begin, End: time.Now(), Direct: direct})
		if direct {
			r.MemberWriter.Send(written)
		}
		r.recent.written(written.Key())
		r.UpdatePending(written.Key())
		r.measureExpiry(f, written)
		out.Existing, out.Wrote = replace(out.Existing, written), true
	}
	for _, gone := range p.Deletes {
		if err := r.remove(ctx, f, gone); err != nil {
			return out, err
		}
	}
	return out, nil
}

// writeGroups writes the groups that the unit refers to. Without them a deny in the unit would match nothing.
func (r *Reconciler) writeGroups(ctx context.Context, f *facts, p *plan) error {
	if len(p.Writes) == 0 {
		return nil
	}
	for _, subject := range f.Subjects {
		if err := r.Groups.Ensure(ctx, f.View, subject); err != nil {
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
