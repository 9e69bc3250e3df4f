package gormstore

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/notify"
)

var (
	start = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	_     = notify.Store(&Store{})
)

func each(t *testing.T, f func(t *testing.T, s *Store)) {
	databasetest.Each(t, func(t *testing.T, dsn string) { f(t, New(databasetest.Open(t, dsn))) })
}

func queuedMessage(person, event string, c notify.Channel) notify.QueuedMessage {
	return notify.QueuedMessage{Message: notify.Message{
		Person: person,
		Event:  event,
		Kind:   notify.KindNeeded,
		At:     start,
		Ticket: 7,
		Facts: notify.Facts{
			Event:     "submitted",
			Requester: "王磊",
			Items:     []notify.About{{Application: "orders", Resource: "cache"}},
		},
	}, Channel: c, RunAfter: start}
}

func enqueue(t *testing.T, s *Store) notify.Change {
	t.Helper()
	if err := s.db.Write(t.Context(), func(tx *gorm.DB) error { return EnqueueDelegation(tx, 3) }); err != nil {
		t.Fatal(err)
	}
	changes, err := s.Changes(t.Context(), 1000)
	if err != nil || len(changes) == 0 {
		t.Fatalf("%+v %v", changes, err)
	}
	return changes[len(changes)-1]
}

func route(t *testing.T, s *Store, messages ...notify.QueuedMessage) {
	t.Helper()
	if err := s.Route(t.Context(), notify.Routed{Change: enqueue(t, s), Messages: messages}); err != nil {
		t.Fatal(err)
	}
}

func lease(t *testing.T, s *Store, c notify.Channel, worker string, at time.Time) []notify.Delivery {
	t.Helper()
	d, err := s.Lease(t.Context(), c, worker, at, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRoutingAChangeTwiceStoresItOnce(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		enqueue(t, s)
		enqueue(t, s)
		changes, err := s.Changes(t.Context(), 10)
		if err != nil || len(changes) != 2 || changes[0].Delegation != 3 || changes[0].Ticket != 0 {
			t.Fatalf("%+v %v", changes, err)
		}
		// two replicas route the same change, and there are two changes of one event.
		for _, c := range []notify.Change{changes[0], changes[0], changes[1]} {
			if err := s.Route(
				t.Context(),
				notify.Routed{
					Change: c,
					Messages: []notify.QueuedMessage{
						queuedMessage("bob", "D-3/begun", notify.ChannelInbox),
						queuedMessage("bob", "D-3/begun", notify.ChannelMail),
					},
				},
			); err != nil {
				t.Fatal(err)
			}
		}
		if left, err := s.Changes(t.Context(), 10); err != nil || len(left) != 0 {
			t.Errorf("got outbox %v %v, want it empty", left, err)
		}
		if n, err := s.Unread(t.Context(), "bob"); err != nil || n != 1 {
			t.Errorf("got %d notices %v, want 1", n, err)
		}
		first := lease(t, s, notify.ChannelMail, "w", start)
		if len(first) != 1 || len(lease(t, s, notify.ChannelMail, "w", start)) != 0 {
			t.Errorf("got %+v, want one mail", first)
		}
		if d := cmp.Diff(queuedMessage("bob", "D-3/begun", notify.ChannelMail), first[0].QueuedMessage); d != "" {
			t.Errorf("message (-stored +read): %s", d)
		}
	})
}

