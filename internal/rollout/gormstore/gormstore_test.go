package gormstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/notify"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/rollout"
)

var start = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

func TestStore(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		s, ctx := New(db), t.Context()
		limit := int64(3)
		news := rollout.News{
			Entries:        []ledger.Entry{{At: start, Actor: "bob", Action: "resource.announced", Object: "a"}},
			ResourceEvents: []notify.ResourceEvent{{Event: "a/1", At: start}},
		}
		want := rollout.State{
			Announcement: &rollout.Announcement{At: start, By: "bob", Message: "soon"},
			Guard:        rollout.Guard{Limit: &limit},
			Enforced:     map[string]time.Time{"m1": start},
			FleetDowngrades: []rollout.FleetDowngradeLease{
				{ID: "x", Scope: "class/redis", Until: start.Add(time.Microsecond), Stopped: true}, {ID: "y", Scope: "all", Resume: true, Until: start},
			},
		}
		for range 2 {
			got, err := s.Change(ctx, "a", func(x *rollout.State) (rollout.News, error) { *x = want; return news, nil })
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("%v %s", err, diff)
			}
		}
		no := errors.New("no")
		if _, err := s.Change(ctx, "a", func(x *rollout.State) (rollout.News, error) { *x = rollout.State{}; return news, no }); !errors.Is(err, no) {
			t.Errorf("an error is returned as it is: %v", err)
		}
		if _, err := s.Change(ctx, "b", func(x *rollout.State) (rollout.News, error) { x.Guard.Off = true; return rollout.News{}, nil }); err != nil {
			t.Fatal(err)
		}
		if err := s.Record(ctx, news); err != nil {
			t.Fatal(err)
		}
		all, err := s.States(ctx)
		if diff := cmp.Diff(map[string]rollout.State{"a": want, "b": {Guard: rollout.Guard{Off: true}}}, all); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		if some, err := s.States(ctx, "b", "c"); err != nil || len(some) != 1 {
			t.Errorf("by name: %v, %v", some, err)
		}
		last, _, err := ledgerstore.NewReader(db).Last(ctx)
		changes, err2 := notifystore.New(db).Changes(ctx, 10)
		if err := errors.Join(err, err2); err != nil || last.Seq != 3 || len(changes) != 3 {
			t.Errorf("what failed left nothing: %d lines, %d events of resources, %v", last.Seq, len(changes), err)
		}
	})
}

func TestLead(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		s := New(databasetest.Open(t, dsn))
		for i, tc := range []struct {
			reason, who string
			after       time.Duration
			want        bool
		}{
			{"nobody does", "a", 0, true}, {"somebody does", "b", time.Second, false}, {"goes on", "a", 2 * time.Second, true},
			{"its time is not over", "b", 4 * time.Second, false}, {"its time is over", "b", 5 * time.Second, true},
			{"comes back too late", "a", 6 * time.Second, false},
			{"a clock that is a little behind", "a", -time.Minute + 5*time.Second, false}, {"the holder's clock was ahead", "a", -10 * time.Minute, true},
		} {
			if got, err := s.Lead(t.Context(), tc.who, start.Add(tc.after), 3*time.Second); err != nil || got != tc.want {
				t.Errorf("%d, %s: %v, %v", i, tc.reason, got, err)
			}
		}
	})
}

// TestUnreadableState checks that a state which cannot be decoded is returned as such, does not affect the others, and is not overwritten.
func TestUnreadableState(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t))
	s, ctx := New(db), t.Context()
	off := func(x *rollout.State) (rollout.News, error) { x.Guard.Off = true; return rollout.News{}, nil }
	if _, err := s.Change(ctx, "a", off); err != nil {
		t.Fatal(err)
	}
	const damaged = `{"announcement": {"at": "2026-11-02T12:00:00Z"}, "guard": 7}`
	if err := db.Write(ctx, func(tx *gorm.DB) error { return tx.Create(&stateRow{Resource: "b", Body: damaged}).Error }); err != nil {
		t.Fatal(err)
	}
	want := map[string]rollout.State{"a": {Guard: rollout.Guard{Off: true}}, "b": {Unreadable: true}}
	if got, err := s.States(ctx); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v %s", err, cmp.Diff(want, got))
	}
	if _, err := s.Change(ctx, "b", off); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("a change of a state that cannot be read: %v", err)
	}
	if got, err := s.States(ctx, "b"); err != nil || !got["b"].Unreadable {
		t.Errorf("the state was overwritten: %v, %v", got, err)
	}
}
