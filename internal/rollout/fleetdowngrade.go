package rollout

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

const (
	// maxConcurrentWrites is the number of objects that are written concurrently.
	maxConcurrentWrites = 8
	// ledgerBatch is the number of ledger lines that are written in one transaction before the objects that they
	// concern.
	ledgerBatch = 200
	// maxListedFailures is the number of failures of a run that are listed; the others are counted.
	maxListedFailures = 100
)

// FleetDowngrader begins and ends fleet downgrades: the temporary audit of all resources in a scope, in every member, in an emergency. The
// portal and its API call it just a downgrade. The downgrade of one member is another procedure, which needs no portal: package
// federation/memberdowngrade. What is open is stored in the objects
// alone, so that all replicas, also after a restart, report the same; only the progress of a run is in the memory of a replica. The store has a
// lease of each run (FleetDowngradeLease), so that no replica opens anything after another one has reported the end.
type FleetDowngrader struct {
	*Service
	// Objects reads all ProtectedResources from the API server, with their names and specs. A cache does not suffice: the end of a downgrade
	// would not close what another replica has just opened.
	Objects func(ctx context.Context) ([]*v1alpha1.ProtectedResource, error)
	// ClassOf returns the class of a resource, or "" if no class covers it.
	ClassOf func(resource string) string
	// MaxWait is how long the caller waits for the whole run.
	MaxWait time.Duration
	// Running is the context of runs that continue after the call.
	Running context.Context

	mu  sync.Mutex
	run *fleetDowngradeRun
}

// Last returns the last run of this replica; false if there was none.
func (d *FleetDowngrader) Last() (FleetDowngradeRun, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil {
		return FleetDowngradeRun{}, false
	}
	return d.run.state(), true
}

// MayDowngradeFleet reports whether an actor may begin and end fleet downgrades.
func MayDowngradeFleet(a approval.Actor) bool { return a.Security && !a.Auditor }

// Begin opens every resource in a scope until an instant. Resources that are open for at least as long are not changed.
func (d *FleetDowngrader) Begin(ctx context.Context, a approval.Actor, scope FleetDowngradeScope, want TemporaryAuditRequest) (FleetDowngradeRun, error) {
	reason, err := d.authorize(a, want.Reason, message.AuditReasonNeeded())
	if err != nil {
		return FleetDowngradeRun{}, err
	}
	now := d.Now()
	until := want.Until.UTC().Truncate(time.Second) // in the resolution of the objects
	switch {
	case !until.After(now):
		return FleetDowngradeRun{}, invalid("until", message.AuditEndInPast())
	case until.Sub(now) > MaxTemporaryAudit:
		return FleetDowngradeRun{}, invalid("until", message.DowngradeTooLong())
	}
	audit := &v1alpha1.TemporaryAudit{Until: metav1.NewTime(until), Reason: reason, By: a.ID, Scope: scope.String()}
	enforced := 0
	objects, err := d.inScope(ctx, scope, func(spec v1alpha1.ProtectedResourceSpec) bool {
		if Enforces(spec) {
			enforced++
		}
		return opens(spec, audit)
	})
	if err != nil {
		return FleetDowngradeRun{}, err
	}
	if enforced == 0 {
		return FleetDowngradeRun{}, fail(approval.CodeConflict, message.DowngradeNothingEnforced())
	}
	run := FleetDowngradeRun{Scope: scope, Until: until, By: a.ID, StartedAt: now.UTC(), Total: len(objects)}
	r, fresh, err := d.claim(run)
	if err != nil {
		return FleetDowngradeRun{}, err
	}
	patience, cancel := context.WithTimeout(ctx, d.MaxWait)
	defer cancel()
	if fresh {
		if _, err := d.register(ctx, r, d.news(run, reason, objects)); err != nil {
			d.forget(r, err)
			return FleetDowngradeRun{}, err
		}
		d.started(r)
		still := func(spec v1alpha1.ProtectedResourceSpec) bool { return opens(spec, audit) }
		go d.work(d.Running, r, reason, audit, objects, still) //nolint:contextcheck // the run continues after the request
	}
	return r.wait(patience)
}

// opens reports whether a downgrade changes anything for a resource.
func opens(spec v1alpha1.ProtectedResourceSpec, audit *v1alpha1.TemporaryAudit) bool {
	return Enforces(spec) && (spec.TemporaryAudit == nil || spec.TemporaryAudit.Until.Before(&audit.Until))
}