func TestInbox(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for i := range 5 {
			route(t, s, queuedMessage("bob", fmt.Sprint("e", i), notify.ChannelInbox), queuedMessage("bob", fmt.Sprint("e", i), notify.ChannelMail),
				queuedMessage("eve", fmt.Sprint("e", i), notify.ChannelInbox))
		}
		page, next, err := s.Inbox(t.Context(), notify.InboxFilter{Person: "bob", Limit: 3})
		if err != nil || len(page) != 3 || next == 0 || page[0].Event != "e4" || page[0].Read {
			t.Fatalf("first page: got %+v %d %v", page, next, err)
		}
		rest, last, err := s.Inbox(t.Context(), notify.InboxFilter{Person: "bob", Limit: 3, Before: next})
		if err != nil || len(rest) != 2 || last != 0 || rest[1].Event != "e0" {
			t.Fatalf("second page: got %+v %d %v", rest, last, err)
		}
		// Other people cannot mark these notices.
		if err := s.Mark(t.Context(), "eve", []int64{page[0].ID, page[1].ID}, true, start); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Unread(t.Context(), "bob"); err != nil || n != 5 {
			t.Errorf("got %d unread %v, want no change", n, err)
		}
		for _, read := range []bool{true, false, true} {
			if err := s.Mark(t.Context(), "bob", []int64{page[0].ID}, read, start); err != nil {
				t.Fatal(err)
			}
			want := map[bool]int{true: 4, false: 5}[read]
			if n, err := s.Unread(t.Context(), "bob"); err != nil || n != want {
				t.Errorf("want %d unread, got %d %v", want, n, err)
			}
		}
		unread, _, err := s.Inbox(t.Context(), notify.InboxFilter{Person: "bob", Unread: true})
		if err != nil || len(unread) != 4 || unread[0].Event != "e3" {
			t.Errorf("unread notices: got %+v %v", unread, err)
		}
		if err := s.MarkAllRead(t.Context(), "bob", unread[1].ID, start); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Unread(t.Context(), "bob"); err != nil || n != 1 {
			t.Errorf("after MarkAllRead up to an ID: got %d unread %v", n, err)
		}
		if err := s.MarkAllRead(t.Context(), "bob", 0, start); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Unread(t.Context(), "bob"); err != nil || n != 0 {
			t.Errorf("after MarkAllRead: got %d unread %v", n, err)
		}
		if n, err := s.Unread(t.Context(), "eve"); err != nil || n != 5 {
			t.Errorf("notices of another person: got %d unread %v", n, err)
		}
		if err := s.Prune(t.Context(), start.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if all, _, err := s.Inbox(t.Context(), notify.InboxFilter{Person: "bob"}); err != nil || len(all) != 0 {
			t.Errorf("after Prune: got %+v %v", all, err)
		}
		if n, err := s.Unread(t.Context(), "eve"); err != nil || n != 5 || len(lease(t, s, notify.ChannelMail, "w", start)) != 1 {
			t.Errorf("after Prune: got %d unread %v", n, err)
		}
	})
}

func TestDeliveries(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		route(t, s, queuedMessage("bob", "e1", notify.ChannelMail))
		if got := lease(t, s, notify.ChannelMail, "a", start.Add(-time.Second)); len(got) != 0 {
			t.Errorf("got %+v before it is due", got)
		}
		if got := lease(t, s, notify.ChannelSlack, "a", start); len(got) != 0 {
			t.Errorf("got %+v on another channel", got)
		}
		first := lease(t, s, notify.ChannelMail, "a", start)
		if len(first) != 1 || first[0].Attempts != 1 || len(lease(t, s, notify.ChannelMail, "b", start.Add(59*time.Second))) != 0 {
			t.Fatalf("first lease: got %+v", first)
		}
		// The dispatcher was paused for longer than its lease.
		second := lease(t, s, notify.ChannelMail, "b", start.Add(time.Minute))
		if len(second) != 1 || second[0].Attempts != 2 {
			t.Fatalf("second lease: got %+v", second)
		}
		if err := s.Sent(t.Context(), first, start); !errors.Is(err, notify.ErrLeaseLost) {
			t.Errorf("Sent without the lease: got %v, want ErrLeaseLost", err)
		}
		if err := s.Postpone(t.Context(), second, start.Add(time.Hour), "no answer"); err != nil {
			t.Fatal(err)
		}
		if got := lease(t, s, notify.ChannelMail, "b", start.Add(30*time.Minute)); len(got) != 0 {
			t.Errorf("got %+v before the postponed time", got)
		}
		third := lease(t, s, notify.ChannelMail, "b", start.Add(time.Hour))
		if err := s.MarkDead(t.Context(), third, start, "gone"); err != nil {
			t.Fatal(err)
		}
		if got := lease(t, s, notify.ChannelMail, "b", start.Add(9*time.Hour)); len(got) != 0 {
			t.Errorf("got %+v after MarkDead", got)
		}
		if err := s.Sent(t.Context(), third, start); !errors.Is(err, notify.ErrLeaseLost) {
			t.Errorf("Sent after MarkDead: got %v, want ErrLeaseLost", err)
		}
		route(
			t,
			s,
			queuedMessage("bob", "e2", notify.ChannelMail),
			queuedMessage("bob", "e3", notify.ChannelMail),
			queuedMessage("", "e3", "webhook:x"),
			queuedMessage("bob", "e3", notify.ChannelInbox),
		)
		enqueue(t, s)
		waiting, changes, err := s.QueueStats(t.Context())
		want := []notify.QueueStats{{Channel: notify.ChannelMail, Queued: 2, Dead: 1, Oldest: start}, {Channel: "webhook:x", Queued: 1, Oldest: start}}
		if d := cmp.Diff(want, waiting); err != nil || d != "" || changes != 1 {
			t.Errorf("QueueStats: got %d changes, %v, diff %s", changes, err, d)
		}
	})
}

