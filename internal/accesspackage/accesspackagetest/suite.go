// Package accesspackagetest contains the suite that every store of access packages passes.
package accesspackagetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/accesspackage"
)

// at is the time of the first publication.
var at = time.Date(2026, 3, 2, 9, 0, 0, 123000, time.UTC)

// Content returns the content of a version of a test.
func Content(t *testing.T, title string) []byte {
	t.Helper()
	text, err := accesspackage.Spec{Title: title, Description: "For payments", Team: "redis-team", Chain: accesspackage.ChainOwners,
		Resources: map[string]accesspackage.Resource{"trnv1:rsc:a": {Actions: []string{"connect"}, Owners: []string{"user:bob"}}}}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Run checks a store. empty returns the store without packages.
func Run(t *testing.T, empty func(t *testing.T) accesspackage.Store) {
	t.Helper()
	t.Run("publish", func(t *testing.T) { publish(t, empty(t)) })
	t.Run("stale", func(t *testing.T) { stale(t, empty(t)) })
	t.Run("updates", func(t *testing.T) { updates(t, empty(t)) })
	t.Run("stopped update", func(t *testing.T) { stopped(t, empty(t)) })
	t.Run("archive", func(t *testing.T) { archive(t, empty(t)) })
}

func publish(t *testing.T, s accesspackage.Store) {
	ctx := t.Context()
	if _, err := s.Package(ctx, "pay"); !errors.Is(err, accesspackage.ErrUnknown) {
		t.Errorf("a package that does not exist: %v", err)
	}
	first, second := Content(t, "Payments"), Content(t, "Payments and more")
	for _, p := range []accesspackage.Publication{
		{Name: "pay", Content: first, Ticket: 7, By: "alice", At: at},
		{Name: "pay", Content: first, Ticket: 7, By: "alice", At: at.Add(time.Hour)}, // again, after a crash
		{Name: "pay", Base: 1, Content: second, Ticket: 9, By: "bob", At: at.Add(time.Minute)},
		{Name: "pay", Content: first, Ticket: 7, By: "alice", At: at.Add(2 * time.Hour)}, // again, after the next version
		{Name: "cache", Content: first, Ticket: 11, By: "bob", At: at},
	} {
		if err := s.Publish(ctx, p); err != nil {
			t.Fatalf("publish %+v: %v", p, err)
		}
	}
	one := accesspackage.Version{Number: 1, Content: first, Digest: accesspackage.Digest(first), Ticket: 7, PublishedBy: "alice", PublishedAt: at}
	two := accesspackage.Version{Number: 2, Content: second, Digest: accesspackage.Digest(second), Ticket: 9, PublishedBy: "bob",
		PublishedAt: at.Add(time.Minute)}
	p, err := s.Package(ctx, "pay")
	if d := cmp.Diff(accesspackage.Package{Name: "pay", Current: two}, p); d != "" || err != nil {
		t.Errorf("the package (-want +got), %v:\n%s", err, d)
	}
	all, err := s.Versions(ctx, "pay", 5)
	if d := cmp.Diff([]accesspackage.Version{two, one}, all); d != "" || err != nil {
		t.Errorf("the versions (-want +got), %v:\n%s", err, d)
	}
	if some, err := s.Versions(ctx, "pay", 1); err != nil || len(some) != 1 || some[0].Number != 2 {
		t.Errorf("the newest version: %+v, %v", some, err)
	}
	list, err := s.List(ctx)
	want := []accesspackage.Summary{
		{Name: "cache", Title: "Payments", Description: "For payments", Team: "redis-team", Chain: accesspackage.ChainOwners, Version: 1, Resources: 1,
			PublishedAt: at},
		{Name: "pay", Title: "Payments and more", Description: "For payments", Team: "redis-team", Chain: accesspackage.ChainOwners, Version: 2,
			Resources: 1, PublishedAt: at.Add(time.Minute)},
	}
	if d := cmp.Diff(want, list); d != "" || err != nil {
		t.Errorf("the list (-want +got), %v:\n%s", err, d)
	}
}

func stale(t *testing.T, s accesspackage.Store) {
	ctx := t.Context()
	if err := s.Publish(ctx, accesspackage.Publication{Name: "pay", Content: Content(t, "One"), Ticket: 1, By: "alice", At: at}); err != nil {
		t.Fatal(err)
	}
	for reason, p := range map[string]accesspackage.Publication{
		"it exists already":                {Name: "pay", Ticket: 2},
		"it replaces a later version":      {Name: "pay", Base: 2, Ticket: 3},
		"it replaces a version of nothing": {Name: "cache", Base: 1, Ticket: 4},
	} {
		p.Content, p.By, p.At = Content(t, "Two"), "alice", at
		if err := s.Publish(ctx, p); !errors.Is(err, accesspackage.ErrStale) {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if p, err := s.Package(ctx, "pay"); err != nil || p.Current.Number != 1 || p.Current.Ticket != 1 {
		t.Errorf("the package was changed: %+v, %v", p, err)
	}
}

func archive(t *testing.T, s accesspackage.Store) {
	ctx := t.Context()
	if err := s.Archive(ctx, "pay", "alice", at); !errors.Is(err, accesspackage.ErrUnknown) {
		t.Errorf("a package that does not exist: %v", err)
	}
	if err := s.Publish(ctx, accesspackage.Publication{Name: "pay", Content: Content(t, "One"), Ticket: 1, By: "alice", At: at}); err != nil {
		t.Fatal(err)
	}
	for i, who := range []string{"bob", "carol"} { // the second time changes nothing
		if err := s.Archive(ctx, "pay", who, at.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := s.Package(ctx, "pay"); err != nil || !p.Archived() || p.ArchivedBy != "bob" || !p.ArchivedAt.Equal(at) {
		t.Errorf("the archived package: %+v, %v", p, err)
	}
	err := s.Publish(ctx, accesspackage.Publication{Name: "pay", Base: 1, Content: Content(t, "Two"), Ticket: 2, By: "alice", At: at})
	if !errors.Is(err, accesspackage.ErrStale) {
		t.Errorf("a version of an archived package: %v", err)
	}
	if list, err := s.List(ctx); err != nil || len(list) != 1 || !list[0].Archived {
		t.Errorf("the list: %+v, %v", list, err)
	}
}
