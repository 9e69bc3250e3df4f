package core

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/notify"
)

// shelf has notices that become visible in any order, as transactions commit.
type shelf struct {
	people map[int64]string
	err    error
}

func (s *shelf) Arrived(_ context.Context, after int64, limit int) ([]notify.Arrival, error) {
	ids := slices.Sorted(maps.Keys(s.people))
	if after < 0 && len(ids) > 0 {
		ids = ids[len(ids)-1:]
	}
	var out []notify.Arrival
	for _, id := range ids {
		if id > after && len(out) < limit {
			out = append(out, notify.Arrival{ID: id, Person: s.people[id]})
		}
	}
	return out, s.err
}

func TestInboxesAreFollowed(t *testing.T) {
	s := &shelf{people: map[int64]string{1: "old"}}
	f := &inboxFollower{inboxes: s}
	look := func() (told []string, err error) {
		err = f.poll(t.Context(), func(p string) { told = append(told, p) })
		slices.Sort(told)
		return told, err
	}
	for _, step := range []struct {
		reason string
		change func()
		want   []string
		fails  bool
	}{
		{"what is there at the start is no news", func() {}, nil, false},
		{"nothing happened", func() {}, nil, false},
		{"each person once", func() { s.people[5], s.people[6], s.people[7] = "bob", "eve", "bob" }, []string{"bob", "eve"}, false},
		{"once only", func() {}, nil, false},
		{"an older id that was committed later", func() { s.people[3] = "carol" }, []string{"carol"}, false},
		{"the store is away", func() { s.people[8], s.err = "bob", errors.New("away") }, nil, true},
		{"and is back", func() { s.err = nil }, []string{"bob"}, false},
		{"more than the overlap", func() { s.people[900] = "dave" }, []string{"dave"}, false},
		{"what is older than the overlap is not sent again", func() {}, nil, false},
	} {
		step.change()
		told, err := look()
		if diff := cmp.Diff(step.want, told); diff != "" || (err != nil) != step.fails {
			t.Errorf("%s: %v (-want +got)\n%s", step.reason, err, diff)
		}
	}
}

func TestInboxEventsAreForOnePerson(t *testing.T) {
	h := NewHub()
	bob, cancel, _ := h.subscribe("bob")
	h.Inbox("erin")
	h.Inbox("bob")
	cancel()
	var got []event
	for n := range bob {
		got = append(got, n)
	}
	if len(got) != 1 || got[0].inbox != "bob" {
		t.Errorf("bob gets events of other inboxes: %+v", got)
	}
}
