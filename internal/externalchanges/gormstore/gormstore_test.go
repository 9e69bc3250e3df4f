package gormstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/externalchanges/event"
	"github.com/acp-io/acp/internal/externalchanges/gormstore"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
)

// cluster is a host cluster with the Events of the webhook.
type cluster struct {
	mu       sync.Mutex
	objects  map[externalchanges.Key]externalchanges.LiveObject
	reported []event.Change
	watch    []*externalchanges.Recorder
	away     time.Time // since when the cluster does not answer
	clock    func() time.Time
	// instructions are the last ones, by the names of the objects.
	instructions map[string]externalchanges.Instructed
}

func (c *cluster) Ready() bool { return true }

func (c *cluster) ObjectRows(context.Context) ([]externalchanges.Row, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []externalchanges.Row
	for _, o := range c.objects {
		out = append(out, o.Row)
	}
	return out, nil
}

func (c *cluster) ObjectNow(_ context.Context, k externalchanges.Key) (*externalchanges.LiveObject, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.objects[k]; ok {
		return &o, nil
	}
	return nil, nil
}

func (c *cluster) CachedContent(_ context.Context, k externalchanges.Key) (*externalchanges.RecordedObject, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.objects[k]; ok {
		return &externalchanges.RecordedObject{Row: o.Row, Content: o.Content}, nil
	}
	return nil, nil
}

func (c *cluster) AwaySince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away
}

func (c *cluster) ReportedChanges(context.Context, map[string]bool) ([]event.Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reported), nil
}

func (c *cluster) Instructions(context.Context) ([]externalchanges.Instructed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.instructions)), nil
}

var key = externalchanges.Key{Kind: "AccessControlPolicy", Name: "bobs"}

// write is a change by a user; without a user, the webhook reports no Event.
func (c *cluster) write(uid string, generation int64, user string) {
	c.mu.Lock()
	o := externalchanges.LiveObject{Row: externalchanges.Row{Key: key, UID: uid, Generation: generation}, Digest: "d", Manager: "kubectl"}
	o.Spec = json.RawMessage(fmt.Sprintf(`{"statements":[{"sid":"always"},{"sid":"g%d"}]}`, generation))
	c.objects[key] = o
	operation := event.Update
	if generation == 1 {
		operation = event.Create
	}
	if user != "" {
		c.reported = append(c.reported, event.Change{At: c.clock(), User: user, UID: uid, Operation: operation, Generation: generation, Digest: "d"})
	}
	c.mu.Unlock()
	for _, r := range c.watch {
		r.Notice(o.Row, true, func() externalchanges.Content { return o.Content })
	}
}

func (c *cluster) remove(user string) {
	c.mu.Lock()
	o := c.objects[key]
	delete(c.objects, key)
	c.reported = append(c.reported, event.Change{At: c.clock(), User: user, UID: o.UID, Operation: event.Delete, Generation: o.Generation})
	c.mu.Unlock()
	for _, r := range c.watch {
		r.Notice(o.Row, false, func() externalchanges.Content { return o.Content })
	}
}

// scene is a cluster with portals that share one database.
type scene struct {
	t *testing.T
	*cluster
	db    *database.DB
	store *gormstore.Store
	now   time.Time
}

func newScene(t *testing.T, dsn string) *scene {
	db := databasetest.Open(t, dsn)
	s := &scene{
		t:       t,
		cluster: &cluster{objects: map[externalchanges.Key]externalchanges.LiveObject{}, instructions: map[string]externalchanges.Instructed{}},
		db:      db,
		store:   gormstore.New(db),
		now:     time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC),
	}
	s.clock = func() time.Time { return s.now }
	return s
}

func (s *scene) portals(n int) {
	s.t.Helper()
	s.watch = nil
	for range n {
		s.watch = append(s.watch, &externalchanges.Recorder{Host: s, Store: s.store, Now: func() time.Time { return s.now }, Log: slog.New(slog.DiscardHandler),
			Settle: 5 * time.Second, Every: time.Second, Compare: time.Hour})
	}
	s.step()
}

