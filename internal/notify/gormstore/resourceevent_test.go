package gormstore

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/notify"
)

// TestResourceEvent verifies that an event of a resource reaches the inboxes of its recipients, each with their own items, once.
func TestResourceEvent(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		b := notify.ResourceEvent{
			Event: "cache/announced/1",
			At:    start,
			Facts: notify.Facts{Event: "announced", ActorID: "bob", Comment: "on Monday", Page: "resources/cache",
				Items: []notify.About{{Resource: "Cache"}}},
			People: map[string][]notify.About{"alice": {{Application: "Cart", Resource: "Cache"}}, "bob": nil, "sam": nil},
		}
		for range 2 { // stored twice
			if err := s.db.Write(t.Context(), func(tx *gorm.DB) error { return EnqueueResourceEvent(tx, b) }); err != nil {
				t.Fatal(err)
			}
		}
		r := notify.NewRouter(
			notify.RouterConfig{Store: s, Now: func() time.Time { return start }, Log: slog.New(slog.DiscardHandler), Gone: func(error) bool { return false },
				People: func(context.Context) (notify.People, error) {
					return notify.Directory{Catalog: &catalog.Catalog{}}, nil
				}},
		)
		if err := r.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for _, person := range []string{"alice", "bob", "sam"} {
			notices, _, err := s.Inbox(t.Context(), notify.InboxFilter{Person: person})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range notices {
				got[person] = append(got[person], string(n.Kind)+" "+n.Facts.Items[0].String())
			}
		}
		want := map[string][]string{"alice": {"rollout Cart → Cache"}, "sam": {"rollout Cache"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("recipients without the actor: %s", diff)
		}
	})
}
