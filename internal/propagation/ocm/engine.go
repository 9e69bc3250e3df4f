package ocm

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

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
	// firstBackoff and lastBackoff are the delays after a failure, and between two questions to an agent that reports another content
	// than the recorded one. A question makes the agent try again, which by itself waits for up to 1000 seconds.
	firstBackoff = 2 * time.Second
	lastBackoff  = time.Minute
	// readLifetime is the age at which a ManifestWork of Absent is deleted that the adapter did not delete, because it was stopped.
	readLifetime = 4 * readTimeout
)

// Config is the configuration of an engine.
type Config struct {
	// Host has the recorded objects, without the engines' reports.
	Host  federation.Host
	Works *Works
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
	// without maps an object to the version of its record for which the agent confirmed that the member does not have it.
	without map[place]string
	// failures maps an object to the reason why its ManifestWork could not be written.
	failures map[place]string
	// asked maps an object to the last repeated question and the number of them.
	asked map[place]asked
}

type asked struct {
	at    time.Time
	count int
}

var _ propagation.Engine = (*Engine)(nil)

// New returns an engine that is idle until Start.
func New(config Config) (*Engine, error) {
	if config.Host == nil || config.Works == nil || config.Revision == nil {
		return nil, errors.New("ocm: Host, Works and Revision are needed")
	}
	if config.Reported == nil {
		config.Reported = func(string) {}
	}
	return &Engine{config: config, clock: config.Works.config.Clock, without: map[place]string{}, failures: map[place]string{},
		asked: map[place]asked{}}, nil
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

// Expedite enqueues an urgent object for all members. Its ManifestWorks are written first; the agents handle them in the order in which
// they find them.
func (e *Engine) Expedite(o *federation.Object) { e.enqueue(urgent, e.used(""), o.Key()) }

// Recheck enqueues an object, or all objects for "", for a member, or for all members for "".
func (e *Engine) Recheck(cluster, key string) {
	used := e.used(cluster)
	if len(used) == 0 {
		return
	}
	keys := []string{key}
	if key == "" {
		keys = nil
		for _, o := range e.config.Host.List() {
			keys = append(keys, o.Key())
		}
		for _, c := range used { // a member that is quarantined must not be changed even by a ManifestWork without a record
			for _, w := range e.config.Works.in(c) {
				if w.purpose != purposeRead {
					keys = append(keys, w.key)
				}
			}
		}
	}
	e.enqueue(normal, used, keys...)
}

// used returns the members that use the engine: all, or the named one.
func (e *Engine) used(cluster string) []string {
	if cluster != "" {
		if c, ok := e.config.Works.config.Members.Cluster(cluster); ok && c.Engine == federation.EngineOCM {
			return []string{cluster}
		}
		return nil
	}
	var out []string
	for _, c := range e.config.Works.config.Members.Clusters() {
		if c.Engine == federation.EngineOCM {
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
	e.mu.Lock()
	without, failure := e.without[at], e.failures[at]
	e.mu.Unlock()
	w := e.config.Works.of(cluster, at.key)
	alive, _ := e.config.Works.alive(cluster)
	switch {
	case o.ForeignFields || o.Meta.DeletionTimestamp != nil:
		return federation.Report{Reason: reasonRecord}
	case failure != "":
		return federation.Report{Reason: failure}
	case !o.IsPlacedIn(cluster):
		return federation.Report{Settled: w == nil && without == recordOf(o), Reason: silence(alive)}
	case w == nil || w.record != recordOf(o) || w.purpose != purposeApply || w.deleting:
		return federation.Report{Reason: silence(alive)}
	case w.applied && w.refused != "":
		return federation.Report{Reason: reasonRefused}
	}
	settled := w.applied && w.answered()
	return federation.Report{Settled: settled, Applied: settled && w.exact(), Reason: silence(alive)}
}

// Reasons of reports.
const (
	reasonRecord   = "RecordNotReadable"
	reasonRefused  = "RefusedByMember"
	reasonNoAgent  = "NoAgent"
	reasonNoAnswer = "NoAnswer"
)

func silence(alive bool) string {
	if alive {
		return ""
	}
	return reasonNoAgent
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
		running.Go(func() { e.work(ctx, q) })
	}
	e.Recheck("", "")
	tick := e.clock.NewTicker(readTimeout)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C():
			e.release(ctx)
		}
	}
	e.mu.Lock()
	e.queue = nil
	e.mu.Unlock()
	q.ShutDown()
	running.Wait()
	return nil
}