func TestDigestIsLeasedTogether(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for i, p := range []string{"bob", "eve", "bob", "bob"} {
			x := queuedMessage(p, fmt.Sprint("e", i), notify.ChannelMail)
			x.Digest, x.RunAfter = true, start.Add(time.Hour)
			route(t, s, x)
		}
		now := queuedMessage("bob", "now", notify.ChannelMail)
		route(t, s, now)
		if got := lease(t, s, notify.ChannelMail, "w", start); len(got) != 1 || got[0].Event != "now" {
			t.Errorf("got %+v before the digest hour", got)
		}
		got := lease(t, s, notify.ChannelMail, "w", start.Add(time.Hour))
		if len(got) != 1 || got[0].Event != "now" {
			t.Fatalf("got %+v, want the queued message whose lease ended first", got)
		}
		bob := lease(t, s, notify.ChannelMail, "w", start.Add(time.Hour))
		if len(bob) != 3 || bob[0].Event != "e0" || bob[2].Event != "e3" {
			t.Fatalf("got %+v, want all messages of one person", bob)
		}
		if eve := lease(t, s, notify.ChannelMail, "w", start.Add(time.Hour)); len(eve) != 1 || eve[0].Person != "eve" {
			t.Errorf("got %+v, want those of the other person", eve)
		}
		if err := s.Sent(t.Context(), bob, start); err != nil {
			t.Error(err)
		}
	})
}

