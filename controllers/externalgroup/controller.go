package externalgroup

import (
	"context"
	"errors"
	"slices"
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
	// Engines carry the objects to the members; nil means that only KubeFed does.
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

// Engines are what is needed of the propagation engines. propagation.Engines implements it.
type Engines interface {
	// Expedite carries an object that was just written before everything that is not urgent.
	Expedite(o *federation.Object)
	// Unordered returns those of some members whose engine does not carry urgent objects first.
	Unordered(clusters []string) []string
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
	for _, state := range []func() (bool, error){r.Federated.State, r.Fleet.Registry} {
		if listed, _ := state(); !listed {
			return reconcile.Result{}, nil // All subjects are enqueued when the list is complete.
		}
	}
	if !r.Cache.GroupsSupported() {
		return reconcile.Result{}, nil
	}
	request, queued := r.Subjects.Pending(subject), false
	err := federation.ErrStale
	for attempt := 0; attempt < attempts && errors.Is(err, federation.ErrStale); attempt++ {
		queued, err = r.reconcileSubject(ctx, subject, request != 0)
	}
	if errors.Is(err, errHandover) {
		r.Queue.Done(subject)
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	}
	if !queued {
		r.Queue.Done(subject)
		if err == nil {
			r.Subjects.Complete(subject, request)
		}
	}
	if errors.Is(err, federation.ErrStale) {
		return reconcile.Result{RequeueAfter: conflictRequeueDelay}, nil
	}
	return reconcile.Result{}, err
}

// reconcileSubject makes the changes that a subject needs, if the queue admits them; otherwise it returns queued. requested
// reports that a user waits for this subject in particular.
func (r *Reconciler) reconcileSubject(ctx context.Context, subject string, requested bool) (queued bool, err error) {
	view := r.Cache.View()
	wanted, err := r.render(view, subject)
	if err != nil {
		return false, err
	}
	writes, err := r.writes(view, subject, wanted)
	if err != nil {
		return false, err
	}
	handover := (len(wanted) == 0 || r.revokes(writes)) && r.awaitsHandover(view, subject)
	if handover {
		if writes, err = r.writesBeforeHandover(view, subject); err != nil {
			return false, err
		}
		if len(writes) == 0 {
			return false, errHandover
		}
	}
	priority := r.priorityOf(view, subject, writes, requested)
	if !r.admitted(subject, writes, priority) {
		return true, nil
	}
	if err := r.write(ctx, subject, writes, priority >= writequeue.Revocation); err != nil {
		return false, err
	}
	if handover {
		return false, errHandover
	}
	r.inGrace(subject, false)
	for _, e := range r.Federated.Of(subject) {
		if contains(wanted, e.Meta.Name) {
			continue
		}
		if err := r.remove(ctx, e); err != nil {
			return false, err
		}
	}
	return false, nil
}

// admitted reports whether objects may be written now. Members whose engine carries urgent objects first need no queue.
func (r *Reconciler) admitted(subject string, writes []*federation.Object, priority writequeue.Priority) bool {
	members := federation.MembersOf(writes)
	request := writequeue.Request{Unit: subject, Priority: priority, Members: members}
	if r.Engines != nil {
		request.Members = r.Engines.Unordered(members)
	}
	ordered := len(members) > 0 && len(request.Members) == 0
	return len(writes) == 0 || ordered || r.Queue.TryAdmit(request, r.Clock.Now())
}

// priorityOf returns the priority of writing objects of a subject.
func (r *Reconciler) priorityOf(view *policycache.View, subject string, writes []*federation.Object, requested bool) writequeue.Priority {
	switch {
	case r.urgent(view, subject, writes):
		return writequeue.Revocation
	case requested:
		return writequeue.Grant
	default:
		return writequeue.Bulk
	}
}

// revokes reports whether a subject loses an address in a member.
func (r *Reconciler) revokes(writes []*federation.Object) bool {
	for _, next := range writes {
		e, exists := r.Federated.Get(next.Meta.Name)
		if !exists {
			continue
		}
		for _, c := range slices.Concat(e.Placement, next.Placement) {
			if r.Effect(e.SpecIn(c), next.SpecIn(c)) > enforcer.Grants {
				return true
			}
		}
	}
	return false
}

// urgent reports whether access may be taken away by objects of a subject: the subject loses an address, or it gets one
// and a deny names it, so that members refuse the address only when they have it in the group.
func (r *Reconciler) urgent(view *policycache.View, subject string, writes []*federation.Object) bool {
	return r.revokes(writes) || r.adds(writes) && view.Denies(subject, r.Clock.Now())
}

// adds reports whether a subject gets an address in a member other than by the placement of its group in a further member.
func (r *Reconciler) adds(writes []*federation.Object) bool {
	for _, next := range writes {
		e, exists := r.Federated.Get(next.Meta.Name)
		if !exists || len(e.Placement) == 0 {
			return true
		}
		for _, c := range next.Placement {
			if slices.Contains(e.Placement, c) && r.Effect(next.SpecIn(c), e.SpecIn(c)) > enforcer.Grants { // The reverse change would revoke.
				return true
			}
		}
	}
	return false
}
