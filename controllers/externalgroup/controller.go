package externalgroup

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/controllers/grace"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// Reconciler reconciles the groups of one subject at a time.
type Reconciler struct {
	Cache     *policycache.Cache
	Fleet     federation.Members
	Federated federation.Host
	Render    func(policy.ExternalGroup) (enforcer.Rendering, error)
	// Effect compares the specs that a member has to have before and after a change.
	Effect func(before, after map[string]any) enforcer.Effect
	// Queue decides when an object may be written. PendingWrites updates it with the members to which KubeFed still has to
	// propagate an object, and Subjects has the subjects that were requested.
	Queue         *writequeue.Queue
	PendingWrites func(object string)
	Subjects      *requestqueue.Queue
	// Engines distribute the objects to the members; nil means that only KubeFed does.
	Engines Engines
	// InUse reports whether every member that answers has every unit that refers to the groups of a subject; nil means that it does.
	InUse func(view *policycache.View, subject string) bool

	Clock clock.PassiveClock

	mu sync.Mutex
	// rendered is the last result of Render for each subject.
	rendered map[string]rendering
	// handovers tracks the subjects whose addresses wait for their next subject.
	handovers grace.Tracker
}

// Engines is the part of the propagation engines that the package uses. propagation.Engines implements it.
type Engines interface {
	// DeliverUrgent distributes an object that was just written before everything that is not urgent.
	DeliverUrgent(o *federation.Object)
	// WithoutPriorities returns those of some members whose engine does not write urgent objects before others.
	WithoutPriorities(clusters []string) []string
}

type rendering struct {
	group   policy.ExternalGroup
	objects []enforcer.Rendered
}

const (
	workers = 4
	// attempts is how often a federated object is written if others write it at the same time.
	attempts = 3
	// conflictRequeueDelay is the time after which a decision that was made from an older object, or waits for one, is repeated,
	// if no event comes first.
	conflictRequeueDelay = 50 * time.Millisecond
)

// +kubebuilder:rbac:groups=types.kubefed.io,resources=federatedciliumcidrgroups,verbs=get;list;watch;create;update;delete

// SetupWithManager registers the controller. It takes requests from Subjects once ready returns.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, ready func(context.Context) error) error {
	return r.Subjects.AddController(mgr, requestqueue.Controller{Name: "externalgroup", Key: "subject", Workers: workers, Reconciler: r}, ready)
}

// Reconcile reconciles the groups of one subject.
func (r *Reconciler) Reconcile(ctx context.Context, subject string) (reconcile.Result, error) {
	if !r.ready() {
		return reconcile.Result{}, nil // All subjects are enqueued when the lists are complete.
	}
	request := r.Subjects.Pending(subject)
	out := outcome{Err: federation.ErrStale}
	for attempt := 0; attempt < attempts && errors.Is(out.Err, federation.ErrStale); attempt++ {
		out = r.reconcileSubject(ctx, subject, request != 0)
	}
	if out.Step != stepQueued {
		r.Queue.Done(subject)
	}
	if out.complete() {
		r.Subjects.Complete(subject, request)
	}
	return out.result()
}

// ready reports whether the host's objects and the members are listed, and the host serves groups.
func (r *Reconciler) ready() bool {
	for _, state := range []func() (bool, error){r.Federated.State, r.Fleet.Registry} {
		if listed, _ := state(); !listed {
			return false
		}
	}
	return r.Cache.GroupsSupported()
}

// reconcileSubject plans the changes that a subject needs, and makes them if the queue admits them. requested reports whether a user waits
// for this subject in particular.
func (r *Reconciler) reconcileSubject(ctx context.Context, subject string, requested bool) outcome {
	p, err := r.newPlan(r.Cache.View(), subject, requested)
	switch {
	case err != nil:
		return outcome{Step: stepPlanned, Err: err}
	case p.Handover && len(p.Writes) == 0:
		return outcome{Step: stepHandover}
	case !r.admitted(subject, p.Writes, p.Priority):
		return outcome{Step: stepQueued}
	}
	if err := r.write(ctx, subject, p.Writes, p.Priority >= writequeue.Revocation); err != nil {
		return outcome{Step: stepPlanned, Err: err}
	}
	if p.Handover {
		return outcome{Step: stepHandover}
	}
	r.inGrace(subject, false)
	for _, e := range p.Removals {
		if err := r.remove(ctx, e); err != nil {
			return outcome{Step: stepPlanned, Err: err}
		}
	}
	return outcome{Step: stepApplied}
}

// admitted reports whether objects may be written now. Members whose engine writes urgent objects first need no queue.
func (r *Reconciler) admitted(subject string, writes []*federation.Object, priority writequeue.Priority) bool {
	members := federation.MembersOf(writes)
	request := writequeue.Request{Unit: subject, Priority: priority, Members: members}
	if r.Engines != nil {
		request.Members = r.Engines.WithoutPriorities(members)
	}
	prioritized := len(members) > 0 && len(request.Members) == 0
	return len(writes) == 0 || prioritized || r.Queue.TryAdmit(request, r.Clock.Now())
}
