package ocm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/acp-io/acp/internal/backoff"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/propagation"
)

const (
	// workers is the number of concurrent writes of ManifestWorks.
	workers = 8
	// requestTimeout bounds the requests for one object in one member.
	requestTimeout = 10 * time.Second
	// writesPerSecond is the expected number of objects that an agent applies per second: it makes about five requests for each, of at
	// most 50 a second to the host (OCM v1.0.0, pkg/common/options).
	writesPerSecond = 10
	// firstBackoff and lastBackoff are the delays after a failure, and between two rewrites of a ManifestWork whose agent reports another
	// content than the recorded one. A new version makes the agent retry at once; otherwise it waits for up to 1000 seconds.
	firstBackoff = 2 * time.Second
	lastBackoff  = time.Minute
	// readLifetime is the age at which a ManifestWork of Absent is deleted that the adapter did not delete, because it was stopped.
	readLifetime = 4 * readTimeout
)

// Config is the configuration of an engine.
type Config struct {
	// Of is the store whose objects the engine distributes.
	Of Scope
	// Host has the recorded objects, without the engines' reports.
	Host  federation.Host
	Works *Works
	// Read is what was read back from the members, with which the engine checks the agents' reports; nil if only they are read.
	Read interface {
		Observe(cluster, key string) federation.Observation
	}
	// Revision computes the revision of a spec.
	Revision federation.Revision
	// Reported is called with the key of an object whose report changed.
	Reported func(key string)
	Log      logr.Logger
}

// Engine is the engine of members with the work agent of Open Cluster Management. It runs on the leader. Its Recheck has to be called
// for the changes that Works reports.
type Engine struct {
	config Config
	clock  clock.WithTicker

	mu sync.Mutex
	// queue is nil until the engine runs.
	queue priorityqueue.PriorityQueue[place]
	// progress is the engine's record of an object in a member besides its ManifestWork.
	progress map[place]progress
}

// progress is the state of an object in a member that is lost when the engine ends.
type progress struct {
	// absence identifies the version of the record for which the agent confirmed that the member does not have the object, or is "".
	absence string
	// failure is the reason why the ManifestWork could not be written, or "".
	failure string
	// asked records the rewrites that make the agent retry a change, and adopted those that make it adopt an object which has to be removed.
	asked, adopted attempts
}

// attempts are repeated attempts at the same change.
type attempts struct {
	last  time.Time
	count int
}

// wait returns how long the next attempt has to wait.
func (a attempts) wait(now time.Time) time.Duration {
	if a.count == 0 {
		return 0
	}
	return backoff.Delay(a.count, firstBackoff, lastBackoff) - now.Sub(a.last)
}

// next returns the attempts with one more.
func (a attempts) next(now time.Time) attempts { return attempts{now, a.count + 1} }

var (
	_ propagation.Engine = (*Engine)(nil)
	_ propagation.Former = (*Engine)(nil)
)

// New returns an engine that is idle until Start.
func New(config Config) (*Engine, error) {
	if config.Host == nil || config.Works == nil || config.Revision == nil {
		return nil, errors.New("ocm: Host, Works and Revision are needed")
	}
	if config.Reported == nil {
		config.Reported = func(string) {}
	}
	return &Engine{config: config, clock: config.Works.config.Clock, progress: map[place]progress{}}, nil
}

// Name returns the engine's name.
func (*Engine) Name() federation.Engine { return federation.EngineOCM }

// Capabilities returns what the engine can do.
func (*Engine) Capabilities() propagation.Capabilities {
	return propagation.Capabilities{Mode: propagation.Pull, Overrides: true, WritesPerSecond: writesPerSecond, Isolated: true, RestoresLabels: true}
}

// Priorities of the queue.
const (
	normal = 0
	urgent = 100
)

// Deliver enqueues an object for all members.
func (e *Engine) Deliver(o *federation.Object) { e.enqueue(normal, e.used(""), o.Key()) }

// DeliverUrgent enqueues an urgent object for all members. Its ManifestWorks are written first; the agents handle them in the order in which
// they find them.
func (e *Engine) DeliverUrgent(o *federation.Object) { e.enqueue(urgent, e.used(""), o.Key()) }

// Recheck enqueues an object, or all objects for "", for a member, or for all members for "".
func (e *Engine) Recheck(cluster, key string) {
	e.mu.Lock()
	started := e.queue != nil
	e.mu.Unlock()
	if !started {
		return
	}
	used := e.used(cluster)
	if len(used) == 0 || key != "" {
		e.enqueue(normal, used, key)
		return
	}
	var recorded []string
	for _, o := range e.config.Host.List() {
		recorded = append(recorded, o.Key())
	}
	for _, c := range used {
		keys := slices.Clone(recorded)
		for _, w := range e.config.Works.objectWorks(c) { // a member that is quarantined must not be changed even by a ManifestWork without a record
			if key, own := e.config.Of.Own(w.key); own && w.name == nameOf(w.key) {
				keys = append(keys, key)
			}
		}
		e.enqueue(normal, []string{c}, keys...)
	}
}

// used returns the members that use the engine, or used it before: all, or the named one.
func (e *Engine) used(cluster string) []string {
	if cluster != "" {
		if c, ok := e.config.Works.config.Members.Cluster(cluster); ok && c.HasWorkAgent() {
			return []string{cluster}
		}
		return nil
	}
	var out []string
	for _, c := range e.config.Works.config.Members.Clusters() {
		if c.HasWorkAgent() {
			out = append(out, c.Name)
		}
	}
	return out
}