// Resume ends the temporary audits that downgrades began in a scope, and not those that an owner began. It stops the downgrades in the scope that
// still run, on every replica, and reports no end while one of them may open anything.
func (d *FleetDowngrader) Resume(ctx context.Context, a approval.Actor, scope FleetDowngradeScope, reason string) (FleetDowngradeRun, error) {
	reason, err := d.authorize(a, reason, message.AuditEndReasonNeeded())
	if err != nil {
		return FleetDowngradeRun{}, err
	}
	last, ok := d.Last()
	done := ok && last.Resume && last.Scope == scope && last.FailedTotal == 0 && !last.FinishedAt.IsZero()
	r, fresh, err := d.claim(FleetDowngradeRun{Scope: scope, Resume: true, By: a.ID, StartedAt: d.Now().UTC()})
	if err != nil {
		return FleetDowngradeRun{}, err
	}
	patience, cancel := context.WithTimeout(ctx, d.MaxWait)
	defer cancel()
	if !fresh {
		return r.wait(patience)
	}
	now := d.Now()
	closes := func(spec v1alpha1.ProtectedResourceSpec) bool {
		if !InTemporaryAudit(spec, now) {
			return false
		}
		_, downgraded := ParseFleetDowngradeScope(spec.TemporaryAudit.Scope)
		return downgraded
	}
	objects, err := d.prepareResume(ctx, patience, r, reason, closes)
	if err != nil {
		d.release(ctx, r)
		d.forget(r, err)
		if errors.Is(err, errNothingOpen) && done {
			return last, nil
		}
		return FleetDowngradeRun{}, err
	}
	d.started(r)
	go d.work(d.Running, r, reason, nil, objects, closes) //nolint:contextcheck // the run continues after the request
	return r.wait(patience)
}

// errNothingOpen means that no downgrade is in effect in a scope.
var errNothingOpen = fail(approval.CodeConflict, message.DowngradeNone())

// prepareResume stops the downgrades that the end of a downgrade concerns, and then returns the objects to close. The order matters: once the
// lease of the end is stored no downgrade begins, and once all others have ended nothing is opened that the list does not contain.
func (d *FleetDowngrader) prepareResume(
	ctx, patience context.Context,
	r *fleetDowngradeRun,
	reason string,
	closes func(v1alpha1.ProtectedResourceSpec) bool,
) ([]*v1alpha1.ProtectedResource, error) {
	stopped, err := d.register(ctx, r, News{})
	if err != nil {
		return nil, err
	}
	if err := d.awaitOthers(ctx, patience, r); err != nil {
		return nil, err
	}
	objects, err := d.inScope(ctx, r.Scope, closes)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 && !stopped {
		return nil, errNothingOpen
	}
	r.mu.Lock()
	r.Total = len(objects)
	r.mu.Unlock()
	return objects, d.Store.Record(ctx, d.news(r.state(), reason, objects))
}

func (d *FleetDowngrader) authorize(a approval.Actor, reason string, why message.Message) (string, error) {
	switch {
	case a.Auditor:
		return "", approval.AuditorsOnlyRead()
	case !MayDowngradeFleet(a):
		return "", fail(approval.CodeForbidden, message.DowngradeSecurityOnly())
	}
	return reasonOf(reason, why)
}

// inScope returns the objects in a scope that a run has to change.
func (d *FleetDowngrader) inScope(
	ctx context.Context,
	scope FleetDowngradeScope,
	wanted func(v1alpha1.ProtectedResourceSpec) bool,
) ([]*v1alpha1.ProtectedResource, error) {
	all, err := d.Objects(ctx)
	if err != nil {
		return nil, hostError("", err)
	}
	var out []*v1alpha1.ProtectedResource
	known := scope.Class == ""
	for _, o := range all {
		class := d.ClassOf(string(o.Spec.Resource))
		if !scope.Has(class) {
			continue
		}
		known = true
		if wanted(o.Spec) {
			out = append(out, o)
		}
	}
	if !known {
		return nil, invalid("class", message.DowngradeClassUnknown(scope.Class))
	}
	return out, nil
}

// claim makes a run the one of this replica, or returns the one that does the same. Only one is active at a time in a replica, because two
// different runs would leave each resource in an arbitrary state; the end of a downgrade stops the downgrade, and so replaces it.
func (d *FleetDowngrader) claim(want FleetDowngradeRun) (r *fleetDowngradeRun, fresh bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run != nil {
		last := d.run.state()
		stops := want.Resume && !last.Resume && want.Scope.covers(last.Scope)
		if last.FinishedAt.IsZero() && !stops {
			if last.Scope == want.Scope && last.Resume == want.Resume && last.Until.Equal(want.Until) {
				return d.run, false, nil
			}
			return nil, false, fail(approval.CodeConflict, message.DowngradeUnderWay())
		}
	}
	d.run = &fleetDowngradeRun{FleetDowngradeRun: want, id: rand.Text(), before: d.run, finished: make(chan struct{})}
	return d.run, true, nil
}

