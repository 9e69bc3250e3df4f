// Package savedviewtest contains the suite that every implementation of savedview.Store passes.
package savedviewtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/savedview"
)

var start = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// Run runs the suite. The function open returns an empty store.
func Run(t *testing.T, open func(t *testing.T) savedview.Store) {
	t.Run("ViewsOfAPerson", func(t *testing.T) { testViews(t, open(t)) })
	t.Run("SameName", func(t *testing.T) { testSameName(t, open(t)) })
	t.Run("Delete", func(t *testing.T) { testDelete(t, open(t)) })
	t.Run("Limit", func(t *testing.T) { testLimit(t, open(t)) })
	t.Run("Share", func(t *testing.T) { testShare(t, open(t)) })
	t.Run("SavedAtOnce", func(t *testing.T) { testSavedAtOnce(t, open(t)) })
}

func view(page savedview.Page, name, query string, after time.Duration) savedview.View {
	return savedview.View{Page: page, Name: name, Query: query, SavedAt: start.Add(after)}
}

func save(t *testing.T, s savedview.Store, person string, v savedview.View) savedview.View {
	t.Helper()
	got, err := s.Save(t.Context(), person, v)
	if err != nil || got.ID == 0 {
		t.Fatalf("save %s: %+v, %v", v.Name, got, err)
	}
	return got
}

func expect(t *testing.T, s savedview.Store, person string, want ...savedview.View) {
	t.Helper()
	got, err := s.Views(t.Context(), person)
	if want == nil {
		want = []savedview.View{}
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("the views of %s: %v %s", person, err, diff)
	}
}

// testViews checks that a person has the own views of all pages, newest first.
func testViews(t *testing.T, s savedview.Store) {
	expect(t, s, "alice")
	a := save(t, s, "alice", view(savedview.PageFlows, "Denied", "decision=denied", 0))
	b := save(t, s, "alice", view(savedview.PageRequests, "Denied", "state=failed", time.Microsecond))
	c := save(t, s, "alice", view(savedview.PageFlows, "被拒绝", "q=%E8%A2%AB", time.Microsecond))
	d := save(t, s, "bob", view(savedview.PageFlows, "Denied", "port=80", 0))
	expect(t, s, "alice", c, b, a)
	expect(t, s, "bob", d)
}

// testSameName checks that a view replaces the one of the same name, and keeps its identity.
func testSameName(t *testing.T, s savedview.Store) {
	a := save(t, s, "alice", view(savedview.PageFlows, "Denied", "decision=denied", 0))
	b := save(t, s, "alice", view(savedview.PageFlows, "Other", "port=80", time.Second))
	again := save(t, s, "alice", view(savedview.PageFlows, "Denied", "decision=audited", time.Minute))
	if again.ID != a.ID {
		t.Errorf("the view has another ID: %d, was %d", again.ID, a.ID)
	}
	expect(t, s, "alice", again, b)
}

// testDelete checks that nobody removes the views of another person.
func testDelete(t *testing.T, s savedview.Store) {
	a := save(t, s, "alice", view(savedview.PageFlows, "Denied", "decision=denied", 0))
	for name, tc := range map[string]struct {
		person string
		id     int64
	}{"of another person": {"bob", a.ID}, "that does not exist": {"alice", a.ID + 1}} {
		if err := s.Delete(t.Context(), tc.person, tc.id); !errors.Is(err, savedview.ErrUnknown) {
			t.Errorf("a view %s: %v", name, err)
		}
	}
	expect(t, s, "alice", a)
	if err := s.Delete(t.Context(), "alice", a.ID); err != nil {
		t.Error(err)
	}
	expect(t, s, "alice")
}

