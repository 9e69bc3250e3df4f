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
)

// errConflict: a ProtectedResource changed since it was read; its event wakes the reconciler.
var errConflict = errors.New("the ProtectedResource changed meanwhile")

// outcome is what carrying out a plan led to.
type outcome struct {
	Plan plan
	// Existing are the Federated objects as they are now.
	Existing []*federation.Object
	Problem  *statuscache.Problem
	// Wrote: some of them changed just now.
	Wrote bool
	// Waits: the plan is for later, because it is not urgent and KubeFed has enough to do, because of WaitsFor, or because KubeFed is
	// busy with the same object.
	Waits bool
	// Soon: nobody says when it is time.
	Soon bool
	// WaitsFor is a group without which the plan would refuse what it means to let in; "": none.
	WaitsFor string
}

// act decides, and carries the decision out if it is the unit's turn. asked: somebody waits for this unit by itself. With a
// problem nothing is written: what is there stays.
func (r *Reconciler) act(ctx context.Context, f *facts, asked bool) (outcome, error) {
	out := outcome{Existing: f.Existing, Problem: f.Problem}
	if f.Problem != nil && len(f.Rendered) == 0 {
		out.Plan = plan{Desired: map[string]map[string]string{}, Kept: true}
		for _, e := range f.Existing {
			out.Plan.Desired[e.Key()] = f.present(e)
		}
		return out, nil
	}
	p, err := decide(f)
	if err != nil {
		return out, err
	}
	out.Plan = p
	kind := order(f, &p, asked)
	missing := ""
	if kind < writequeue.Revocation {
		missing = closesWithout(f, &p)
	}
	if r.closing.InGrace(f.Resource, missing != "", f.Now, closingPatience) {
		out.Waits, out.WaitsFor = true, missing
		return out, nil
	}
	if r.settling.unsettled(f.Existing, p.Writes, r.MaxInFlight) {
		out.Waits, out.Soon = true, true
		return out, nil
	}
	if len(p.Writes) > 0 && !r.Queue.TryAdmit(writequeue.Request{Unit: f.Resource, Priority: kind, Members: federation.MembersOf(p.Writes)}, f.Now) {
		out.Waits = true
		return out, nil
	}
	if err := r.hold(ctx, f, &p); err != nil {
		return out, err
	}
	if err := r.before(ctx, f, &p); err != nil {
		out.Problem = &statuscache.Problem{Reason: v1alpha1.ReasonWriteFailed,
			Message: "a group of external workloads could not be written, so the unit waits; it is tried again, and the adapter's log has the error"}
		return out, err
	}
	for _, next := range p.Writes {
		written, err := r.Federated.Apply(ctx, next)
		if err != nil {
			out.Problem = &statuscache.Problem{Reason: v1alpha1.ReasonWriteFailed,
				Message: fmt.Sprintf("the federated object %s could not be written; it is tried again, and the adapter's log has the error", next.Meta.Name)}
			return out, err
		}
		log.FromContext(ctx).Info("Wrote federated object", "name", written.Key(), "revision", written.Meta.Labels[v1alpha1.LabelRevision],
			"placement", written.Placement)
		if kind >= writequeue.Revocation && r.MemberWriter != nil {
			r.MemberWriter.Send(written)
		}
		r.settling.written(written.Key())
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

// before writes the groups that the unit refers to: without them a deny in it would deny nobody.
func (r *Reconciler) before(ctx context.Context, f *facts, p *plan) error {
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

// hold puts the finalizer on the ProtectedResources before the first object of the unit is written, so that none of
// them can vanish and leave it behind.
func (r *Reconciler) hold(ctx context.Context, f *facts, p *plan) error {
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
	if err := federation.DeleteAbsent(ctx, r.Federated, r.Fleet, o, f.ever(o)); err != nil {
		return err
	}
	r.settling.forget(o.Key())
	log.FromContext(ctx).Info("Deleted federated object", "name", o.Meta.Name, "resource", f.Resource)
	return nil
}

// patch changes the metadata of exactly the version that was read; next becomes what the API server made of it.
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
