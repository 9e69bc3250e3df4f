package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	utilclock "k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/audit/hubble"
	"github.com/acp-io/acp/internal/backoff"
)

// followers follows a set of members that changes while the collector runs.
type followers struct {
	c *collector
	// running counts the running followers, so that the collector can wait for them.
	running sync.WaitGroup
	// setting serializes calls of set.
	setting sync.Mutex

	mu       sync.Mutex
	byMember map[string]*follower
	// problems holds, by member, why the member's source cannot be used.
	problems map[string]string
}

// follower is the running follower of one member.
type follower struct {
	member member
	// sizedFor is the number of sources among which the limits of the memory were divided when it was started.
	sizedFor int
	stop     context.CancelFunc
	done     chan struct{}
	// sources are the followers of the member's sources; empty before they start.
	sources []*hubble.Follower
}

func newFollowers(c *collector) *followers {
	return &followers{c: c, byMember: map[string]*follower{}, problems: map[string]string{}}
}

// set makes the members those that are followed. A follower whose member has another source is stopped, and what it counted is stored,
// before its successor starts. One of a member with a problem continues with its present sources. A follower continues at the position
// that is stored, so no flow is lost or counted twice by a restart that the source's own buffer covers.
func (f *followers) set(ctx context.Context, members []member, problems map[string]string) {
	f.setting.Lock()
	defer f.setting.Unlock()
	wanted := map[string]member{}
	for _, m := range members {
		wanted[m.name] = m
	}
	f.mu.Lock()
	f.problems = problems
	present := maps.Clone(f.byMember)
	f.mu.Unlock()

	for name := range problems {
		if present[name] != nil {
			wanted[name] = present[name].member
		}
	}
	count := 0
	for _, m := range wanted {
		count += len(m.sources())
	}
	f.c.rollups.SetSources(count)
	var stopped []*follower
	for _, name := range slices.Sorted(maps.Keys(present)) {
		r := present[name]
		m, keep := wanted[name]
		if keep && m.sameSources(r.member) && count <= 2*r.sizedFor {
			delete(wanted, name)
			continue
		}
		r.stop()
		stopped = append(stopped, r)
	}
	for _, r := range stopped {
		<-r.done
		for _, source := range r.member.sources() {
			f.c.metrics.Forget(source)
		}
		if _, again := wanted[r.member.name]; !again {
			f.remove(r.member.name)
		}
	}
	if len(stopped) > 0 {
		f.storeCounts(ctx)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if ctx.Err() != nil {
			return
		}
		f.start(ctx, wanted[name], count)
	}
}

// storeCounts stores what the stopped followers counted, because their successors read again what comes after the stored position. It
// retries until it succeeds or the context ends.
func (f *followers) storeCounts(ctx context.Context) {
	for f.c.rollups.Flush(ctx) != nil { // the error is reported already
		if !backoff.Pause(ctx, utilclock.RealClock{}, time.Second) {
			return
		}
	}
}

func (f *followers) remove(name string) {
	f.c.log.Info("the member is not followed any more", "member", name)
	f.mu.Lock()
	delete(f.byMember, name)
	f.mu.Unlock()
}

func (f *followers) start(ctx context.Context, m member, count int) {
	ctx, stop := context.WithCancel(ctx)
	r := &follower{member: m, sizedFor: count, stop: stop, done: make(chan struct{})}
	f.mu.Lock()
	f.byMember[m.name] = r
	f.mu.Unlock()
	f.running.Go(func() {
		defer close(r.done)
		defer stop()
		f.c.follow(ctx, m, count, func(sources []*hubble.Follower) {
			f.mu.Lock()
			defer f.mu.Unlock()
			r.sources = sources
		})
	})
}

// states returns the states of the members' sources, by name, and those of members whose source cannot be used.
func (f *followers) states() []hubble.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]hubble.State, 0, len(f.byMember))
	for _, name := range slices.Sorted(maps.Keys(f.byMember)) {
		r := f.byMember[name]
		if len(r.sources) == 0 {
			out = append(out, hubble.State{Member: name, Problem: "not connected yet"})
		}
		for i, source := range r.sources {
			s := source.State()
			if p := f.problems[name]; p != "" && i == 0 {
				s.Problem = fmt.Sprintf("followed at its earlier source: %s", p)
			}
			out = append(out, s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.problems)) {
		if f.byMember[name] == nil {
			out = append(out, hubble.State{Member: name, Problem: f.problems[name]})
		}
	}
	return out
}
