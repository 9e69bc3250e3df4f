package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/backoff"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/tracing"
)

// Written identifies the object that contains a change in the host cluster.
type Written struct {
	Generation int64  // of the object that contains it
	UID        string // of that object
	Policy     string // the name of the policy; the requested one if empty
}

// Check is called between reading an object and writing it. present reports whether the object has already what would be written, as after a
// crash between the write and its record. An error stops the write and is returned unchanged.
type Check func(ctx context.Context, present bool) error

// PolicyWriter changes the policies that contain the grants on a resource. It reads a policy, calls the check, and writes
// the policy with the resource version that it read; after a conflict it starts again. All methods are idempotent. A
// resource has one policy, and further ones (policy.PolicyShard) when that is full. The policy argument is the name of the
// first one, or of the one that is known to contain the statement.
type PolicyWriter interface {
	// Put writes the statements to one of the policies. It creates the policy if necessary.
	Put(ctx context.Context, policy, resource string, statements []v1alpha1.Statement, check Check) (Written, error)
	// Replace writes a statement in place of the one with its sid, if current reports true for that one. It never adds a
	// statement: if there is none to replace, it returns the zero Written.
	Replace(ctx context.Context, policy, resource string, statement v1alpha1.Statement, current func(v1alpha1.Statement) bool, check Check) (Written, error)
	// Drop removes the statements with the sids from all of the policies. A Put that read a policy before cannot succeed
	// afterwards.
	Drop(ctx context.Context, policy, resource string, sids []string, check Check) (Written, error)
}

// RefusedError means that the host cluster refuses a write, so that a retry will not help unless something else changes. If
// it is Final, no retry will ever help.
type RefusedError struct {
	Message message.Message
	Final   bool
}

func (e *RefusedError) Error() string { return e.Message.Text }

// errSuperseded stops a write that the ticket no longer needs.
var errSuperseded = errors.New("the ticket no longer needs this write")

// exceedsApprovalError stops a write that would grant more than was approved.
type exceedsApprovalError struct{ now Shown }

func (*exceedsApprovalError) Error() string { return "it would grant more than was approved" }

// WorkerConfig is the configuration of a Worker. All fields except Wrote and DefaultMode are required.
type WorkerConfig struct {
	Name    string // unique among replicas and workers
	Service *Service
	Outbox  Outbox
	Writer  PolicyWriter
	Objects ObjectWriter
	// DefaultMode returns the mode in which to onboard a resource because the statement with this sid is its first; empty if
	// it is not to be onboarded. If DefaultMode is nil, no resource is onboarded.
	DefaultMode func(resource, sid string) (v1alpha1.Mode, error)
	PolicyName  func(resource string) string
	Log         *slog.Logger
	Lease       time.Duration // longer than a write takes
	Poll        time.Duration // the interval of looking for jobs of other replicas, and for jobs that wait
	Wrote       func(policy string)
	// Finish ends Run, when it is closed, as soon as no job is due. If it is nil, Run ends only with its context.
	Finish <-chan struct{}
}

// Worker does the jobs of the outbox: it writes approved items to the host cluster and removes revoked ones.
type Worker struct {
	WorkerConfig
	trigger chan struct{}
	// step is called at the points where a crash matters most, so that tests can simulate crashes.
	step func(point string)
}

// NewWorker returns a worker. Call Requeue after each new job.
func NewWorker(c WorkerConfig) *Worker {
	if c.Wrote == nil {
		c.Wrote = func(string) {}
	}
	return &Worker{WorkerConfig: c, trigger: make(chan struct{}, 1), step: func(string) {}}
}

// Requeue lets the worker look for jobs at once.
func (w *Worker) Requeue() {
	select {
	case w.trigger <- struct{}{}:
	default:
	}
}

// Run does jobs until the context ends, or until Finish is closed and no job is due.
func (w *Worker) Run(ctx context.Context) {
	t := time.NewTicker(w.Poll)
	defer t.Stop()
	for finishing := false; ; {
		if err := w.Drain(ctx); err != nil && ctx.Err() == nil {
			w.Log.Error("the outbox could not be processed; retrying", "error", err)
		}
		if finishing {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-w.Finish:
			finishing = true // once more, for the jobs that were made meanwhile
		case <-w.trigger:
		case <-t.C:
		}
	}
}

