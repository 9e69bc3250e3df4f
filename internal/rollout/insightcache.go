package rollout

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
)

const (
	// assessmentLifetime is how long an assessment, and the recent coverage of members, is returned again. Flows arrive all the
	// time, and a page may show a slightly older state.
	assessmentLifetime = 15 * time.Second
	// watchLifetime is how long the members' watch is returned again.
	watchLifetime = time.Minute
)

// assessor evaluates the flows of resources.
type assessor interface {
	// assess returns the assessments of resources by name. If it returns an error, the map contains those that were
	// completed before it.
	assess(ctx context.Context, resources []string, now time.Time) (map[string]assessed, error)
}

// cachedAssessor is an assessor that returns the assessment of a resource again for assessmentLifetime. The key is the name of
// the resource: the policies, the members and the settings are the same for every caller, so they decide only how old an
// assessment is.
type cachedAssessor struct {
	assessor
	mu    sync.Mutex
	known map[string]assessed
}

func (c *cachedAssessor) assess(ctx context.Context, resources []string, now time.Time) (map[string]assessed, error) {
	out := make(map[string]assessed, len(resources))
	var missing []string
	c.mu.Lock()
	for _, name := range resources {
		if a, ok := c.known[name]; ok && isFresh(a.at, now, assessmentLifetime) {
			out[name] = a
		} else {
			missing = append(missing, name)
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return out, nil
	}
	found, err := c.assessor.assess(ctx, missing, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[string]assessed{}
	}
	maps.DeleteFunc(c.known, func(_ string, a assessed) bool { return !isFresh(a.at, now, assessmentLifetime) })
	maps.Copy(c.known, found)
	maps.Copy(out, found)
	return out, err
}

// watches reports which flows of the members were collected. It is the same for all resources; each is scored by
// its own members.
type watches interface {
	// watch covers the evaluated period until now, and recent the last insight.RecentWatch.
	watch(ctx context.Context, now time.Time) (*insight.Watch, error)
	recent(ctx context.Context, now time.Time) ([]audit.Coverage, error)
}

// storedWatches reads the watches from a flow store.
type storedWatches struct {
	flows  audit.Reader
	window time.Duration
}

func (w storedWatches) watch(ctx context.Context, now time.Time) (*insight.Watch, error) {
	out, err := insight.Watched(ctx, w.flows, now.Add(-w.window), now, nil)
	if err != nil {
		return nil, fmt.Errorf("ask how well members were watched: %w", err)
	}
	return out, nil
}

func (w storedWatches) recent(ctx context.Context, now time.Time) ([]audit.Coverage, error) {
	out, err := w.flows.Coverage(ctx, now.Add(-insight.RecentWatch), now)
	if err != nil {
		return nil, fmt.Errorf("ask what was watched lately: %w", err)
	}
	return out, nil
}

// cachedWatches are watches that are returned again for watchLifetime and assessmentLifetime. There is one value of each, without
// a key: nothing but the time decides it.
type cachedWatches struct {
	watches
	whole    latest[*insight.Watch]
	recently latest[[]audit.Coverage]
}

func (c *cachedWatches) watch(ctx context.Context, now time.Time) (*insight.Watch, error) {
	return c.whole.get(ctx, now, watchLifetime, c.watches.watch)
}

func (c *cachedWatches) recent(ctx context.Context, now time.Time) ([]audit.Coverage, error) {
	return c.recently.get(ctx, now, assessmentLifetime, c.watches.recent)
}

// latest is a value that is read again when it is too old. The zero value was never read.
type latest[T any] struct {
	mu    sync.Mutex
	value T
	at    time.Time
}

// get returns the value, which is at most as old as lifetime. Errors are not kept.
func (l *latest[T]) get(ctx context.Context, now time.Time, lifetime time.Duration, read func(context.Context, time.Time) (T, error)) (T, error) {
	l.mu.Lock()
	value, at := l.value, l.at
	l.mu.Unlock()
	if isFresh(at, now, lifetime) {
		return value, nil
	}
	value, err := read(ctx, now)
	if err != nil {
		return value, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.value, l.at = value, now
	return value, nil
}

// isFresh reports whether a value of an instant may be returned. A value of the future is not fresh: the clock was set back.
func isFresh(at, now time.Time, lifetime time.Duration) bool {
	age := now.Sub(at)
	return !at.IsZero() && age >= 0 && age < lifetime
}
