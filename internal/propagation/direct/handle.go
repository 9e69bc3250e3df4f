package direct

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/acp-io/acp/internal/federation"
)

// Delays after a failure, which double from the first to the last.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 30 * time.Second
)

func withBackoff(o *priorityqueue.Opts[place]) {
	o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[place](firstBackoff, lastBackoff)
}

// next is the result of handling a place. It describes when the place has to be handled again: after a back-off because it failed, after some
// time, or only after an event.
type next struct {
	failed bool
	after  time.Duration
}

// handle makes the change that an object needs in a member.
func (e *Engine) handle(ctx context.Context, at place) next {
	c, ok := e.config.Members.Cluster(at.cluster)
	if !ok || c.Engine != federation.EngineDirect || c.Quarantined {
		return next{} // The end of a quarantine and a change of the engine are events.
	}
	o, ok := e.config.Host.Get(at.key)
	if !ok {
		// Without a record nothing is known about the object. The member keeps it, and it is reported as an orphan.
		e.mu.Lock()
		delete(e.results, at)
		e.mu.Unlock()
		return next{}
	}
	seen := e.config.Members.Observe(at.cluster, at.key)
	e.mu.Lock()
	was := e.results[at]
	e.mu.Unlock()
	if !seen.Reachable {
		// A member that cannot be read gets no writes, because their result would not be known. An event follows when it can be read again.
		e.record(at, o, was, reasonNotReadable, false)
		return next{}
	}
	if o.Meta.DeletionTimestamp != nil {
		return e.releaseDeleted(ctx, at, o, was)
	}
	want := e.revisionIn(o, at.cluster)
	repeat := false
	if !was.isUncertain(e.config.Clock.Now()) {
		if repeat = was.mayRevert(want); !repeat {
			was.uncertain, was.unanswered = time.Time{}, nil
		}
	}
	needed := plan(o, at.cluster, want, seen.Object, was.wrote)
	if needed == none && repeat {
		if needed = remove; o.IsPlacedIn(at.cluster) {
			needed = apply
		}
	}
	switch needed {
	case refuse:
		e.record(at, o, was, reasonRecord, false)
		return next{}
	case none:
		e.record(at, o, was, "", true)
		return e.afterUncertainty(&was)
	case remove:
		return e.change(ctx, c, at, o, was, "", func(ctx context.Context) (string, string, error) {
			reason, err := e.erase(ctx, c, o)
			return "", reason, err
		})
	default:
		if !repeat && was.wrote != nil && *was.wrote == want && was.generation == o.Meta.Generation && was.reason == "" {
			// The observation is older than the write, or another writer changed the object.
			limit := repairInterval
			if seen.Precedes(was.version) {
				limit = observationTimeout
			}
			if wait := limit - e.config.Clock.Since(was.at); wait > 0 {
				return next{after: wait}
			}
		}
		return e.change(ctx, c, at, o, was, want, func(ctx context.Context) (string, string, error) {
			version, err := e.apply(ctx, c, o)
			return version, "", err
		})
	}
}

// afterUncertainty returns that a place has to be handled again when requests without an answer cannot take effect any more.
func (e *Engine) afterUncertainty(r *result) next {
	if r.uncertain.IsZero() {
		return next{}
	}
	return next{after: max(r.uncertain.Sub(e.config.Clock.Now()), time.Millisecond)}
}

// releaseDeleted removes KubeFed's finalizer from a record whose deletion was requested, so that the deletion completes. KubeFed does not reach the
// member, so it would keep the finalizer, and handle no change of the record any more. The member keeps the object. If it is needed, the adapter
// creates the record again, which then decides.
func (e *Engine) releaseDeleted(ctx context.Context, at place, o *federation.Object, was result) next {
	e.record(at, o, was, reasonRecord, false)
	_, err := federation.WithoutKubeFedFinalizer(ctx, e.config.Host, o)
	if err != nil && !errors.Is(err, federation.ErrStale) {
		e.config.Log.Error(err, "KubeFed's finalizer could not be removed from a record that is being deleted", "object", at.key)
	}
	return next{failed: err != nil}
}

// revisionIn returns the revision of the recorded spec for a member, or "" if the object is not placed there.
func (e *Engine) revisionIn(o *federation.Object, cluster string) string {
	if revision := o.RevisionIn(cluster); revision != "" || !o.IsPlacedIn(cluster) {
		return revision
	}
	return e.config.Revision(o.SpecIn(cluster))
}