// Drain does jobs until none is due.
func (w *Worker) Drain(ctx context.Context) error {
	for ctx.Err() == nil {
		j, err := w.Outbox.Lease(ctx, w.Name, w.Service.Now(), w.Lease)
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
	begin := time.Now()
	t, err := w.Service.Store.Get(ctx, j.Ticket)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		return w.failed(ctx, j, err)
	}
	ctx, span := w.Service.traceJob(ctx, t, j, begin)
	defer span.End()
	end := t.Items[j.Item].End() // of the statement that is written
	name, written, err := w.write(ctx, j, t)
	traceOutcome(span, err)
	if err == nil || needsNoRetry(err) {
		w.step("written")
		t, err := w.Outbox.Finish(ctx, j, func(t *Ticket) error { w.applyOutcome(t, j, name, written, end, err); return nil })
		if err != nil {
			tracing.Fail(span, "the outcome was not stored")
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

// needsNoRetry reports whether a job is done in spite of its error, because its item no longer needs it.
func needsNoRetry(err error) bool {
	var exceeds *exceedsApprovalError
	var stricter *stricterError
	var refused *RefusedError
	_, stopped := refusalOfHolderUpdate(err)
	return stopped || errors.Is(err, errSuperseded) || errors.Is(err, errTargetRevoked) || errors.As(err, &exceeds) || errors.As(err, &stricter) ||
		errors.As(err, &refused) && refused.Final
}

// applyOutcome applies the result of a finished job to its item. The statement that was written has the given end.
func (w *Worker) applyOutcome(t *Ticket, j *Job, name string, written Written, end time.Time, why error) {
	now := w.Service.Now()
	var exceeds *exceedsApprovalError
	var stricter *stricterError
	var refused *RefusedError
	stopped, isStopped := refusalOfHolderUpdate(why)
	switch {
	case errors.As(why, &exceeds):
		t.Void(j.Item, exceeds.now, now)
	case errors.As(why, &stricter):
		if it := t.Items[j.Item]; it.WrittenGeneration == 0 && it.State.MayBeOnHost() {
			t.rechain(j.Item, stricter.now, stricter.missing, now)
		}
	case errors.As(why, &refused) && j.Kind == JobShorten: // the grant ends at the earlier time all the same; see Expire
	case errors.As(why, &refused):
		t.Fail(j.Item, message.TicketHostRefusedChange(refused.Message), now)
	case errors.Is(why, errTargetRevoked) && t.Items[j.Item].State.MayBeOnHost():
		t.revoke(j.Item, Event{Message: message.TicketExtendedGrantRevoked()}, now)
	case isStopped && t.Items[j.Item].State.MayBeOnHost():
		t.revoke(j.Item, Event{Message: stopped}, now)
	case why != nil:
	case j.Kind == JobShorten:
		t.ShortenWritten(j.Item, written, end, now)
	case j.Kind == JobApply:
		t.Written(j.Item, name, written, now)
		t.writtenUntil(j.Item, end)
	default:
		t.Removed(j.Item, name, written, now)
	}
}

// write writes the statements or the object of a job's item to the host cluster, or removes them, and returns the name of the written
// object.
func (w *Worker) write(ctx context.Context, j *Job, t *Ticket) (name string, written Written, err error) {
	check := func(ctx context.Context, present bool) error { return w.check(ctx, j, present) }
	it := t.Items[j.Item]
	switch {
	case !j.wanted(t):
		return "", Written{}, errSuperseded
	case t.Kind == KindRevoke:
		if err := check(ctx, false); err != nil {
			return "", Written{}, err
		}
		return "", Written{Generation: 1}, w.Service.revokeTarget(ctx, t, j.Item)
	case t.Kind == KindPackage:
		written, err = w.publish(ctx, t, j.Item, check)
		return j.Key, written, err
	case it.Change != nil:
		ctx, span := w.Service.traceWrite(ctx, j.Key, it)
		written, err = w.Objects.Apply(ctx, *it.Change, check)
		endWrite(span, written, err)
		return j.Key, written, err
	case j.Kind == JobShorten && it.Policy == "":
		return "", Written{}, check(ctx, false) // it is written with its earlier end
	}
	if name = w.PolicyName(it.ResourceName); it.Scope != nil {
		name = policy.StatementsPolicy
	}
	ctx, span := w.Service.traceWrite(ctx, name, it)
	defer func() { endWrite(span, written, err) }()
	switch j.Kind {
	case JobShorten:
		// A statement that others removed or changed since is not written again, because that would give back access.
		written, err = w.Writer.Replace(ctx, it.Policy, it.ResourceName, Statement(it), it.isApproved, check)
	case JobApply:
		written, err = w.Writer.Put(ctx, name, it.ResourceName, []v1alpha1.Statement{Statement(it)}, check)
		if err == nil && it.Scope == nil {
			err = w.protect(ctx, it, check)
		}
	default:
		if err = w.Service.revokeLateExtensions(ctx, t, j.Item); err != nil {
			return name, Written{}, err
		}
		written, err = w.Writer.Drop(ctx, cmp.Or(it.Policy, name), it.ResourceName, []string{it.SID}, check)
	}
	return cmp.Or(written.Policy, name), written, err
}

// protect onboards the resource in the default mode of its class after its first statement is written. It is a part of the
// job, so that it is repeated after a crash. It happens at no other time, so that a resource that an administrator offboards
// is not onboarded again.
func (w *Worker) protect(ctx context.Context, it Item, check Check) error {
	if w.DefaultMode == nil {
		return nil
	}
	mode, err := w.DefaultMode(it.ResourceName, it.SID)
	if err != nil || mode == "" {
		return err
	}
	written := func(ctx context.Context, _ bool) error { return check(ctx, true) } // the statement is
	_, err = w.Objects.Apply(ctx, Change{Kind: ObjectProtectedResource, Name: w.PolicyName(it.ResourceName), Verb: VerbCreate, ToMode: mode,
		After: canonical(v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(it.ResourceName), Mode: mode})}, written)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		// There is a ProtectedResource already, or the host cluster refuses it. The grant stays; its ticket shows whether the resource is protected.
		w.Log.Warn("a resource is not onboarded by its class's default mode", "resource", it.ResourceName, "mode", mode, "reason", refused.Message.Text)
		return nil
	}
	return err
}

// check reads the ticket again before each write, because it may have been revoked meanwhile. It checks the lease, because a
// worker that was suspended must not write after the next one, and compares the write with what was approved. In every
// attempt but the first it also checks whether the ticket may still be applied. present means that the
// host cluster has the change already, which was checked when it was written: the job has to be recorded then, and not to be approved again.
func (w *Worker) check(ctx context.Context, j *Job, present bool) error {
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
	if j.Kind == JobApply && it.WrittenGeneration == 0 && !present {
		if err := w.checkApproval(ctx, j, t); err != nil {
			return err
		}
	}
	if j.Kind == JobApply && t.Kind.Access() {
		if err := w.Service.checkTargetNotRevoked(ctx, it); err != nil {
			return err
		}
	}
	w.step("checked")
	return nil
}

// checkApproval compares the first write of an item with what was approved.
func (w *Worker) checkApproval(ctx context.Context, j *Job, t *Ticket) error {
	it := t.Items[j.Item]
	if t.Kind == KindWorkload {
		if err := w.Service.registrable(t.Requester, it); err != nil {
			return err
		}
	}
	if err := w.Service.checkOrganization(t, &it); err != nil {
		if aboutItem(err) {
			return &RefusedError{Message: message.Of(err)}
		}
		return err
	}
	if t.BreakGlass {
		return nil
	}
	if err := w.Service.checkHolderUpdate(ctx, &it); err != nil {
		return err
	}
	now, err := w.Service.shown(t.itemKind(j.Item), it)
	if err != nil {
		return err
	}
	if len(it.Shown.Grown(now)) > 0 {
		return &exceedsApprovalError{now}
	}
	// A revocation takes access away, whoever may ask for it now, except of a deny.
	if (t.Kind != KindRevoke || it.Scope.Denies()) && (it.Scope != nil || j.Attempts > 1 || it.State == StateFailed) {
		return w.Service.recheckBeforeRetry(ctx, t, j.Item)
	}
	return nil
}

// wanted reports whether the item still needs the job.
func (j *Job) wanted(t *Ticket) bool {
	switch j.Kind {
	case JobApply:
		return t.Items[j.Item].State.MayBeOnHost()
	case JobShorten:
		return t.Items[j.Item].State.MayBeOnHost() && !t.Items[j.Item].ShortenTo.IsZero()
	}
	return t.Items[j.Item].State == StateRevoking
}

// failed postpones the job: refused jobs are parked and retried rarely, others are retried soon and keep their order.
func (w *Worker) failed(ctx context.Context, j *Job, cause error) error {
	if errors.Is(cause, ErrLeaseLost) || CodeOf(cause) == CodeStoreUnavailable || CodeOf(cause) == CodeOutcomeUnknown {
		return cause
	}
	now := w.Service.Now()
	var refused *RefusedError
	permanent := errors.As(cause, &refused)
	until := now.Add(backoff.Delay(j.Attempts, 200*time.Millisecond, LongestRetry))
	if permanent {
		until = now.Add(backoff.Delay(j.Attempts, 10*time.Second, LongestParked))
	}
	w.Log.Warn("a job failed", "ticket", FormatID(j.Ticket), "kind", j.Kind, "attempt", j.Attempts, "refused", permanent, "error", cause)
	t, err := w.Outbox.Postpone(ctx, j, until, permanent, func(t *Ticket) error {
		switch {
		case j.Kind == JobShorten: // the grant is in force meanwhile, and ends at the earlier time all the same
		case permanent && j.Kind == JobApply:
			t.Fail(j.Item, hostRefused(t.Kind, refused.Message), now)
		case permanent:
			t.SetWaiting(j.Item, message.TicketHostRefusedRemoval(refused.Message), now)
		default:
			t.SetWaiting(j.Item, message.TicketHostUnreachable(), now)
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.Service.OnChange(t)
	return nil
}

func hostRefused(k Kind, reason message.Message) message.Message {
	if k.Access() {
		return message.TicketHostRefusedStatement(reason)
	}
	return message.TicketHostRefusedChange(reason)
}
