// Package catalogtest contains the conformance suite that every catalog.Store has to pass.
package catalogtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// Run checks the contracts of catalog.Store. lines returns the number of lines that were written to the ledger.
func Run(t *testing.T, open func(t *testing.T) (s catalog.Store, lines func() int)) {
	for name, check := range map[string]func(*testing.T, catalog.Store, func() int){
		"Write": write, "Stale": stale, "AtOnce": atOnce, "Previews": previews, "Statuses": statuses, "Many": many,
	} {
		t.Run(name, func(t *testing.T) {
			s, lines := open(t)
			check(t, s, lines)
		})
	}
}

var start = time.Date(2026, 3, 1, 9, 0, 0, 123000, time.UTC)

func person(id string) catalog.Stored {
	return catalog.Stored{Record: catalog.Record{Kind: catalog.KindPerson, ID: id, Title: "Doctor " + id, Groups: []string{"a", "b"}}, Source: "hr"}
}

func put(x ...catalog.Stored) catalog.Write {
	return catalog.Write{Put: x, Ledger: []ledger.Entry{{At: start, Action: "catalog.synced", Object: "hr"}}}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func load(t *testing.T, s catalog.Store) ([]catalog.Stored, int64) {
	t.Helper()
	got, rev, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got, rev
}

var anyOrder = cmpopts.SortSlices(func(a, b catalog.Stored) bool { return a.Ref().String() < b.Ref().String() })

func write(t *testing.T, s catalog.Store, lines func() int) {
	ctx := t.Context()
	if got, rev := load(t, s); len(got) != 0 || rev != 0 {
		t.Fatalf("a new store is empty, at revision 0: %v %d", got, rev)
	}
	app := catalog.Stored{Source: "hr", Record: catalog.Record{Kind: catalog.KindApplication, ID: "ann", Title: "Ann's", Name: "trnv1:rsc:a:b:c:d",
		Owners: []catalog.Owner{{Kind: catalog.OwnerPerson, ID: "ann"}}}}
	if rev := must[int64](t)(s.Write(ctx, 0, put(person("ann"), person("bob"), app))); rev != 1 {
		t.Fatalf("the first write makes revision %d", rev)
	}
	gone := person("bob")
	gone.Gone, gone.Title = start, "Bob"
	w := put(gone)
	w.Remove = []catalog.Ref{{Kind: catalog.KindPerson, ID: "ann"}, {Kind: catalog.KindPerson, ID: "never"}}
	must[int64](t)(s.Write(ctx, 1, w))
	gone.Version, app.Version = 2, 1
	got, rev := load(t, s)
	if d := cmp.Diff([]catalog.Stored{app, gone}, got, anyOrder); d != "" || rev != 2 {
		t.Errorf("revision %d, -want +got\n%s", rev, d)
	}
	if n := must[int64](t)(s.Revision(ctx)); n != 2 || lines() != 2 {
		t.Errorf("revision %d with %d lines", n, lines())
	}
}

func stale(t *testing.T, s catalog.Store, lines func() int) {
	must[int64](t)(s.Write(t.Context(), 0, put(person("ann"))))
	if _, err := s.Write(t.Context(), 0, put(person("bob"))); !errors.Is(err, catalog.ErrChanged) {
		t.Errorf("Write at an old revision: got %v, want ErrChanged", err)
	}
	w := put(person("bob"))
	w.Preview = "unknown"
	if _, err := s.Write(t.Context(), 1, w); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("Write with a deleted preview: got %v, want ErrNotFound", err)
	}
	if got, rev := load(t, s); len(got) != 1 || rev != 1 || lines() != 1 {
		t.Errorf("after refused writes: got %v, revision %d, %d lines, want only the first write", got, rev, lines())
	}
}

func atOnce(t *testing.T, s catalog.Store, lines func() int) {
	const writers = 8
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wg.Go(func() { _, errs[i] = s.Write(t.Context(), 0, put(person(fmt.Sprint(i)))) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, catalog.ErrChanged) {
			t.Errorf("a concurrent Write: got %v, want ErrChanged", err)
		}
	}
	if got, rev := load(t, s); won != 1 || len(got) != 1 || rev != 1 || lines() != 1 {
		t.Errorf("%d of %d concurrent writes succeeded, want 1: %v, revision %d, %d lines", won, writers, got, rev, lines())
	}
}

func previews(t *testing.T, s catalog.Store, _ func() int) {
	ctx := t.Context()
	p := catalog.Preview{
		Token:    "one",
		Source:   "hr",
		Actor:    "sam",
		Revision: 7,
		Created:  start,
		Content: catalog.SourceContent{
			Records:  []catalog.Record{person("ann").Record},
			Problems: []catalog.Problem{{Where: "x", Message: message.Stored{Message: message.Verbatim("y")}}},
		},
	}
	keep := func(p catalog.Preview, before time.Time) {
		t.Helper()
		if err := s.KeepPreview(ctx, p, before); err != nil {
			t.Fatal(err)
		}
	}
	keep(p, start)
	if d := cmp.Diff(p, must[catalog.Preview](t)(s.Preview(ctx, "one"))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	second, other := p, p
	second.Token, other.Token, other.Actor = "two", "other", "sue"
	keep(other, start)
	keep(second, start)
	for token, want := range map[string]error{"one": catalog.ErrNotFound, "two": nil, "other": nil, "": catalog.ErrNotFound} {
		if _, err := s.Preview(ctx, token); !errors.Is(err, want) {
			t.Errorf("preview %q: want %v, got %v", token, want, err)
		}
	}
	later := p
	later.Token, later.Source, later.Created = "later", "cmdb", start.Add(time.Hour)
	keep(later, start.Add(time.Second))
	if _, err := s.Preview(ctx, "other"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("an old preview: got %v, want ErrNotFound", err)
	}
	w := put(person("ann"))
	w.Preview = "later"
	must[int64](t)(s.Write(ctx, 0, w))
	if _, err := s.Write(ctx, 1, w); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("Write with a deleted preview: got %v, want ErrNotFound", err)
	}
}

func statuses(t *testing.T, s catalog.Store, _ func() int) {
	a := catalog.Status{Source: "a", At: start, Error: "away"}
	b := catalog.Status{
		Source:          "b",
		At:              start,
		SucceededAt:     start,
		Entities:        3,
		Problems:        []catalog.Problem{{Ref: catalog.Ref{Kind: catalog.KindPerson, ID: "x"}, Message: message.Stored{Message: message.CatalogLeads(2)}}},
		PendingPreview:  "t",
		PendingRemovals: 2,
	}
	for _, st := range []catalog.Status{b, {Source: "a"}, a} {
		if err := s.KeepStatus(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]catalog.Status{a, b}, must[[]catalog.Status](t)(s.Statuses(t.Context()))); d != "" {
		t.Errorf("the last status of each source: -want +got\n%s", d)
	}
}

func many(t *testing.T, s catalog.Store, _ func() int) {
	var all []catalog.Stored
	for i := range 2001 {
		all = append(all, person(fmt.Sprint(i)))
	}
	must[int64](t)(s.Write(t.Context(), 0, put(all...)))
	must[int64](t)(s.Write(t.Context(), 1, put(all...)))
	if got, _ := load(t, s); len(got) != len(all) || got[0].Version != 2 {
		t.Errorf("%d entities, the first at %d", len(got), got[0].Version)
	}
}
