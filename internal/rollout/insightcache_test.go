package rollout

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
)

// countedAssessor is an assessor that records what it was asked. The resource "broken" is an error, after the others.
type countedAssessor struct{ asked [][]string }

var errBroken = errors.New("broken")

func (c *countedAssessor) assess(_ context.Context, resources []string, now time.Time) (map[string]assessed, error) {
	c.asked = append(c.asked, slices.Clone(resources))
	out := map[string]assessed{}
	for _, name := range resources {
		if name == "broken" {
			return out, errBroken
		}
		out[name] = assessed{at: now, Assessment: Assessment{Clients: []string{name}}}
	}
	return out, nil
}

// TestCachedAssessor checks that an assessment is returned for its resource only, not longer than assessmentLifetime, and not to a
// clock that was set back, and that neither errors nor what is too old is kept.
func TestCachedAssessor(t *testing.T) {
	at := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	counted := &countedAssessor{}
	c := &cachedAssessor{assessor: counted}
	for _, step := range []struct {
		reason    string
		resources []string
		at        time.Time
		asked     []string // of the assessor behind the cache; nil if it is not asked
		fails     bool
	}{
		{"nothing is known", []string{"a"}, at, []string{"a"}, false},
		{"another resource has another assessment", []string{"a", "b"}, at.Add(time.Second), []string{"b"}, false},
		{"both are known", []string{"a", "b"}, at.Add(assessmentLifetime - 1), nil, false},
		{"one is too old", []string{"a", "b"}, at.Add(assessmentLifetime), []string{"a"}, false},
		{"what came before the error is known", []string{"c", "broken"}, at.Add(assessmentLifetime), []string{"c", "broken"}, true},
		{"and the error is not", []string{"c", "broken"}, at.Add(assessmentLifetime), []string{"broken"}, true},
		{"the clock was set back", []string{"a"}, at.Add(-time.Hour), []string{"a"}, false},
	} {
		before := len(counted.asked)
		got, err := c.assess(t.Context(), step.resources, step.at)
		if step.fails != errors.Is(err, errBroken) {
			t.Errorf("%s: got the error %v", step.reason, err)
		}
		var asked []string
		for _, names := range counted.asked[before:] {
			asked = append(asked, names...)
		}
		if d := cmp.Diff(step.asked, asked); d != "" {
			t.Errorf("%s: asked (-want +got):\n%s", step.reason, d)
		}
		for _, name := range step.resources {
			if name != "broken" && !slices.Equal(got[name].Clients, []string{name}) {
				t.Errorf("%s: the assessment of %s is %+v", step.reason, name, got[name])
			}
		}
	}
	if _, err := c.assess(t.Context(), []string{"d"}, at.Add(time.Hour)); err != nil || len(c.known) != 1 {
		t.Errorf("%d assessments are kept, want the fresh one alone: %v", len(c.known), err)
	}
}

// countedWatches counts reads, and returns err if it is set.
type countedWatches struct {
	wholes, recents int
	err             error
}

func (c *countedWatches) watch(_ context.Context, now time.Time) (*insight.Watch, error) {
	c.wholes++
	return &insight.Watch{Until: now}, c.err
}

func (c *countedWatches) recent(context.Context, time.Time) ([]audit.Coverage, error) {
	c.recents++
	return []audit.Coverage{{Cluster: "m1"}}, c.err
}

func TestCachedWatches(t *testing.T) {
	at := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	counted := &countedWatches{err: errBroken}
	c := &cachedWatches{watches: counted}
	for _, step := range []struct {
		reason          string
		at              time.Time
		err             error
		wholes, recents int // reads so far
	}{
		{"an error", at, errBroken, 1, 1},
		{"which is not kept", at, nil, 2, 2},
		{"both are fresh", at.Add(assessmentLifetime - 1), nil, 2, 2},
		{"what was recent is too old", at.Add(assessmentLifetime), nil, 2, 3},
		{"both are too old", at.Add(watchLifetime), nil, 3, 4},
		{"the clock was set back", at.Add(-time.Second), nil, 4, 5},
	} {
		counted.err = step.err
		whole, err := c.watch(t.Context(), step.at)
		if !errors.Is(err, step.err) || err == nil && step.at.Sub(whole.Until) >= watchLifetime {
			t.Errorf("%s: the watch until %v, %v", step.reason, whole, err)
		}
		recent, err := c.recent(t.Context(), step.at)
		if !errors.Is(err, step.err) || err == nil && len(recent) != 1 {
			t.Errorf("%s: recent %v, %v", step.reason, recent, err)
		}
		if counted.wholes != step.wholes || counted.recents != step.recents {
			t.Errorf("%s: %d and %d reads, want %d and %d", step.reason, counted.wholes, counted.recents, step.wholes, step.recents)
		}
	}
}
