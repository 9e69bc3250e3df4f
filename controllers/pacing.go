package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/feed"
	"github.com/acp-io/acp/controllers/index"
	"github.com/acp-io/acp/controllers/pace"
	"github.com/acp-io/acp/internal/federation"
)

// pacing tells a line what KubeFed owes of the objects of one kind, and whoever's turn it is.
type pacing struct {
	line    *pace.Line
	objects federation.Host
	members federation.Members
	clock   clock.WithTicker

	// mu makes looking and telling one, so that an older look is not told after a newer one.
	mu sync.Mutex
	// undone are the objects that KubeFed has not said to be done with, whether their members have them or not.
	undone map[string]struct{}
}

// object looks at one object of the host.
func (p *pacing) object(name string) {
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
	p.line.Owe(name, federation.Owed(o, p.members), p.clock.Now())
}

// behind tells whether KubeFed has more than twice as much to do as it may be given: what is urgent then does not wait for it.
func (p *pacing) behind(owed int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.undone) > 2*owed
}

// everything looks at all of them: members came or went.
func (p *pacing) everything() {
	for _, o := range p.objects.List() {
		p.object(o.Key())
	}
}

// tallied is ready and then tells the lines what KubeFed owes, before anybody asks for a turn. The events that tell it come a little
// after what they speak of can be seen, and until then as much as KubeFed may owe would be written once more.
func tallied(ready func(context.Context) error, all ...*pacing) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, acquaintance)
		defer cancel()
		for _, p := range all {
			if err := wait.PollUntilContextCancel(limited, acquaintanceLook, true, func(context.Context) (bool, error) {
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
func (p *pacing) add(mgr manager.Manager, to *feed.Feed) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return p.line.Run(ctx, p.clock, func(t pace.Turn) { to.Add(feed.Turn, t.Unit) })
	}))
}

// showEvery is how often the classes tell how long a change of many resources still takes.
const showEvery = 5 * time.Second

// show looks at the classes again while units wait, and once more when none does.
func (p *pacing) show(mgr manager.Manager, x *index.Index) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		tick := p.clock.NewTicker(showEvery)
		defer tick.Stop()
		for waited := false; ; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C():
			}
			waits := len(p.line.Waiting()) > 0
			if waits || waited {
				x.EveryResourceClass()
			}
			waited = waits
		}
	}))
}