func (e *Engine) enqueue(priority int, clusters []string, keys ...string) {
	e.mu.Lock()
	q := e.queue
	e.mu.Unlock()
	if q == nil {
		return
	}
	for _, c := range clusters {
		for _, key := range keys {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, place{c, key})
		}
	}
}

// Report returns the engine's record of an object in a member.
func (e *Engine) Report(o *federation.Object, cluster string) federation.Report {
	at := place{cluster, o.Key()}
	p := e.progressOf(at)
	w := e.work(at)
	alive, _ := e.config.Works.alive(cluster)
	switch {
	case o.ForeignFields || o.Meta.DeletionTimestamp != nil:
		return federation.Report{Reason: reasonRecord}
	case p.failure != "":
		return federation.Report{Reason: p.failure}
	case !o.IsPlacedIn(cluster):
		never := !o.WasPlacedIn(cluster)
		return federation.Report{Handled: w == nil && (never || p.absence == e.absenceOf(at, o)), Reason: agentReason(alive)}
	case w == nil || w.record != recordOf(o) || w.purpose != purposeApply || w.deleting || !e.config.Works.hasHandled(w):
		return federation.Report{Reason: agentReason(alive)}
	case !w.applied || !e.config.Works.isOfPresentEpoch(w): // the ManifestWork is written again
		return federation.Report{Handled: true, Reason: agentReason(alive)}
	case w.refused != "":
		return federation.Report{Handled: true, Reason: reasonRefused}
	case w.available == available && w.report == nil:
		return federation.Report{Handled: true, Reason: reasonNoReport}
	}
	return federation.Report{Handled: true, Applied: w.exact(), Reason: agentReason(alive)}
}

// Retains reports whether the agent of a member that moved to another engine may still write an object: its ManifestWork was not deleted
// yet, or this is not known.
func (e *Engine) Retains(o *federation.Object, cluster string) bool {
	return !e.config.Works.listed(cluster) || e.work(place{cluster, o.Key()}) != nil
}

// work returns the ManifestWork of an object in a member, or nil.
func (e *Engine) work(at place) *work {
	return e.config.Works.workOf(at.cluster, e.config.Of.key(at.key))
}

// Reasons of reports.
const (
	reasonRecord   = "RecordNotReadable"
	reasonRefused  = "RefusedByMember"
	reasonNoAgent  = "NoAgent"
	reasonNoAnswer = "NoAnswer"
	reasonTooLong  = "TextTooLong"
	reasonNoReport = "NoReport"
)

// agentReason returns the reason of a report about an object of an agent that may not be alive; "" if it is.
func agentReason(alive bool) string {
	if alive {
		return ""
	}
	return reasonNoAgent
}

func (e *Engine) progressOf(at place) progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.progress[at]
}

// update changes the progress of an object in a member, and reports whether a different failure or absence is known then.
func (e *Engine) update(at place, change func(*progress)) (differs bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.progress[at]
	before := p
	change(&p)
	if p == (progress{}) {
		delete(e.progress, at)
	} else {
		e.progress[at] = p
	}
	return p.failure != before.failure || p.absence != before.absence
}

// absenceOf identifies the confirmation that a member does not have an object: by the version of its record, and by the number of times that the object was
// found there, so that a confirmation does not count any more once the object was found afterwards.
func (e *Engine) absenceOf(at place, o *federation.Object) string {
	return recordOf(o) + "/" + strconv.Itoa(e.config.Works.timesFound(place{at.cluster, e.config.Of.key(at.key)}))
}

// Start handles objects until the context ends. It begins with all objects in all members.
func (e *Engine) Start(ctx context.Context) error {
	q := priorityqueue.New("ocm", func(o *priorityqueue.Opts[place]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[place](firstBackoff/20, lastBackoff)
	})
	e.mu.Lock()
	e.queue = q
	e.mu.Unlock()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { e.run(ctx, q) })
	}
	e.Recheck("", "")
	tick := e.clock.NewTicker(readTimeout)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C():
			e.removeObsolete(ctx)
		}
	}
	e.mu.Lock()
	e.queue = nil
	e.mu.Unlock()
	q.ShutDown()
	running.Wait()
	return nil
}

// removeObsolete deletes the read requests that earlier processes left behind, and the progress of members that no longer use the engine.
func (e *Engine) removeObsolete(ctx context.Context) {
	used := map[string]bool{}
	for _, c := range e.used("") {
		used[c] = true
		for _, w := range e.config.Works.objectWorks(c) {
			if strings.HasPrefix(w.name, readPrefix) && !w.deleting && e.clock.Since(w.created) > readLifetime {
				e.config.Works.deleteReadRequest(ctx, c, w.name)
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.progress, func(at place, _ progress) bool { return !used[at.cluster] })
}

// run handles the objects in the queue until it is shut down.
func (e *Engine) run(ctx context.Context, q priorityqueue.PriorityQueue[place]) {
	for {
		at, priority, shutdown := q.GetWithPriority()
		if shutdown {
			return
		}
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		after, err := e.handle(limited, at)
		cancel()
		if ctx.Err() == nil && e.update(at, func(p *progress) { p.failure = failureOf(err) }) {
			e.config.Reported(at.key)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			e.config.Log.V(1).Info("ManifestWork was not written", "member", at.cluster, "object", at.key, "because", err.Error())
			q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, RateLimited: true}, at)
		case after > 0:
			q.Forget(at)
			q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, at)
		default:
			q.Forget(at)
		}
		q.Done(at)
	}
}