func TestReplicasShareTheWork(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		const many, replicas = 40, 3
		first := New(databasetest.Open(t, dsn))
		for i := range many {
			route(t, first, queuedMessage("bob", fmt.Sprint("e", i), notify.ChannelMail))
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		got := map[string]int{}
		for i := range replicas {
			s := New(databasetest.Open(t, dsn))
			all.Go(func() {
				for {
					d, err := s.Lease(t.Context(), notify.ChannelMail, fmt.Sprint("w", i), start, time.Minute)
					if err != nil {
						t.Error(err)
						return
					}
					if len(d) == 0 {
						return
					}
					mu.Lock()
					got[d[0].Event]++
					mu.Unlock()
					if err := s.Sent(t.Context(), d, start); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		// With SKIP LOCKED a replica may find nothing while another one holds the last row, but the holder finishes it.
		for e, n := range got {
			if n != 1 {
				t.Errorf("got %[2]d leases of %[1]s, want 1", e, n)
			}
		}
		if len(got) != many {
			t.Errorf("got %d leased messages of %d", len(got), many)
		}
	})
}

func TestPreferences(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		p := notify.Preferences{Language: notify.Chinese, TimeZone: "Asia/Shanghai", DigestHour: new(8),
			Choices: map[notify.Channel]map[notify.Kind]notify.Timing{notify.ChannelMail: {notify.KindNeeded: notify.Digest}}}
		for _, x := range []notify.Preferences{{}, p} {
			if err := s.SetPreferences(t.Context(), "bob", x, start); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Preferences(t.Context(), "bob", "eve")
		if d := cmp.Diff(map[string]notify.Preferences{"bob": p}, got); err != nil || d != "" {
			t.Errorf("got error %v, diff %s", err, d)
		}
	})
}

func TestDeadLettersAreListedAndRequeued(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for i := range 4 {
			route(t, s, queuedMessage("bob", fmt.Sprint("e", i), notify.ChannelMail))
		}
		route(t, s, queuedMessage("", "e9", "webhook:x"), queuedMessage("bob", "e9", notify.ChannelInbox))
		for range 3 {
			if err := s.MarkDead(t.Context(), lease(t, s, notify.ChannelMail, "w", start), start.Add(time.Hour), "no such mailbox"); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.MarkDead(t.Context(), lease(t, s, "webhook:x", "w", start), start, "gone"); err != nil {
			t.Fatal(err)
		}
		all, next, err := s.DeadLetters(t.Context(), notify.DeadFilter{Limit: 3})
		if err != nil || len(all) != 3 || next == 0 || all[0].Channel != "webhook:x" || all[1].Problem != "no such mailbox" || all[1].Attempts != 1 ||
			!all[1].GivenUp.Equal(start.Add(time.Hour)) || all[1].Person != "bob" {
			t.Fatalf("%+v %d %v", all, next, err)
		}
		rest, last, err := s.DeadLetters(t.Context(), notify.DeadFilter{Limit: 3, Before: next})
		if err != nil || len(rest) != 1 || last != 0 {
			t.Errorf("second page: got %+v %d %v", rest, last, err)
		}
		mails, _, err := s.DeadLetters(t.Context(), notify.DeadFilter{Channel: notify.ChannelMail})
		if err != nil || len(mails) != 3 {
			t.Errorf("one channel: got %+v %v", mails, err)
		}
		inboxed, _, err := s.Inbox(t.Context(), notify.InboxFilter{Person: "bob"})
		if err != nil || len(inboxed) != 1 {
			t.Fatalf("%+v %v", inboxed, err)
		}
		if n, err := s.Requeue(t.Context(), []int64{mails[0].ID, inboxed[0].ID, 4711}, start); err != nil || n != 1 {
			t.Errorf("Requeue of one dead and other IDs: got %d %v, want 1", n, err)
		}
		// The fourth mail was never tried and is due as well.
		if got := append(
			lease(t, s, notify.ChannelMail, "w", start),
			lease(t, s, notify.ChannelMail, "w", start)...); len(got) != 2 || got[0].Attempts != 1 ||
			got[1].Attempts != 1 {
			t.Errorf("got %+v, want no attempts counted", got)
		}
		if n, err := s.Requeue(t.Context(), []int64{}, start); err != nil || n != 0 {
			t.Errorf("Requeue without IDs: got %d %v, want 0", n, err)
		}
		if n, err := s.Requeue(t.Context(), nil, start); err != nil || n != 3 {
			t.Errorf("Requeue of all: got %d %v", n, err)
		}
	})
}

func TestArrivalsOfAllInboxes(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		if none, err := s.Arrived(t.Context(), -1, 10); err != nil || len(none) != 0 {
			t.Errorf("%+v %v", none, err)
		}
		route(t, s, queuedMessage("bob", "e1", notify.ChannelInbox), queuedMessage("bob", "e1", notify.ChannelMail))
		newest, err := s.Arrived(t.Context(), -1, 10)
		if err != nil || len(newest) != 1 || newest[0].Person != "bob" {
			t.Fatalf("newest: got %+v %v", newest, err)
		}
		route(
			t,
			s,
			queuedMessage("eve", "e2", notify.ChannelInbox),
			queuedMessage("bob", "e2", notify.ChannelInbox),
			queuedMessage("bob", "e2", notify.ChannelMail),
		)
		later, err := s.Arrived(t.Context(), newest[0].ID, 10)
		if err != nil || len(later) != 2 || later[0].Person != "eve" || later[1].Person != "bob" || later[0].ID >= later[1].ID {
			t.Errorf("later ones: got %+v %v", later, err)
		}
		if first, err := s.Arrived(t.Context(), newest[0].ID, 1); err != nil || len(first) != 1 || first[0] != later[0] {
			t.Errorf("limit: got %+v %v", first, err)
		}
	})
}