// release deletes what earlier runs left behind, and forgets the members that no longer use the engine.
func (e *Engine) release(ctx context.Context) {
	used := map[string]bool{}
	for _, c := range e.used("") {
		used[c] = true
		for _, w := range e.config.Works.in(c) {
			if strings.HasPrefix(w.name, readPrefix) && !w.deleting && e.clock.Since(w.created) > readLifetime {
				e.config.Works.forget(ctx, c, w.name)
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for at := range e.without {
		if !used[at.cluster] {
			delete(e.without, at)
		}
	}
	for at := range e.failures {
		if !used[at.cluster] {
			delete(e.failures, at)
		}
	}
	for at := range e.asked {
		if !used[at.cluster] {
			delete(e.asked, at)
		}
	}
}

func (e *Engine) work(ctx context.Context, q priorityqueue.PriorityQueue[place]) {
	for {
		at, priority, shutdown := q.GetWithPriority()
		if shutdown {
			return
		}
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		after, err := e.handle(limited, at)
		cancel()
		e.failed(at, err)
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

// failed stores why the ManifestWork of an object could not be written.
func (e *Engine) failed(at place, err error) {
	reason := ""
	if err != nil {
		if reason = string(apierrors.ReasonForError(err)); reason == "" {
			reason = reasonNoAnswer
		}
	}
	e.mu.Lock()
	before := e.failures[at]
	if reason == "" {
		delete(e.failures, at)
	} else {
		e.failures[at] = reason
	}
	e.mu.Unlock()
	if before != reason {
		e.config.Reported(at.key)
	}
}

// handle makes the next change that an object needs in a member, and returns when to handle it again, or 0 if only after an event.
func (e *Engine) handle(ctx context.Context, at place) (time.Duration, error) {
	c, ok := e.config.Works.config.Members.Cluster(at.cluster)
	if !ok || c.Engine != federation.EngineOCM || !e.config.Works.informer.HasSynced() {
		return 0, nil // Registrations, and the end of the first list, are events.
	}
	o, recorded := e.config.Host.Get(at.key)
	w := e.config.Works.of(at.cluster, at.key)
	if c.Quarantined {
		return 0, e.hold(ctx, w)
	}
	switch {
	case !recorded:
		// Without a record nothing is known about the object. The member keeps it, and it is reported as an orphan.
		return 0, nil
	case o.Meta.DeletionTimestamp != nil:
		_, err := federation.WithoutKubeFedFinalizer(ctx, e.config.Host, o)
		if errors.Is(err, federation.ErrStale) {
			err = nil
		}
		return 0, err
	case o.ForeignFields:
		return 0, nil
	case o.IsPlacedIn(at.cluster):
		return e.apply(ctx, at, o, w)
	}
	return e.absent(ctx, at, o, w)
}

// hold stops the agent from changing an object while the member is quarantined: the agent then only reports on it.
func (e *Engine) hold(ctx context.Context, w *work) error {
	if w == nil || w.deleting || !w.purpose.changes() {
		return nil
	}
	return e.config.Works.suspend(ctx, w)
}

// apply makes the member have a recorded object.
func (e *Engine) apply(ctx context.Context, at place, o *federation.Object, w *work) (time.Duration, error) {
	e.mu.Lock()
	delete(e.without, at)
	e.mu.Unlock()
	if w != nil && w.deleting {
		return 0, nil // An event follows when it is gone.
	}
	d, err := placed(o, at.cluster, purposeApply, e.revisionIn(o, at.cluster))
	if err != nil {
		return 0, err
	}
	return e.ensure(ctx, at, &d, w)
}

// ensure makes a ManifestWork have a content, and asks the agent again from time to time until it reports that the member has it.
func (e *Engine) ensure(ctx context.Context, at place, d *desired, w *work) (time.Duration, error) {
	if w == nil || !d.is(w) {
		e.ask(at, asked{at: e.clock.Now()})
		return firstBackoff, e.config.Works.write(ctx, d, rand.Text())
	}
	if w.exact() {
		e.ask(at, asked{})
		return 0, nil
	}
	e.mu.Lock()
	last := e.asked[at]
	e.mu.Unlock()
	if wait := min(firstBackoff<<min(last.count, 10), lastBackoff) - e.clock.Since(last.at); wait > 0 {
		return wait, nil
	}
	e.ask(at, asked{e.clock.Now(), last.count + 1})
	return firstBackoff, e.config.Works.write(ctx, d, rand.Text())
}

// ask stores when an agent was asked about an object; the zero value means that no answer is missing.
func (e *Engine) ask(at place, a asked) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a == (asked{}) {
		delete(e.asked, at)
		return
	}
	e.asked[at] = a
}

// absent makes the member lose an object, in these steps: the ManifestWork is deleted, which makes the agent delete the object; then the
// agent is asked whether the member has it. If it does, because somebody created it again in the meantime, the agent takes it over, and the
// steps begin again.
func (e *Engine) absent(ctx context.Context, at place, o *federation.Object, w *work) (time.Duration, error) {
	e.mu.Lock()
	done := e.without[at] == recordOf(o)
	e.mu.Unlock()
	alive, _ := e.config.Works.alive(at.cluster)
	switch {
	case w != nil && w.deleting, !alive:
		// The deletion of a ManifestWork cannot be taken back, so it waits until the member is there. An event follows.
		return 0, nil
	case w == nil && (done || !slices.Contains(o.EverPlaced(), at.cluster)):
		e.confirm(at, o)
		return 0, nil
	case w == nil:
		d := reading(o, at.cluster)
		return 0, e.config.Works.write(ctx, &d, rand.Text())
	case w.purpose == purposeRead && w.applied && w.missing():
		e.confirm(at, o)
		return 0, e.config.Works.remove(ctx, w)
	case w.purpose == purposeRead && w.applied && w.available == "True":
		d, err := placed(o, at.cluster, purposeAdopt, e.config.Revision(o.TemplateSpec))
		if err != nil {
			return 0, err
		}
		return 0, e.config.Works.write(ctx, &d, rand.Text())
	case w.purpose == purposeRead:
		return 0, nil
	case w.purpose == purposeAdopt && !w.exact() && w.record == recordOf(o):
		d, err := placed(o, at.cluster, purposeAdopt, e.config.Revision(o.TemplateSpec))
		if err != nil {
			return 0, err
		}
		return e.ensure(ctx, at, &d, w)
	}
	return 0, e.config.Works.remove(ctx, w)
}

// confirm stores that the agent confirmed that the member does not have the object of a record, or that it never had it.
func (e *Engine) confirm(at place, o *federation.Object) {
	e.mu.Lock()
	before := e.without[at]
	e.without[at] = recordOf(o)
	e.mu.Unlock()
	if before != recordOf(o) {
		e.config.Reported(at.key)
	}
}

// revisionIn returns the revision of the recorded spec for a member.
func (e *Engine) revisionIn(o *federation.Object, cluster string) string {
	if revision := o.RevisionIn(cluster); revision != "" {
		return revision
	}
	return e.config.Revision(o.SpecIn(cluster))
}
