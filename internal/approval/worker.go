package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Written is where the host cluster has a change.
type Written struct {
	Generation int64  // of the policy that holds it
	UID        string // of that policy
	Policy     string // the name of that policy; empty: the one that was asked for
}

// Check is called between reading the policy and writing it; an error stops the write and is returned as it is.
type Check func(context.Context) error

// PolicyWriter changes the policies that hold the grants on a resource by reading one, calling the check, and writing it back with
// the resource version that it read; a conflict starts over. Both methods are idempotent. A resource has one policy, and further ones
// (policy.PolicyShard) when that is full; the name is that of the first, or of the one that is known to hold the statement.
type PolicyWriter interface {
	// Put makes one of the policies hold the statements; it creates the policy.
	Put(ctx context.Context, policy, resource string, statements []v1alpha1.Statement, check Check) (Written, error)
	// Drop makes no policy hold the sids. It fences: a Put that read a policy before can not succeed after.
	Drop(ctx context.Context, policy, resource string, sids []string, check Check) (Written, error)
}

// RefusedError is a writer's error that trying again alone will not mend. A final one will never be mended.
type RefusedError struct {
	Message string
	Final   bool
}

func (e *RefusedError) Error() string { return e.Message }

// errSuperseded stops a write whose reason has gone.
var errSuperseded = errors.New("the ticket no longer wants this")

// grewError stops a write that would bring more than was approved.
type grewError struct{ now Shown }

func (*grewError) Error() string { return "it would bring more than was approved" }

// WorkerConfig of a Worker; every field but Wrote and DefaultMode is required.
type WorkerConfig struct {
	Name    string // unique among replicas and workers
	Service *Service
	Writer  PolicyWriter
	Objects ObjectWriter
	// DefaultMode is the mode in which a resource is to be onboarded because the statement of this sid is its first; empty: it is not.
	// nil: no resource is.
	DefaultMode func(resource, sid string) (v1alpha1.Mode, error)
	PolicyName  func(resource string) string
	Log         *slog.Logger
	Lease       time.Duration // longer than a write takes
	Poll        time.Duration // for jobs of other replicas, and for jobs that wait
	Wrote       func(policy string)
	// Finish, when it is closed, makes Run return as soon as no job is due; nil: Run returns only when its context ends.
	Finish <-chan struct{}
}

// Worker does the outbox's jobs: it brings approved items into the host cluster and revoked ones out of it.
type Worker struct {
	WorkerConfig
	wake chan struct{}
	// step is called at the points where a crash would hurt most, so that tests can crash there.
	step func(point string)
}

// NewWorker makes a worker; Wake it after each job.
func NewWorker(c WorkerConfig) *Worker {
	if c.Wrote == nil {
		c.Wrote = func(string) {}
	}
	return &Worker{WorkerConfig: c, wake: make(chan struct{}, 1), step: func(string) {}}
}

// Wake makes the worker look for jobs now.
func (w *Worker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run works until the context ends, or until Finish is closed and no job is due.
func (w *Worker) Run(ctx context.Context) {
	t := time.NewTicker(w.Poll)
	defer t.Stop()
	for finishing := false; ; {
		if err := w.Drain(ctx); err != nil && ctx.Err() == nil {
			w.Log.Error("the outbox could not be worked on; it is tried again", "error", err)
		}
		if finishing {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-w.Finish:
			finishing = true // once more, for the jobs that were made meanwhile
		case <-w.wake:
		case <-t.C:
		}
	}
}

// Drain does jobs until none is due.
func (w *Worker) Drain(ctx context.Context) error {
	for ctx.Err() == nil {
		j, err := w.Service.Store.Lease(ctx, w.Name, w.Service.Now(), w.Lease)
		if errors.Is(err, ErrNoJob) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("lease a job: %w", err)
		}
		if err := w.do(ctx, j); err != nil && !errors.Is(err, ErrLeaseLost) {
			return fmt.Errorf("job %d (%s %s): %w", j.ID, j.Kind, FormatID(j.Ticket), err)
		}
	}
	return ctx.Err()
}

