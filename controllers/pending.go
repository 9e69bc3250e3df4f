package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
)

// pendingTracker updates a write queue with the objects that KubeFed has not yet propagated, of the kinds that share the queue, and
// enqueues the units that the queue admits.
type pendingTracker struct {
	queue   *writequeue.Queue
	objects federation.Host
	members federation.Members
	clock   clock.WithTicker

	// mu makes reading and updating atomic, so that an older state does not replace a newer one.
	mu sync.Mutex
	// undone are the objects that KubeFed has not reported as handled, whether or not their members have them.
	undone map[string]struct{}
}

// object handles an event about one object of the host.
func (p *pendingTracker) object(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, _ := p.objects.Get(name)
	if o == nil || o.Propagation.Seen || o.Meta.DeletionTimestamp != nil {
		delete(p.undone, name)
	} else {
		if p.undone == nil {
			p.undone = map[string]struct{}{}
		}
		p.undone[name] = struct{}{}
	}
	p.queue.SetPending(name, federation.PendingMembers(o, p.members), p.clock.Now())
}

// behind reports whether KubeFed has more than twice limit objects to handle. It counts objects of the whole fleet, while
// the limits of the queue apply to each member. Revocations and downgrades are then written directly.
func (p *pendingTracker) behind(limit int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.undone) > 2*limit
}

// everything updates all objects, because members were added or removed.
func (p *pendingTracker) everything() {
	for _, o := range p.objects.List() {
		p.object(o.Key())
	}
}

// waitForPendingCounts calls ready and then updates the queues with KubeFed's backlog, before any write is requested.
// The events arrive a little after the objects are visible, and until then as much as KubeFed's limit would be written
// again.
func waitForPendingCounts(ready func(context.Context) error, all ...*pendingTracker) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, initialSyncTimeout)
		defer cancel()
		for _, p := range all {
			if err := wait.PollUntilContextCancel(limited, initialSyncPoll, true, func(context.Context) (bool, error) {
				listed, err := p.objects.State()
				return listed || err != nil, nil
			}); err != nil {
				return nil // when everything ends, the controllers end, too
			}
			p.everything()
		}
		return nil
	}
}

// add runs the queue while this replica is the leader.
func (p *pendingTracker) add(mgr manager.Manager, to *requestqueue.Queue) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return p.queue.Run(ctx, p.clock, func(t writequeue.Admission) { to.Add(requestqueue.Admitted, t.Unit) })
	}))
}

// showInterval is how often the classes report how long a change of many resources still takes.
const showInterval = 5 * time.Second

// show reconciles the classes while units wait, and once more when none does.
func (p *pendingTracker) show(mgr manager.Manager, x *policycache.Cache) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		tick := p.clock.NewTicker(showInterval)
		defer tick.Stop()
		for waited := false; ; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C():
			}
			waits := len(p.queue.Waiting()) > 0
			if waits || waited {
				x.EnqueueResourceClasses()
			}
			waited = waits
		}
	}))
}