// testShare checks that a view is found by its link while its person shares it, with its current content, and that nobody shares the views of another
// person.
func testShare(t *testing.T, s savedview.Store) {
	found := func(link string, want *savedview.Shared) {
		t.Helper()
		got, err := s.Shared(t.Context(), link)
		if want == nil {
			if !errors.Is(err, savedview.ErrNotShared) {
				t.Errorf("link %q: %+v, %v", link, got, err)
			}
			return
		}
		if diff := cmp.Diff(*want, got); err != nil || diff != "" {
			t.Errorf("link %q: %v %s", link, err, diff)
		}
	}
	a := save(t, s, "alice", view(savedview.PageFlows, "Denied", "decision=denied", 0))
	b := save(t, s, "alice", view(savedview.PageFlows, "Other", "port=80", time.Second))
	found("", nil)
	if _, err := s.Share(t.Context(), "bob", a.ID, "bobs"); !errors.Is(err, savedview.ErrUnknown) {
		t.Errorf("a view of another person is shared: %v", err)
	}
	found("bobs", nil)
	for _, link := range []string{"first", "second"} {
		got, err := s.Share(t.Context(), "alice", a.ID, link)
		if a.Link = "first"; err != nil || got != a {
			t.Errorf("shared with %s: %+v, %v", link, got, err)
		}
	}
	found("first", &savedview.Shared{View: a, Person: "alice"})
	found("second", nil)
	again := save(t, s, "alice", view(savedview.PageFlows, "Denied", "decision=audited", time.Minute))
	if again.Link != "first" {
		t.Errorf("a replaced view has the link %q", again.Link)
	}
	found("first", &savedview.Shared{View: again, Person: "alice"})
	expect(t, s, "alice", again, b)
	if err := s.Unshare(t.Context(), "bob", a.ID); !errors.Is(err, savedview.ErrUnknown) {
		t.Errorf("the sharing of another person is ended: %v", err)
	}
	found("first", &savedview.Shared{View: again, Person: "alice"})
	for range 2 {
		if err := s.Unshare(t.Context(), "alice", a.ID); err != nil {
			t.Error(err)
		}
		found("first", nil)
	}
	if got, err := s.Share(t.Context(), "alice", a.ID, "third"); err != nil || got.Link != "third" {
		t.Errorf("shared again: %+v, %v", got, err)
	}
	if err := s.Delete(t.Context(), "alice", a.ID); err != nil {
		t.Error(err)
	}
	found("third", nil)
	if _, err := s.Share(t.Context(), "alice", a.ID, "fourth"); !errors.Is(err, savedview.ErrUnknown) {
		t.Errorf("a removed view is shared: %v", err)
	}
}

// testLimit checks that the number of views is bounded for each page, and that a view can still be replaced at the limit.
func testLimit(t *testing.T, s savedview.Store) {
	for i := range savedview.MaxViews {
		save(t, s, "alice", view(savedview.PageFlows, fmt.Sprint(i), "port=80", time.Duration(i)))
	}
	if _, err := s.Save(t.Context(), "alice", view(savedview.PageFlows, "one more", "port=80", 0)); !errors.Is(err, savedview.ErrTooMany) {
		t.Errorf("one more than the limit: %v", err)
	}
	save(t, s, "alice", view(savedview.PageFlows, "0", "port=81", time.Hour))
	save(t, s, "alice", view(savedview.PageRequests, "another page", "q=a", 0))
	save(t, s, "bob", view(savedview.PageFlows, "another person", "q=a", 0))
	if all, err := s.Views(t.Context(), "alice"); err != nil || len(all) != savedview.MaxViews+1 {
		t.Errorf("%d views, %v", len(all), err)
	}
}

// testSavedAtOnce checks that calls at the same time neither exceed the limit nor save a name twice.
func testSavedAtOnce(t *testing.T, s savedview.Store) {
	for i := range savedview.MaxViews - 2 {
		save(t, s, "alice", view(savedview.PageFlows, fmt.Sprint(i), "port=80", time.Duration(i)))
	}
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			v := view(savedview.PageFlows, fmt.Sprint("at once ", i/2), "port=80", 0)
			if _, err := s.Save(t.Context(), "alice", v); err != nil && !errors.Is(err, savedview.ErrTooMany) {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	all, err := s.Views(t.Context(), "alice")
	if err != nil || len(all) != savedview.MaxViews {
		t.Errorf("%d views, %v", len(all), err)
	}
}
