package protectedresource

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
)

// step is the step of a reconcile at which it ended, which determines what triggers the next one.
type step string

const (
	// stepNotReady: the host's objects are not listed yet, so nothing was decided. The listing triggers the next
	// reconcile.
	stepNotReady step = "not ready"
	// stepUnread: the facts could not be collected, so nothing was decided.
	stepUnread step = "unread"
	// stepRollout: it was stored, or could not be stored, in which members Enforce counts, so that the facts must be collected again.
	stepRollout step = "rollout"
	// stepMissingGroup: the plan would refuse clients that it should allow, because a group does not exist yet.
	stepMissingGroup step = "missing group"
	// stepInFlight: KubeFed has not reported on the previous version of an object. No event triggers the next
	// reconcile.
	stepInFlight step = "in flight"
	// stepQueued: KubeFed is at its limit. The write queue triggers the next reconcile.
	stepQueued step = "queued"
	// stepApplied: the plan was carried out, or failed on the way.
	stepApplied step = "applied"
)

// outcome is the result of a reconcile.
type outcome struct {
	Step step
	// Facts contains the facts from which the plan was made; nil with stepNotReady and stepUnread.
	Facts *facts
	Plan  plan
	// Existing are the Federated objects after the plan.
	Existing []*federation.Object
	Problem  *statuscache.Problem
	// ObjectWrites are the writes of Federated objects that were made for this plan.
	ObjectWrites []objectWrite
	// MissingGroup is the group that must exist first, with stepMissingGroup.
	MissingGroup string
	// Err is the reason why the facts could not be collected, or the plan not be made or carried out in full.
	Err error
	// StatusDelay is how long the status write is deferred, and StatusErr the reason why it failed.
	StatusDelay time.Duration
	StatusErr   error
	// RolloutDelay is the time until a rollout in progress has to be evaluated again; 0 if there is none. RolloutErr is the reason why its
	// progress could not be stored.
	RolloutDelay time.Duration
	RolloutErr   error
	Times        reconcileTimes
}

// decided reports whether a plan was made, so that there is something to report.
func (o *outcome) decided() bool {
	return o.Step != stepNotReady && o.Step != stepUnread && o.Step != stepRollout
}

// deferred reports whether the plan was put off.
func (o *outcome) deferred() bool {
	return o.Step == stepMissingGroup || o.Step == stepInFlight || o.Step == stepQueued
}

// conflicted reports whether an object changed since it was read, so that the decision must be made again.
func (o *outcome) conflicted() bool {
	return errors.Is(o.Err, federation.ErrStale) || errors.Is(o.Err, errConflict)
}

// result returns when the next reconcile has to happen, if no event triggers it earlier.
func (o *outcome) result() (reconcile.Result, error) {
	switch {
	case o.Step == stepNotReady:
		return reconcile.Result{}, nil
	case o.conflicted():
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	case errors.Is(o.StatusErr, errConflict), errors.Is(o.RolloutErr, errConflict):
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, o.Err
	case o.Err != nil || o.StatusErr != nil || o.RolloutErr != nil:
		return reconcile.Result{}, errors.Join(o.Err, o.StatusErr, o.RolloutErr)
	case o.Step == stepRollout:
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	case o.Step == stepMissingGroup:
		return reconcile.Result{RequeueAfter: graceCheckInterval}, nil
	case o.Step == stepInFlight || o.Facts.firstGroups():
		// Changes of a group before the report existed that this unit refers to it triggered nothing.
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	case len(o.Facts.GatewayUsers) > 0:
		// No event about the object of another resource triggers this one.
		return reconcile.Result{RequeueAfter: gatewayCheckInterval, Priority: new(requestqueue.StatusUpdate)}, nil
	case o.StatusDelay > 0 && (o.RolloutDelay == 0 || o.StatusDelay < o.RolloutDelay):
		return reconcile.Result{RequeueAfter: o.StatusDelay, Priority: new(requestqueue.StatusUpdate)}, nil
	case o.RolloutDelay > 0:
		return reconcile.Result{RequeueAfter: o.RolloutDelay, Priority: new(requestqueue.Grant)}, nil
	}
	return reconcile.Result{}, nil
}
