package protectedresource

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/waves"
)

// rolloutCheckInterval is how often a rollout in progress is evaluated, if no event triggers it earlier. It bounds how late an unhealthy
// member halts the rollout.
const rolloutCheckInterval = time.Minute

// nextRollout computes the status that the waves of an object have now, and what changed. known is false if that cannot be decided,
// because the class or its placement is not known; then the present status stays. It is a pure function of the facts.
func (f *facts) nextRollout(o *v1alpha1.ProtectedResource) (next *v1alpha1.RolloutStatus, changes []waves.Change, known bool) {
	class, found := f.View.ResourceClassOf(f.Resource)
	wanted := o.Spec.Enforces()
	if !found || !f.Placed && !wanted.Empty() {
		return nil, nil, false
	}
	in := waves.Input{
		Now:            f.Now,
		Wanted:         wanted,
		TemporaryAudit: o.Spec.TemporaryAudit != nil && f.Now.Before(o.Spec.TemporaryAudit.Until.Time),
		Status:         o.Status.Rollout,
	}
	if r := class.Spec.Rollout; r != nil {
		in.Waves = r.Waves
	}
	if len(in.Waves) == 0 && in.Status == nil {
		return nil, nil, true
	}
	in.Instruction, _ = waves.InstructionOf(o) // an instruction that cannot be read is none
	closed := map[string]bool{}
	for _, kind := range kinds {
		for c := range f.membersClosedBy(kind) {
			closed[c] = true
		}
	}
	last := lastStates(f.LastReport.Clusters) // a stored status may be older than a failure
	for _, name := range f.Placement {
		m := waves.Member{Name: name, Closed: closed[name] || f.mayBeClosed(name), Last: last[name]}
		if m.Last.State == v1alpha1.MemberRealized && f.deviates(name) {
			m.Last = v1alpha1.ClusterState{}
		}
		if c := f.cluster(name); c != nil {
			m.Labels = c.Labels
		}
		in.Members = append(in.Members, m)
		delete(closed, name)
	}
	in.ClosedElsewhere = len(closed) > 0
	next, changes = waves.Next(in)
	return next, changes, true
}

// mayBeClosed reports whether a member may be closed by something else than what the host records, such as after the host was restored
// from a backup: the member was not read, or has another object of the unit than the host records.
func (f *facts) mayBeClosed(cluster string) bool {
	if !f.Observed.of(cluster, objectKeys(f.Resource)[0]).Reachable {
		return true
	}
	for key, members := range f.Observed {
		record := f.placedObject(cluster, key)
		switch seen := members[cluster]; {
		case seen.Object == nil:
			if record != nil && !seen.Reachable {
				return true
			}
		case record == nil || record.RevisionIn(cluster) != seen.Object.Revision:
			return true
		}
	}
	return false
}

// deviates reports whether a member does not have what the host records, may not get it, or does not enforce it, as of now. A report that it
// is Realized is older then.
func (f *facts) deviates(cluster string) bool {
	if f.suspended(cluster) || !f.Observed.of(cluster, objectKeys(f.Resource)[0]).Reachable {
		return true
	}
	if f.Wanted && f.mode(cluster) == v1alpha1.ModeEnforce {
		if state, _ := f.enforcementState(cluster); state != v1alpha1.MemberRealized {
			return true
		}
	}
	for _, e := range f.Existing {
		if !slices.Contains(e.Placement, cluster) {
			continue
		}
		if seen := f.Observed.of(cluster, e.Key()).Object; seen == nil || seen.Revision != e.RevisionIn(cluster) || seen.Invalid != "" {
			return true
		}
	}
	return false
}

// placedObject returns the Federated object that places the object with a key in a member, or nil.
func (f *facts) placedObject(cluster, key string) *federation.Object {
	for _, e := range f.Existing {
		if e.Key() == key && slices.Contains(e.Placement, cluster) {
			return e
		}
	}
	return nil
}

