package direct

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/propagation"
)

// DefaultPerMember is the number of concurrent requests to each member.
const DefaultPerMember = 8

// Config is the configuration of an engine.
type Config struct {
	// Of is the kind of the objects in metrics: policies or groups.
	Of string
	// Host has the recorded objects, without the engines' reports.
	Host federation.Host
	// Members returns what the members have.
	Members interface {
		propagation.Registry
		Observe(cluster, key string) federation.Observation
	}
	// Clients returns the clients of the members.
	Clients interface {
		Of(ctx context.Context, c federation.Cluster) (dynamic.Interface, error)
		Forget(cluster string)
	}
	// Revision computes the revision of a spec.
	Revision federation.Revision
	// Reported is called with the key of an object whose report changed.
	Reported func(key string)
	// PerMember is the number of concurrent requests to each member; 0 is DefaultPerMember.
	PerMember int
	Log       logr.Logger
	Metrics   *Metrics
	// Clock is the clock; nil means the machine's.
	Clock clock.WithTicker
}

// Timing of the engine.
const (
	// requestTimeout bounds the requests for one object in one member.
	requestTimeout = 5 * time.Second
	// uncertainty is how long a request without an answer may still take effect in the member. Until then nothing is handled there, and an object
	// that the request may change is written once more afterwards, because an observation may be older than the effect of the request.
	uncertainty = 2 * requestTimeout
	// repairInterval is the shortest time between two writes of one version of an object, so that the engine does not compete with
	// another writer at full speed.
	repairInterval = time.Second
	// observationTimeout is how long the engine waits for the observation of its own write before it writes again. A member or an adapter
	// with much to do takes longer than repairInterval, and must not get every write twice then.
	observationTimeout = 10 * time.Second
	// queueInterval is how often the queues of members that are no longer registered are released.
	queueInterval = time.Second
)

// Priorities of the queue of a member.
const (
	normal = 0
	urgent = 100
)

// Engine is the direct engine for the objects of one store. It runs on the leader.
type Engine struct {
	config Config

	mu sync.Mutex
	// started reports whether the engine runs. Before that it enqueues nothing, because it compares everything when it starts.
	started bool
	// serve starts the workers of a queue.
	serve   func(priorityqueue.PriorityQueue[place])
	queues  map[string]priorityqueue.PriorityQueue[place]
	results map[place]result
}

var _ propagation.Engine = (*Engine)(nil)

// place identifies an object in a member.
type place struct{ cluster, key string }

// result is the outcome of the last handling of an object in a member.
type result struct {
	uid        types.UID
	generation int64
	// reason is why the member does not have this version, or "".
	reason string
	// wrote is the revision that the engine wrote last, "" for a deletion; nil means that it wrote nothing since it started.
	wrote *string
	// version is the resource version of the result of that write, or "".
	version string
	// at is the time of that write, and uncertain the time until which a request without an answer may take effect. unanswered are the revisions that
	// such requests were to write, "" for a deletion.
	at, uncertain time.Time
	unanswered    []string
}

// mayRevert reports whether a request without an answer may have changed, or may still change, an object that has to have a revision.
func (r *result) mayRevert(revision string) bool {
	return slices.ContainsFunc(r.unanswered, func(u string) bool { return u != revision })
}

// isUncertain reports whether a request without an answer may still take effect.
func (r *result) isUncertain(now time.Time) bool { return !now.After(r.uncertain) }

