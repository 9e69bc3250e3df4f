package protectedresource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/statusfields"
)

// report is the only function that publishes: the status cache, the policies that the unit concerns, the status, the
// events and, at the end, the removal of the finalizer. It records in the outcome whether the status write is deferred or
// failed.
func (r *Reconciler) report(ctx context.Context, done *outcome) {
	f, now := done.Facts, r.systemClock().Now()
	report := assess(done)
	report.OnlySlowPending = r.slow.includePending(report.Clusters, now)
	before, had := r.Reports.Get(f.Resource)
	if len(f.Objects) == 0 && !f.View.HasWildcardUnit(f.Resource) && len(done.Existing) == 0 && len(report.Clusters) == 0 {
		r.Reports.Delete(f.Resource)
	} else {
		r.Reports.Put(report)
	}
	r.Policies.Add(policyPriority(before.Clusters, report.Clusters), slices.Concat(report.Policies(), before.Policies(), r.Reports.Awaited(f.Resource))...)
	done.RolloutDelay = f.rolloutDelay(&report)
	r.emitEvents(f, before, had, &report)
	r.measure(f, &report)
	if done.Plan.Frozen && f.orphaned() && len(done.Existing) > 0 && (!had || before.Wanted) {
		log.FromContext(ctx).Info("A ProtectedResource was removed by force; its resource stays closed: create it again, set it to Observe, and delete it then",
			"resource", f.Resource, "federated", done.Existing[0].Meta.Name)
	}
	var errs []error
	if done.wrote() && f.first() {
		r.deferredStatus.InGrace(f.Resource, false, now, 0) // the delay is over; now the usual time of a push applies
	}
	delay := statusDeferral(f, &report, r.FirstStatusDelay)
	if r.deferredStatus.InGrace(f.Resource, delay > 0, now, delay) {
		done.StatusDelay = delay
		return
	}
	if delay > 0 && !f.first() {
		r.slow.recordPending(report.Clusters, now)
	}
	r.deferredStatus.InGrace(f.Resource, false, now, 0) // progress after this write may be deferred again
	for _, o := range f.Objects {
		o, err := r.writeStatus(ctx, f, o, &report)
		errs = append(errs, err)
		if err == nil && isReleasable(f, o, done, &report) {
			next := o.DeepCopy()
			controllerutil.RemoveFinalizer(next, v1alpha1.FinalizerProtectedResource)
			errs = append(errs, r.patch(ctx, o, next))
		}
	}
	done.StatusErr = errors.Join(errs...)
}

// policyPriority returns the priority with which the policies of a unit are reported. When a member is lost or found, that concerns every policy: those of
// units that members have another revision of come first.
func policyPriority(before, now []v1alpha1.ClusterState) int {
	if len(before) > 0 && slices.EqualFunc(before, now, func(a, b v1alpha1.ClusterState) bool {
		return a.Name == b.Name && a.Mode == b.Mode && a.DesiredRevision == b.DesiredRevision && a.ObservedRevision == b.ObservedRevision
	}) {
		return requestqueue.StatusUpdate
	}
	return requestqueue.Observed
}

// statusDeferral returns how long the status may be deferred because it only shows progress; 0 if it shows something else, as
// it does for a deletion. first is the limit for an object without a status. Without the deferral, a change of a class, of which
// KubeFed propagates 20 units per second, would cause a write for each member of each unit, and the host's API server would have
// less time for the push itself.
func statusDeferral(f *facts, report *statuscache.Report, first time.Duration) time.Duration {
	progress := statusfields.Progress{Awaited: report.Awaited(), Troubled: report.Troubled()}
	var least time.Duration
	for i, o := range f.Objects {
		if o.DeletionTimestamp != nil {
			return 0
		}
		progress.TroubleShown = func() bool { return statusfields.ShowsTrouble(o.Status.States(), report.Clusters) }
		d := statusfields.DeferralLimit(o.Status.Conditions, conditions(f, o, report), progress, first)
		if d > 0 && !meta.IsStatusConditionTrue(o.Status.Conditions, v1alpha1.ConditionRealized) &&
			equality.Semantic.DeepEqual(o.Status, status(f, o, report)) {
			d = 0 // there is nothing to write
		}
		if i == 0 || d < least {
			least = d
		}
	}
	return least
}

// first reports whether the resource has no reported status yet.
func (f *facts) first() bool {
	return !slices.ContainsFunc(f.Objects, func(o *v1alpha1.ProtectedResource) bool { return len(o.Status.Conditions) > 0 })
}

// isReleasable reports whether nothing depends on the object any more: it requires no protection, and either another
// object of the same name holds the unit, or neither the host nor a member has an object of it.
func isReleasable(f *facts, o *v1alpha1.ProtectedResource, done *outcome, r *statuscache.Report) bool {
	if o.Spec.RequiresProtection() || !controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerProtectedResource) {
		return false
	}
	if !f.released() {
		return o.DeletionTimestamp != nil
	}
	return done.Problem == nil && len(done.Existing) == 0 && len(r.Clusters) == 0
}

// writeStatus writes the status if it differs, and returns the resulting object.
func (r *Reconciler) writeStatus(ctx context.Context, f *facts, o *v1alpha1.ProtectedResource,
	report *statuscache.Report) (*v1alpha1.ProtectedResource, error) {
	next := o.DeepCopy()
	next.Status = status(f, o, report)
	if equality.Semantic.DeepEqual(o.Status, next.Status) {
		return o, nil
	}
	err := r.Client.Status().Update(ctx, next)
	switch {
	case apierrors.IsConflict(err):
		return o, errConflict
	case client.IgnoreNotFound(err) != nil:
		return o, fmt.Errorf("write the status of ProtectedResource %s: %w", o.Name, err)
	}
	if err == nil {
		r.Cache.StoreResource(next)
	}
	return next, nil
}

// sizeOfRest bounds the JSON of a status without conditions and members.
const sizeOfRest = 700

// status computes the whole status of one object. It is pure.
func status(f *facts, o *v1alpha1.ProtectedResource, report *statuscache.Report) v1alpha1.ProtectedResourceStatus {
	s := v1alpha1.ProtectedResourceStatus{
		ObservedGeneration: o.Generation,
		Revision:           report.Revision,
		EffectiveMode:      f.mode(""),
		Conditions:         conditions(f, o, report),
	}
	if len(report.Clusters) > 0 {
		s.Members = new(v1alpha1.CountMembers(report.Clusters))
	}
	for _, sids := range report.SIDs {
		s.Statements += int32(min(len(sids), 1<<20))
	}
	s.Nodes, s.Rollout = report.Nodes, o.Status.Rollout
	rest := sizeOfNodes(s.Nodes) + sizeOfRollout(s.Rollout) + sizeOfRest
	s.Clusters, s.Groups = statusfields.ListMembers(report.Clusters, statusfields.SizeOfConditions(s.Conditions)+rest)
	return s
}

func conditions(f *facts, o *v1alpha1.ProtectedResource, report *statuscache.Report) []metav1.Condition {
	reports := []statuscache.Report{*report}
	return statusfields.SetConditions(
		o.Status.Conditions,
		o.Generation,
		metav1.NewTime(f.Now),
		accepted(o, f.View.ProblemsOf("ProtectedResource", o.Name)),
		compiled(report),
		statusfields.Propagated(reports, nothing),
		statusfields.Realized(reports, nothing),
	)
}