// storeRollout stores the progress of waves before anything is written that depends on it. changed reports whether Enforce counts in
// other members than the facts were collected with, so that they must be collected again. While the status cannot be stored, the
// present one stays in force, in which no further wave has begun. Without one, everything counts as Enforce, so nothing may be written if
// the first status says otherwise; then safe is false.
func (r *Reconciler) storeRollout(ctx context.Context, f *facts) (changed, safe bool, err error) {
	safe = true
	var errs []error
	for i, o := range f.Objects {
		next, changes, known := f.nextRollout(o)
		if !known || o.DeletionTimestamp != nil || equality.Semantic.DeepEqual(next, o.Status.Rollout) {
			continue
		}
		out := o.DeepCopy()
		out.Status.Rollout = next
		sameModes := o.Enforced().Equal(out.Enforced())
		switch err := r.Client.Status().Update(ctx, out); {
		case apierrors.IsNotFound(err): // its deletion triggers a reconcile
			continue
		case err != nil:
			safe = safe && (o.Status.Rollout != nil || sameModes)
			if apierrors.IsConflict(err) {
				err = errConflict
			}
			errs = append(errs, fmt.Errorf("write the rollout of ProtectedResource %s: %w", o.Name, err))
			continue
		}
		r.Cache.StoreResource(out)
		f.Objects[i] = out
		changed = changed || !sameModes
		r.announceRollout(ctx, out, changes)
	}
	return changed, safe, errors.Join(errs...)
}

// announceRollout records what happened to a rollout in the log, the metrics and Events.
func (r *Reconciler) announceRollout(ctx context.Context, o *v1alpha1.ProtectedResource, changes []waves.Change) {
	if len(changes) == 0 {
		return // the status may have no rollout
	}
	p := o.Status.Rollout.Progress
	for _, c := range changes {
		r.Metrics.RecordRolloutChange(string(c))
		eventType, note := corev1.EventTypeNormal, cmp.Or(waves.Describe(p), "every wave enforces")
		if c == waves.Halted && p != nil && p.Halt != nil {
			eventType = corev1.EventTypeWarning
		}
		if c == waves.Ignored {
			eventType, note = corev1.EventTypeWarning, waves.DescribeIgnored(o, o.Status.Rollout.InstructionAt, r.Clock.Now())
		}
		log.FromContext(ctx).Info("The rollout of a resource changed", "change", string(c), "protectedresource", o.Name, "note", note)
		r.event(o, eventType, waves.EventPrefix+string(c), note)
	}
}

// rolloutState returns the state of the rollouts of a resource for metrics: "halted", "progressing", or "" if none is in progress.
func (f *facts) rolloutState() string {
	state := ""
	for _, o := range f.Objects {
		switch s := o.Status.Rollout; {
		case s == nil || s.Progress == nil:
		case s.Progress.Halt != nil:
			return "halted"
		default:
			state = "progressing"
		}
	}
	return state
}

// sizeOfRollout returns the size of the JSON of a status's rollout.
func sizeOfRollout(s *v1alpha1.RolloutStatus) int {
	if s == nil {
		return 0
	}
	text, err := json.Marshal(s)
	if err != nil {
		return 0 // numbers, times and names are always JSON
	}
	return len(`"rollout":,`) + len(text)
}

// rolloutDelay returns when a rollout has to be evaluated again after a report, or 0 if none is in progress.
func (f *facts) rolloutDelay(report *statuscache.Report) time.Duration {
	var least time.Duration
	after := *f
	after.LastReport = *report
	class, found := f.View.ResourceClassOf(f.Resource)
	for _, o := range f.Objects {
		if !found || o.DeletionTimestamp != nil {
			continue
		}
		next, _, known := after.nextRollout(o)
		if !known || next == nil && o.Status.Rollout == nil {
			continue
		}
		var delay time.Duration
		switch {
		case !equality.Semantic.DeepEqual(next, o.Status.Rollout):
			delay = conflictRequeueDelay
		case next.Progress == nil:
			continue
		default:
			delay = rolloutCheckInterval
			if r := class.Spec.Rollout; r != nil {
				if due := waves.Due(next, r.Waves, f.Now); due > 0 {
					delay = min(delay, due)
				}
			}
		}
		if least == 0 || delay < least {
			least = delay
		}
	}
	return least
}