func (w *Worker) do(ctx context.Context, j *Job) error {
	w.step("leased")
	name, written, err := w.write(ctx, j)
	if err == nil || settled(err) {
		w.step("written")
		t, err := w.Service.Store.Finish(ctx, j, func(t *Ticket) error { w.settle(t, j, name, written, err); return nil })
		if err != nil {
			return err
		}
		w.Service.OnChange(t)
		w.Wrote(name)
		w.step("finished")
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	return w.failed(ctx, j, err)
}

// settled tells the errors after which a job is done because its item goes another way.
func settled(err error) bool {
	var grew *grewError
	var stricter *stricterError
	var refused *RefusedError
	return errors.Is(err, errSuperseded) || errors.Is(err, errTargetRevoked) || errors.As(err, &grew) || errors.As(err, &stricter) || errors.As(err, &refused) && refused.Final
}

// settle is what a job that is done does to its item.
func (w *Worker) settle(t *Ticket, j *Job, name string, written Written, why error) {
	now := w.Service.Now()
	var grew *grewError
	var stricter *stricterError
	var refused *RefusedError
	switch {
	case errors.As(why, &grew):
		t.Void(j.Item, grew.now, now)
	case errors.As(why, &stricter):
		if it := t.Items[j.Item]; it.WrittenGeneration == 0 && it.State.Grants() {
			t.rechain(j.Item, stricter.now, stricter.missing, now)
		}
	case errors.As(why, &refused):
		t.Fail(j.Item, "The host cluster refused the change: "+refused.Message, now)
	case errors.Is(why, errTargetRevoked) && t.Items[j.Item].State.Grants():
		t.revoke(j.Item, "", targetRevoked, now)
	case why != nil:
	case j.Kind == JobApply:
		t.Written(j.Item, name, written, now)
	default:
		t.Removed(j.Item, name, written, now)
	}
}

// write does a job's work, and names the object that holds it.
func (w *Worker) write(ctx context.Context, j *Job) (name string, written Written, err error) {
	t, err := w.Service.Store.Get(ctx, j.Ticket)
	if err != nil {
		return "", Written{}, err
	}
	check := func(ctx context.Context) error { return w.check(ctx, j) }
	it := t.Items[j.Item]
	switch {
	case !j.wanted(t):
		return "", Written{}, errSuperseded
	case t.Kind == KindRevoke:
		if err := check(ctx); err != nil {
			return "", Written{}, err
		}
		return "", Written{Generation: 1}, w.Service.revokeTarget(ctx, t, j.Item)
	case it.Change != nil:
		written, err = w.Objects.Apply(ctx, *it.Change, check)
		return j.Key, written, err
	}
	name = w.PolicyName(it.ResourceName)
	if j.Kind == JobApply {
		written, err = w.Writer.Put(ctx, name, it.ResourceName, []v1alpha1.Statement{Statement(it)}, check)
		if err == nil {
			err = w.protect(ctx, it, check)
		}
	} else {
		written, err = w.Writer.Drop(ctx, cmp.Or(it.Policy, name), it.ResourceName, []string{it.SID}, check)
	}
	return cmp.Or(written.Policy, name), written, err
}

// protect onboards the resource in the default mode of its class after its first statement is written. It is a part of the job, so
// that a crash before it is made good when the job is done again. It happens at no other time: a resource that an administrator
// offboards does not come back by itself.
func (w *Worker) protect(ctx context.Context, it Item, check Check) error {
	if w.DefaultMode == nil {
		return nil
	}
	mode, err := w.DefaultMode(it.ResourceName, it.SID)
	if err != nil || mode == "" {
		return err
	}
	_, err = w.Objects.Apply(ctx, Change{Kind: ObjectProtectedResource, Name: w.PolicyName(it.ResourceName), Verb: VerbCreate, ToMode: mode,
		After: canonical(v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(it.ResourceName), Mode: mode})}, check)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		// There is one already, or the host cluster refuses it. The grant stands; its ticket says whether the resource is protected.
		w.Log.Warn("a resource is not onboarded by its class's default mode", "resource", it.ResourceName, "mode", mode, "reason", refused.Message)
		return nil
	}
	return err
}

// check reads the ticket again before each write, because a person may have revoked it meanwhile; looks at the lease,
// because a worker that slept longer than it must not write after its successor; and compares what would be written with
// what was approved. After a refusal it asks again whether the ticket may still be applied.
func (w *Worker) check(ctx context.Context, j *Job) error {
	t, err := w.Service.Store.Get(ctx, j.Ticket)
	if err != nil {
		return err
	}
	if !j.wanted(t) {
		return errSuperseded
	}
	if w.Service.Now().After(j.LeaseUntil) {
		return ErrLeaseLost
	}
	it := t.Items[j.Item]
	if j.Kind == JobApply && it.WrittenGeneration == 0 && !t.BreakGlass {
		now, err := w.Service.shown(t.itemKind(j.Item), it)
		if err != nil {
			return err
		}
		if len(it.Shown.Grown(now)) > 0 {
			return &grewError{now}
		}
	}
	if j.Kind == JobApply && it.State == StateFailed && it.WrittenGeneration == 0 && !t.BreakGlass {
		if err := w.Service.stillApplies(ctx, t, j.Item); err != nil {
			return err
		}
	}
	if j.Kind == JobApply && t.Kind.Access() {
		if err := w.Service.targetStands(ctx, it); err != nil {
			return err
		}
	}
	w.step("checked")
	return nil
}

// wanted tells whether a job still agrees with its item.
func (j *Job) wanted(t *Ticket) bool {
	if j.Kind == JobApply {
		return t.Items[j.Item].State.Grants()
	}
	return t.Items[j.Item].State == StateRevoking
}

// failed gives the job back: refused ones step aside and are tried rarely, others are tried soon and keep the order.
func (w *Worker) failed(ctx context.Context, j *Job, cause error) error {
	if errors.Is(cause, ErrLeaseLost) || CodeOf(cause) == CodeStoreUnavailable || CodeOf(cause) == CodeOutcomeUnknown {
		return cause
	}
	now := w.Service.Now()
	var refused *RefusedError
	permanent := errors.As(cause, &refused)
	until := now.Add(backoff(j.Attempts, 200*time.Millisecond, LongestRetry))
	if permanent {
		until = now.Add(backoff(j.Attempts, 10*time.Second, LongestParked))
	}
	w.Log.Warn("a job could not be done", "ticket", FormatID(j.Ticket), "kind", j.Kind, "attempt", j.Attempts, "refused", permanent, "error", cause)
	t, err := w.Service.Store.Postpone(ctx, j, until, permanent, func(t *Ticket) error {
		switch {
		case permanent && j.Kind == JobApply:
			t.Fail(j.Item, refusedWhat(t.Kind)+refused.Message, now)
		case permanent:
			t.Hold(j.Item, "The host cluster refused to remove the statement; it is tried again: "+refused.Message, now)
		default:
			t.Hold(j.Item, "The host cluster cannot be reached; it is tried again. Nothing is lost.", now)
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.Service.OnChange(t)
	return nil
}

func refusedWhat(k Kind) string {
	if k.Access() {
		return "The host cluster refused the statement: "
	}
	return "The host cluster refused the change: "
}

func backoff(attempts int, first, most time.Duration) time.Duration {
	d := first
	for range min(attempts-1, 20) {
		if d *= 2; d >= most {
			return most
		}
	}
	return d
}
