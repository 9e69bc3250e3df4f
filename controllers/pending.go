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

// pendingTracker tells a line what KubeFed owes of the objects of one kind, and whoever's turn it is.
type pendingTracker struct {
	queue   *writequeue.Queue
	objects federation.Host
	members federation.Members
	clock   clock.WithTicker

	// mu makes looking and telling one, so that an older look is not told after a newer one.
	mu sync.Mutex
	// undone are the objects that KubeFed has not said to be done with, whether their members have them or not.
	undone map[string]struct{}
}

// object looks at one object of the host.
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

// behind tells whether KubeFed has more than twice as much to do as it may be given: what is urgent then does not wait for it.
func (p *pendingTracker) behind(owed int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.undone) > 2*owed
}

// everything looks at all of them: members came or went.
func (p *pendingTracker) everything() {
	for _, o := range p.objects.List() {
		p.object(o.Key())
	}
}

// waitForPendingCounts is ready and then tells the lines what KubeFed owes, before anybody asks for a turn. The events that tell it come a little
// after what they speak of can be seen, and until then as much as KubeFed may owe would be written once more.
func waitForPendingCounts(ready func(context.Context) error, all ...*pendingTracker) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, acquaintance)
		defer cancel()
		for _, p := range all {
			if err := wait.PollUntilContextCancel(limited, initialSyncPoll, true, func(context.Context) (bool, error) {
				listed, err := p.objects.State()
				return listed || err != nil, nil
			}); err != nil {
				return nil // if everything ends, the controllers see that themselves
			}
			p.everything()
		}
		return nil
	}
}

// add runs the line while this replica leads.
func (p *pendingTracker) add(mgr manager.Manager, to *requestqueue.Queue) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return p.queue.Run(ctx, p.clock, func(t writequeue.Admission) { to.Add(requestqueue.Admitted, t.Unit) })
	}))
}

// showEvery is how often the classes tell how long a change of many resources still takes.
const showEvery = 5 * time.Second

// show looks at the classes again while units wait, and once more when none does.
func (p *pendingTracker) show(mgr manager.Manager, x *policycache.Cache) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		tick := p.clock.NewTicker(showEvery)
		defer tick.Stop()
		for waited := false; ; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C():
			}
			waits := len(p.queue.Waiting()) > 0
			if waits || waited {
				x.EveryResourceClass()
			}
			waited = waits
		}
	}))
}