// step runs Step of all portals at the same time.
func (s *scene) step() {
	s.t.Helper()
	var all sync.WaitGroup
	for _, r := range s.watch {
		all.Go(func() {
			if err := r.Step(s.t.Context()); err != nil {
				s.t.Error(err)
			}
		})
	}
	all.Wait()
}

func (s *scene) after(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	s.step()
	s.step() // A portal whose write was refused tries again.
}

func (s *scene) want(want ...string) {
	s.t.Helper()
	lines, _, err := ledgerstore.NewReader(s.db).List(s.t.Context(), ledger.Filter{})
	if err != nil {
		s.t.Fatal(err)
	}
	var got []string
	for _, l := range slices.Backward(lines) {
		e, err := l.Entry()
		if err != nil {
			s.t.Fatal(err)
		}
		got = append(got, e.Action+" "+e.Object+" "+e.Actor+" "+e.Details["generation"])
	}
	if d := cmp.Diff(want, got); d != "" {
		s.t.Fatal(d)
	}
}

func TestChangesAreRecorded(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn)
		s.write("u1", 7, "alice")
		s.portals(2)
		s.want() // Objects that existed before have no entries.

		s.write("u1", 8, "alice")
		s.after(time.Second)
		s.want() // The change waits for the Event.
		s.after(5 * time.Second)
		want := []string{"object.updated AccessControlPolicy/bobs kubernetes:alice 8"}
		s.want(want...)

		s.write("u1", 9, "")
		s.after(6 * time.Second)
		want = append(want, "object.updated AccessControlPolicy/bobs unknown 9")
		s.want(want...)

		s.remove("bob")
		s.after(6 * time.Second)
		want = append(want, "object.deleted AccessControlPolicy/bobs kubernetes:bob 9")
		s.want(want...)

		s.write("u2", 1, "carol") // exists for a moment only
		s.remove("carol")
		s.after(6 * time.Second)
		want = append(want, "object.created AccessControlPolicy/bobs kubernetes:carol 1", "object.deleted AccessControlPolicy/bobs kubernetes:carol 1")
		s.want(want...)
		s.after(2 * time.Hour)
		s.want(want...)
	})
}

func TestOwnChangesAreNotRecorded(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn)
		s.portals(2)
		own := func(generation int64) {
			t.Helper()
			for range 2 { // The change may be noted twice.
				if err := s.store.AddOwnChange(t.Context(), externalchanges.OwnChange{UID: "u1", Generation: generation}); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.write("u1", 1, "")
		own(1)
		s.after(6 * time.Second)
		s.write("u1", 2, "alice")
		s.write("u1", 3, "")
		own(3)
		s.after(6 * time.Second)
		s.want("object.updated AccessControlPolicy/bobs kubernetes:alice 2")
		own(externalchanges.Deletion)
		s.remove("the portal")
		s.after(6 * time.Second)
		s.want("object.updated AccessControlPolicy/bobs kubernetes:alice 2")
	})
}

func TestRestartCatchesUp(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn)
		s.write("u1", 1, "alice")
		s.portals(1)
		s.watch = nil // No portal runs.
		s.write("u1", 2, "")
		s.write("u1", 3, "alice")
		s.portals(2)
		s.after(6 * time.Second)
		want := []string{"object.updated AccessControlPolicy/bobs unknown 2", "object.updated AccessControlPolicy/bobs kubernetes:alice 3"}
		s.want(want...)
		s.watch = nil
		s.remove("bob")
		s.portals(2)
		s.after(6 * time.Second)
		want = append(want, "object.deleted AccessControlPolicy/bobs kubernetes:bob 3")
		s.want(want...)
		s.watch = nil
		s.write("u9", 1, "")
		s.portals(2)
		s.after(6 * time.Second)
		s.want(append(want, "object.created AccessControlPolicy/bobs unknown 1")...)
	})
}