// started records that a claimed run has begun, so that forget will not be called.
func (d *FleetDowngrader) started(r *fleetDowngradeRun) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.before = nil
}

// forget removes a run that did not begin, for a reason that those who joined it get.
func (d *FleetDowngrader) forget(r *fleetDowngradeRun, why error) {
	d.mu.Lock()
	if d.run == r {
		d.run = r.before
	}
	r.before = nil
	d.mu.Unlock()
	r.err = why
	close(r.finished)
}

// finish ends a run. If it is not known whether one of its writes was made, its lease expires by itself, because the write may still arrive.
func (d *FleetDowngrader) finish(ctx context.Context, r *fleetDowngradeRun) {
	r.mu.Lock()
	keep := r.unknown && !r.Resume
	r.mu.Unlock()
	if !keep {
		d.release(ctx, r)
	}
	r.mu.Lock()
	r.FinishedAt = d.Now().UTC()
	r.mu.Unlock()
	close(r.finished)
}

// work switches the objects. The lines of each batch are in the ledger before the host cluster is changed.
func (d *FleetDowngrader) work(
	ctx context.Context,
	r *fleetDowngradeRun,
	reason string,
	audit *v1alpha1.TemporaryAudit,
	objects []*v1alpha1.ProtectedResource,
	still func(v1alpha1.ProtectedResourceSpec) bool,
) {
	defer d.finish(ctx, r)
	action := "resource.temporary-audit"
	details := map[string]string{"reason": reason, "downgrade": r.Scope.String()}
	if r.Resume {
		action = "resource.temporary-audit-ended"
	} else {
		details["until"] = audit.Until.UTC().Format(time.RFC3339)
	}
	for chunk := range slices.Chunk(objects, ledgerBatch) {
		if err := d.hold(ctx, r); err != nil { // not recorded, because it is not begun
			for _, o := range chunk {
				r.fail(o, err)
			}
			continue
		}
		n := News{}
		for _, o := range chunk {
			n.Entries = append(n.Entries, d.lineOf(r.By, action, o, details))
		}
		if err := d.Store.Record(ctx, n); err != nil {
			d.Log.Error("a downgrade could not be recorded, so it was not started", "error", err)
			for _, o := range chunk {
				r.fail(o, err)
			}
			continue
		}
		var failed sync.Map
		var busy sync.WaitGroup
		turns := make(chan struct{}, maxConcurrentWrites)
		for _, o := range chunk {
			turns <- struct{}{}
			busy.Go(func() {
				defer func() { <-turns }()
				if err := d.toggle(ctx, r, o, audit, still); err != nil {
					failed.Store(o, true)
					err = hostError(d.entityOf(o).Title, err)
					r.fail(o, err)
					if approval.CodeOf(err) == approval.CodeUnavailable {
						r.setUnknown()
					}
					return
				}
				r.mu.Lock()
				r.Done++
				r.mu.Unlock()
			})
		}
		busy.Wait()
		undone := News{}
		for _, o := range chunk {
			if _, ok := failed.Load(o); ok {
				undone.Entries = append(undone.Entries, d.lineOf(r.By, "resource.temporary-audit-failed", o, map[string]string{"downgrade": r.Scope.String()}))
			}
		}
		if len(undone.Entries) > 0 {
			if err := d.Store.Record(context.WithoutCancel(ctx), undone); err != nil {
				d.Log.Error("the failure of a part of a downgrade could not be recorded", "error", err)
			}
		}
	}
	end := r.state()
	d.Log.Warn("a downgrade was completed", "scope", end.Scope.String(), "resume", end.Resume, "resources", end.Total, "failed", end.FailedTotal)
}

// errUnchanged means that the object already has the state that the run sets, so that nothing is left to do.
var errUnchanged = errors.New("nothing is left to do")

// toggle switches one object. Its lease holds until the write has ended: hold leaves at least half of it, and the write takes no longer.
func (d *FleetDowngrader) toggle(
	ctx context.Context,
	r *fleetDowngradeRun,
	o *v1alpha1.ProtectedResource,
	audit *v1alpha1.TemporaryAudit,
	still func(v1alpha1.ProtectedResourceSpec) bool,
) error {
	ctx, cancel := context.WithTimeout(ctx, fleetDowngradeLease/2)
	defer cancel()
	_, err := d.Writer.SetTemporaryAudit(ctx, o.Name, "", audit, func(ctx context.Context, spec v1alpha1.ProtectedResourceSpec) error {
		if !still(spec) {
			return errUnchanged
		}
		return d.hold(ctx, r)
	})
	if errors.Is(err, errUnchanged) || errors.Is(err, ErrGone) {
		return nil
	}
	return err
}
