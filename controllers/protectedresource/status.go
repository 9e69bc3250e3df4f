package protectedresource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/condition"
	"github.com/acp-io/acp/controllers/memberlist"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statuscache"
)

// report is the only place that tells: the board, the policies that the unit concerns, the status, the events, and, at
// the very end, the finalizer. It returns how long the status waits for more to say; 0: it does not.
func (r *Reconciler) report(ctx context.Context, f *facts, done outcome) (deferred time.Duration, err error) {
	report := assess(f, &done)
	before, had := r.Reports.Get(f.Resource)
	if len(f.Objects) == 0 && !f.View.Names(f.Resource) && len(done.Existing) == 0 && len(report.Clusters) == 0 {
		r.Reports.Drop(f.Resource)
	} else {
		r.Reports.Put(report)
	}
	r.Policies.Add(requestqueue.Observed, slices.Concat(report.Policies(), before.Policies(), r.Reports.Awaited(f.Resource))...)
	r.tell(f, before, had, &report)
	r.measure(f, &report)
	if done.Plan.Kept && f.orphaned() && len(done.Existing) > 0 && (!had || before.Wanted) {
		log.FromContext(ctx).Info("A ProtectedResource was removed by force; its resource stays closed: create it again, set it to Observe, and delete it then",
			"resource", f.Resource, "federated", done.Existing[0].Meta.Name)
	}
	var errs []error
	if done.Wrote && f.first() {
		r.deferredStatus.InGrace(f.Resource, false, time.Now(), 0) // it waited for its turn; now it takes what a push takes
	}
	deferred = underWay(f, &report)
	if !r.deferredStatus.InGrace(f.Resource, deferred > 0, time.Now(), deferred) {
		deferred = 0
	}
	for _, o := range f.Objects {
		if deferred > 0 {
			continue
		}
		o, err := r.writeStatus(ctx, f, o, &report)
		errs = append(errs, err)
		if err == nil && free(f, o, &done, &report) {
			next := o.DeepCopy()
			controllerutil.RemoveFinalizer(next, v1alpha1.FinalizerProtectedResource)
			errs = append(errs, r.patch(ctx, o, next))
		}
	}
	return deferred, errors.Join(errs...)
}

// underWay tells how long the objects of the resource have nothing more to say than that; 0: one has. What is to be deleted always
// has.
func underWay(f *facts, report *statuscache.Report) time.Duration {
	var least time.Duration
	for i, o := range f.Objects {
		if o.DeletionTimestamp != nil {
			return 0
		}
		if d := condition.UnderWay(o.Status.Conditions, conditions(f, o, report), report.Troubled()); i == 0 || d < least {
			least = d
		}
	}
	return least
}

// first tells whether nothing was told of the resource yet.
func (f *facts) first() bool {
	return !slices.ContainsFunc(f.Objects, func(o *v1alpha1.ProtectedResource) bool { return len(o.Status.Conditions) > 0 })
}

// free tells that an object has nothing left that depends on it: it asks for nothing, and either another object of the
// same name holds the unit, or no host object and no member has anything of it.
func free(f *facts, o *v1alpha1.ProtectedResource, done *outcome, r *statuscache.Report) bool {
	if asks(o) || !controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerProtectedResource) {
		return false
	}
	if !f.released() {
		return o.DeletionTimestamp != nil
	}
	return done.Problem == nil && len(done.Existing) == 0 && len(r.Clusters) == 0
}

// writeStatus writes the status if it differs, and returns the object as it is then.
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
		r.Cache.WroteResource(next)
	}
	return next, nil
}

// sizeOfRest bounds the JSON of what a status has besides conditions and members.
const sizeOfRest = 700

// status is the whole status of one object. It is pure.
func status(f *facts, o *v1alpha1.ProtectedResource, report *statuscache.Report) v1alpha1.ProtectedResourceStatus {
	s := v1alpha1.ProtectedResourceStatus{ObservedGeneration: o.Generation, Revision: report.Revision, EffectiveMode: f.mode(""), Conditions: conditions(f, o, report)}
	if len(report.Clusters) > 0 {
		s.Members = new(v1alpha1.CountMembers(report.Clusters))
	}
	for _, sids := range report.SIDs {
		s.Statements += int32(min(len(sids), 1<<20))
	}
	s.Clusters, s.Groups = memberlist.List(report.Clusters, memberlist.SizeOfConditions(s.Conditions)+sizeOfRest)
	return s
}

func conditions(f *facts, o *v1alpha1.ProtectedResource, report *statuscache.Report) []metav1.Condition {
	reports := []statuscache.Report{*report}
	return condition.Set(o.Status.Conditions, o.Generation, metav1.NewTime(f.Now), accepted(o, f.View.ProblemsOf("ProtectedResource", o.Name)), compiled(report),
		condition.Propagated(reports, nothing), condition.Realized(reports, nothing))
}
