package portal

import (
	"net/http"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/notify"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// createUndelivered creates an undelivered notification to bob about T-1.
func (x *site) createUndelivered(t *testing.T) {
	t.Helper()
	if a := x.as("alice").Post("/api/v1/tickets", newTicket("app-888", "bobs-cluster")); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	s, now := notifystore.New(x.db), x.now()
	changes, err := s.Changes(t.Context(), 1)
	if err != nil || len(changes) != 1 {
		t.Fatalf("%v %v", changes, err)
	}
	letter := notify.QueuedMessage{Message: notify.Message{Person: "bob", Event: "T-1/submitted", Kind: notify.KindNeeded, At: now, Ticket: 1,
		Facts: notify.Facts{Event: "submitted", Reason: "a secret reason"}}, Channel: notify.ChannelMail, RunAfter: now}
	if err := s.Route(t.Context(), notify.Routed{Change: changes[0], Messages: []notify.QueuedMessage{letter}}); err != nil {
		t.Fatal(err)
	}
	d, err := s.Lease(t.Context(), notify.ChannelMail, "w", now, time.Minute)
	if err != nil || len(d) != 1 {
		t.Fatalf("%v %v", d, err)
	}
	if err := s.MarkDead(t.Context(), d, now, "550 no such mailbox"); err != nil {
		t.Fatal(err)
	}
}

// TestUndelivered checks who sees undelivered notifications, and who may send them again.
func TestUndelivered(t *testing.T) {
	x := newSite(t)
	x.createUndelivered(t)
	const path = "/api/v1/notifications/undelivered"
	for who, want := range map[string]int{"alice": http.StatusForbidden, "bob": http.StatusForbidden, "dave": http.StatusOK, "grace": http.StatusOK} {
		if a := x.as(who).Get(path); a.Status != want {
			t.Errorf("%s: %d %s", who, a.Status, a.Body)
		}
	}
	dave := x.as("dave")
	var list openapi.UndeliveredList
	dave.Get(path).Into(t, &list)
	if len(list.Items) != 1 {
		t.Fatalf("%+v", list)
	}
	l := list.Items[0]
	if l.Person == nil || l.Person.Id != "bob" || l.Channel != "mail" || l.Ticket == nil || *l.Ticket != "T-1" || l.Attempts != 1 ||
		l.Problem != "550 no such mailbox" {
		t.Errorf("%+v", l)
	}
	for name, tc := range map[string]struct {
		reason, who string
		body        map[string]any
		status      int
		count       int64
	}{
		"Person":  {"only security administrators may", "alice", map[string]any{}, http.StatusForbidden, 0},
		"Auditor": {"an auditor changes nothing", "grace", map[string]any{}, http.StatusForbidden, 0},
		"BadID":   {"not an id", "dave", map[string]any{"ids": []string{"x"}}, http.StatusUnprocessableEntity, 0},
		"None":    {"an empty list is not all", "dave", map[string]any{"ids": []string{}}, http.StatusOK, 0},
		"Unknown": {"no notification has this id", "dave", map[string]any{"ids": []string{"4711"}}, http.StatusOK, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := x.as(tc.who).Post(path, tc.body)
			if a.Status != tc.status {
				t.Fatalf("%s: %d %s", tc.reason, a.Status, a.Body)
			}
			var got openapi.RetriedUndelivered
			if a.Into(t, &got); got.Count != tc.count {
				t.Errorf("%s: %d", tc.reason, got.Count)
			}
		})
	}
	var got openapi.RetriedUndelivered
	dave.Post(path, map[string]any{"ids": []string{l.Id}}).Into(t, &got)
	if dave.Get(path).Into(t, &list); got.Count != 1 || len(list.Items) != 0 {
		t.Errorf("the notification is still undelivered: %d, %+v", got.Count, list.Items)
	}
	d, err := notifystore.New(x.db).Lease(t.Context(), notify.ChannelMail, "w", x.now(), time.Minute)
	if err != nil || len(d) != 1 || d[0].Attempts != 1 {
		t.Errorf("got delivery %+v %v, want it leased to a dispatcher", d, err)
	}
}