// New returns an engine that is idle until Start.
func New(config Config) (*Engine, error) {
	if config.Host == nil || config.Members == nil || config.Clients == nil || config.Revision == nil || config.Metrics == nil || config.Of == "" {
		return nil, errors.New("direct: Of, Host, Members, Clients, Revision and Metrics are needed")
	}
	if config.PerMember <= 0 {
		config.PerMember = DefaultPerMember
	}
	if config.Reported == nil {
		config.Reported = func(string) {}
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	return &Engine{config: config, queues: map[string]priorityqueue.PriorityQueue[place]{}, results: map[place]result{}}, nil
}

// Name returns the engine's name.
func (*Engine) Name() federation.Engine { return federation.EngineDirect }

// Capabilities returns what the engine can do.
func (*Engine) Capabilities() propagation.Capabilities {
	return propagation.Capabilities{Mode: propagation.Push, Overrides: true, Prioritizes: true, Isolated: true, RestoresLabels: true}
}

// Deliver enqueues an object for all members: one that has it although it was never placed there must lose it, too.
func (e *Engine) Deliver(o *federation.Object) { e.enqueue(normal, e.used(), o.Key()) }

// DeliverUrgent enqueues an urgent object for all members, before everything that is not urgent.
func (e *Engine) DeliverUrgent(o *federation.Object) { e.enqueue(urgent, e.used(), o.Key()) }

// Recheck enqueues an object, or all objects for "", for a member, or for all members for "".
func (e *Engine) Recheck(cluster, key string) {
	e.mu.Lock()
	started := e.started
	e.mu.Unlock()
	if !started {
		return
	}
	var used []string
	if cluster == "" {
		used = e.used()
	} else if c, ok := e.config.Members.Cluster(cluster); ok && c.Engine == federation.EngineDirect {
		used = []string{cluster} // Events in members are frequent, and the list of all members grows with the fleet.
	}
	if len(used) == 0 {
		return
	}
	keys := []string{key}
	if key == "" {
		keys = nil
		for _, o := range e.config.Host.List() {
			keys = append(keys, o.Key())
		}
	}
	e.enqueue(normal, used, keys...)
}

// used returns the members that use the engine.
func (e *Engine) used() []string {
	var out []string
	for _, c := range e.config.Members.Clusters() {
		if c.Engine == federation.EngineDirect {
			out = append(out, c.Name)
		}
	}
	return out
}

func (e *Engine) enqueue(priority int, clusters []string, keys ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.started {
		return
	}
	for _, cluster := range clusters {
		places := make([]place, 0, len(keys))
		for _, key := range keys {
			places = append(places, place{cluster, key})
		}
		e.queueOf(cluster).AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, places...)
	}
}

// queueOf returns the queue of a member, and creates it the first time. The caller holds e.mu.
func (e *Engine) queueOf(cluster string) priorityqueue.PriorityQueue[place] {
	q := e.queues[cluster]
	if q == nil {
		q = priorityqueue.New("direct-"+e.config.Of, withBackoff)
		e.queues[cluster] = q
		e.serve(q)
	}
	return q
}

// Report returns the engine's record of an object in a member.
func (e *Engine) Report(o *federation.Object, cluster string) federation.Report {
	e.mu.Lock()
	r, ok := e.results[place{cluster, o.Key()}]
	e.mu.Unlock()
	out := federation.Report{Reason: r.reason}
	if len(r.unanswered) > 0 {
		out.MayRevert = r.mayRevert(e.revisionIn(o, cluster))
	}
	if !ok || r.uid != o.Meta.UID || r.generation < o.Meta.Generation {
		return out
	}
	out.Handled, out.Applied = !r.isUncertain(e.config.Clock.Now()), r.reason == "" && o.IsPlacedIn(cluster)
	return out
}

// Start handles objects until the context ends. It begins with all objects in all members.
func (e *Engine) Start(ctx context.Context) error {
	var running sync.WaitGroup
	e.mu.Lock()
	e.started = true
	e.serve = func(q priorityqueue.PriorityQueue[place]) {
		for range e.config.PerMember {
			running.Go(func() { e.work(ctx, q) })
		}
	}
	e.mu.Unlock()
	e.Recheck("", "")
	tick := e.config.Clock.NewTicker(queueInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C():
			e.releaseQueues()
		}
	}
	e.mu.Lock()
	e.started = false
	for name, q := range e.queues {
		q.ShutDown()
		delete(e.queues, name)
	}
	e.mu.Unlock()
	running.Wait()
	return nil
}

// releaseQueues shuts down the queues of members that no longer use the engine, and removes its records of them.
func (e *Engine) releaseQueues() {
	used := e.used()
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, q := range e.queues {
		if slices.Contains(used, name) {
			e.config.Metrics.queued(e.config.Of, name, q.Len())
			continue
		}
		q.ShutDown()
		delete(e.queues, name)
		e.config.Metrics.forget(e.config.Of, name)
		for at := range e.results {
			if at.cluster == name {
				delete(e.results, at)
			}
		}
	}
}

func (e *Engine) work(ctx context.Context, q priorityqueue.PriorityQueue[place]) {
	for {
		at, priority, shutdown := q.GetWithPriority()
		if shutdown {
			return
		}
		again := e.handle(ctx, at)
		switch {
		case ctx.Err() != nil:
		case again.failed:
			q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, RateLimited: true}, at)
		case again.after > 0:
			q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: again.after}, at)
		default:
			q.Forget(at)
		}
		q.Done(at)
	}
}
