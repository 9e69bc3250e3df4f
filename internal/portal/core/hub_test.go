package core

import (
	"testing"

	"github.com/acp-io/acp/internal/approval"
)

func TestHubClosesSlowSubscriptions(t *testing.T) {
	h := NewHub()
	slow, cancel, _ := h.subscribe("alice")
	defer cancel()
	for i := range subscriberBuffer + 1 {
		h.Ticket(&approval.Ticket{Number: int64(i + 1), Version: 1})
	}
	n := 0
	for range slow {
		n++
	}
	if n != subscriberBuffer || len(h.subs) != 0 {
		t.Errorf("a stream that is behind is closed after its buffer: %d read, %d left", n, len(h.subs))
	}
}

func TestHubSendsAVersionOnce(t *testing.T) {
	h := NewHub()
	ch, cancel, _ := h.subscribe("alice")
	for _, v := range []int64{1, 2, 2, 1, 3} {
		h.Ticket(&approval.Ticket{Number: 1, Version: v})
	}
	cancel()
	var got []int64
	for n := range ch {
		got = append(got, n.ticket.Version)
	}
	if len(got) != 3 || got[2] != 3 {
		t.Errorf("what another replica sent is sent again: %v", got)
	}
}

func TestHubBoundsAPerson(t *testing.T) {
	h := NewHub()
	var last func()
	for range streamsPerPerson {
		_, cancel, ok := h.subscribe("alice")
		if !ok {
			t.Fatal("as many as a person has pages")
		}
		last = cancel
	}
	if _, _, ok := h.subscribe("alice"); ok {
		t.Error("one person must not take every connection")
	}
	if _, _, ok := h.subscribe("bob"); !ok {
		t.Error("others are not concerned")
	}
	last()
	if _, _, ok := h.subscribe("alice"); !ok {
		t.Error("a closed page makes room")
	}
}
