package externalgroup

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/internal/federation"
)

// step is the step of a reconcile at which it ended, which determines what triggers the next one.
type step string

const (
	// stepPlanned: the plan could not be made, or not be carried out in full.
	stepPlanned step = "planned"
	// stepQueued: KubeFed is at its limit. The write queue triggers the next reconcile.
	stepQueued step = "queued"
	// stepHandover: the subject keeps addresses until their next subject has them. No event triggers the next reconcile.
	stepHandover step = "handover"
	// stepApplied: the plan was carried out.
	stepApplied step = "applied"
)

// outcome is the result of a reconcile.
type outcome struct {
	Step step
	// Err is the reason why the plan could not be made or carried out.
	Err error
}

// complete reports whether the subject has what was requested for it.
func (o *outcome) complete() bool { return o.Step == stepApplied }

// result returns when the next reconcile has to happen, if no event triggers it earlier.
func (o *outcome) result() (reconcile.Result, error) {
	switch {
	case o.Step == stepHandover, errors.Is(o.Err, federation.ErrStale):
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	default:
		return reconcile.Result{}, o.Err
	}
}
