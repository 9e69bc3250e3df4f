// Package backlog records which objects KubeFed has not propagated yet, for a write queue, and connects the queue to the
// controller whose writes it admits.
package backlog

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/startup"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
)

// Tracker updates a write queue with the objects that KubeFed has not yet propagated, of the kinds that share the queue.
type Tracker struct {
	Queue   *writequeue.Queue
	Objects federation.Host
	Members federation.Members
	Clock   clock.WithTicker

	// mu makes reading and updating atomic, so that an older state does not replace a newer one.
	mu sync.Mutex
	// unreported are the objects that KubeFed has not reported as handled, whether or not their members have them.
	unreported sets.Set[string]
}

// Update handles an event about one object, on the host or in a member.
func (t *Tracker) Update(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, _ := t.Objects.Get(name)
	var pending []string
	if o == nil || o.Handled() || o.Meta.DeletionTimestamp != nil {
		// KubeFed has handled the object, or carries it to no member: then no member is looked at, of which there may be many.
		t.unreported.Delete(name)
	} else {
		if t.unreported == nil {
			t.unreported = sets.New[string]()
		}
		t.unreported.Insert(name)
		pending = federation.PendingMembers(o, t.Members)
	}
	t.Queue.SetPending(name, pending, t.Clock.Now())
}

// UpdateAll updates all objects, because members were added or removed.
func (t *Tracker) UpdateAll() {
	for _, o := range t.Objects.List() {
		t.Update(o.Key())
	}
}

// KubeFedIsBehind reports whether KubeFed has not reported on more than 2*limit objects of the fleet. Then package memberwriter writes
// revocations and changes that open directly into the members; package writequeue holds back everything else, by the limit of each member.
// The factor 2 accounts for the difference in scope: the limit is the queue's limit for one member, whereas the unreported objects of all
// members are counted together.
func (t *Tracker) KubeFedIsBehind(limit int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.unreported) > 2*limit
}

// AfterUpdate returns a Ready that calls ready and then updates the queues, before any write is requested. The events arrive
// a little after the objects are visible, and until then as much as KubeFed's limit would be written again.
func AfterUpdate(ready startup.Ready, pauses clock.WithTicker, all ...*Tracker) startup.Ready {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		limit := pauses.NewTimer(startup.Timeout)
		defer limit.Stop()
		for _, t := range all {
			if !startup.Poll(ctx, pauses, limit.C(), func() bool { listed, err := t.Objects.State(); return listed || err != nil }) {
				return nil // when everything ends, the controllers end, too
			}
			t.UpdateAll()
		}
		return nil
	}
}

// AddToManager runs the queue while this replica is the leader, and enqueues the units that the queue admits.
func (t *Tracker) AddToManager(mgr manager.Manager, units *requestqueue.Queue) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return t.Queue.Run(ctx, t.Clock, func(a writequeue.Admission) { units.Add(requestqueue.Admitted, a.Unit) })
	}))
}

// reportInterval is how often the progress of a change of many resources is reported.
const reportInterval = 5 * time.Second

// ReportProgress calls report regularly while units wait for the queue, and once more when none does.
func (t *Tracker) ReportProgress(mgr manager.Manager, report func()) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		tick := t.Clock.NewTicker(reportInterval)
		defer tick.Stop()
		for waited := false; ; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C():
			}
			waits := len(t.Queue.Waiting()) > 0
			if waits || waited {
				report()
			}
			waited = waits
		}
	}))
}