// change makes one change in a member, and records its outcome. do returns the resource version of the result, and the reason why the
// change is not complete although it succeeded.
func (e *Engine) change(ctx context.Context, c federation.Cluster, at place, o *federation.Object, was result, revision string,
	do func(context.Context) (version, reason string, err error)) next {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	begin := e.config.Clock.Now()
	version, reason, err := do(limited)
	if !was.isUncertain(begin) && (err == nil || refused(err)) {
		was.uncertain, was.unanswered = time.Time{}, nil // The member has answered after the last moment at which an earlier request could take effect.
	}
	e.config.Metrics.wrote(e.config.Of, at.cluster, e.config.Clock.Since(begin), err)
	if err == nil {
		was.wrote, was.version, was.at = &revision, version, e.config.Clock.Now()
		e.record(at, o, was, reason, true)
		return e.afterUncertainty(&was)
	}
	switch {
	case errors.Is(err, errNoCredentials):
		reason = reasonNoCredentials
	case errors.Is(err, errSuperseded):
		reason = reasonSuperseded
	default:
		reason = reasonOf(err)
	}
	if apierrors.IsUnauthorized(err) {
		e.config.Clients.Forget(c.Name)
	}
	if !refused(err) && reason != reasonNoCredentials && reason != reasonSuperseded {
		// The member may have received the request, or may still receive it. Only a later observation shows what the member has.
		was.wrote, was.uncertain = nil, e.config.Clock.Now().Add(uncertainty)
		if !slices.Contains(was.unanswered, revision) {
			was.unanswered = append(slices.Clone(was.unanswered), revision) // reports share the former slice
		}
	}
	e.config.Log.V(1).Info("Object was not written", "member", at.cluster, "object", at.key, "because", err.Error())
	e.record(at, o, was, reason, true)
	return next{failed: true}
}

func (e *Engine) apply(ctx context.Context, c federation.Cluster, o *federation.Object) (string, error) {
	client, on, err := e.baseIn(ctx, c, o)
	if err != nil {
		return "", err
	}
	return write(ctx, client, o, c.Name, on, e.config.Revision)
}

func (e *Engine) erase(ctx context.Context, c federation.Cluster, o *federation.Object) (string, error) {
	client, on, err := e.baseIn(ctx, c, o)
	if err != nil {
		return "", err
	}
	remains, err := erase(ctx, client, o, on)
	if remains && err == nil {
		return federation.WaitingForRemoval, nil
	}
	return "", err
}

// errSuperseded means that the record has a later version than the one that was to be written. Nothing was requested.
var errSuperseded = errors.New("the record changed meanwhile")

// baseIn returns a client of a member, and the version of an object that a change there replaces. While a member moves, KubeFed
// may have written a later version of the record than o, and a change that arrives late must not undo it: so the member is
// read first, then it is checked that o is still the present version, and the change applies only to what was read. The record cannot
// be older here than what KubeFed writes, because the adapter keeps what it writes.
func (e *Engine) baseIn(ctx context.Context, c federation.Cluster, o *federation.Object) (dynamic.Interface, base, error) {
	client, err := e.config.Clients.Of(ctx, c)
	if err != nil || !c.SharedWithKubeFed() {
		return client, base{}, err
	}
	live, err := resource(client, o.Kind).Get(ctx, o.Meta.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return nil, base{}, err
	}
	if now, ok := e.config.Host.Get(o.Key()); !ok || now.Meta.UID != o.Meta.UID || now.Meta.Generation != o.Meta.Generation {
		return nil, base{}, errSuperseded
	}
	return client, base{read: true, live: live}, nil
}

// record stores the outcome for the version that was handled. Without handled, the version counts as not handled.
func (e *Engine) record(at place, o *federation.Object, was result, reason string, handled bool) {
	now := was
	now.uid, now.reason = o.Meta.UID, reason
	if now.generation = 0; handled {
		now.generation = o.Meta.Generation
	}
	e.mu.Lock()
	before, had := e.results[at]
	e.results[at] = now
	e.mu.Unlock()
	// That a member has an object is read back from it, and that is an event of its own.
	removed := !o.IsPlacedIn(at.cluster) && (!had || before.uid != now.uid || before.generation != now.generation)
	if removed || before.reason != now.reason || before.uncertain != now.uncertain {
		e.config.Reported(at.key)
	}
}
