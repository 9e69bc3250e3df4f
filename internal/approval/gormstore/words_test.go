package gormstore

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
)

// TestSearchReturnsVisibleTickets checks that a search returns exactly the tickets that match the filter, with any scan.
func TestSearchReturnsVisibleTickets(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		o, s := newOffice(t), New(databasetest.Open(t, dsn))
		var all []*approval.Ticket
		for range 60 {
			x := o.ticket()
			x.Reason = o.one("the checkout needs it", "订单缓存", "要用缓存的订单", "the orders' cache", "needs a cache") + " " + o.one("", "at once", "for a1")
			x, err := s.Create(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
		}
		slices.Reverse(all)
		for nthText, text := range []string{"the", "che nee", "缓存", "订", "存", "a1", "a", "ann r2", "cache once", "nothing", "%", "a%"} {
			for nth, f := range o.filters() {
				f.Text, f.Limit, f.ByUpdate, f.Oldest, f.After = text, 0, false, false, approval.Cursor{}
				var want []int64
				for _, x := range all {
					if f.Matches(x) {
						want = append(want, x.Number)
					}
				}
				var got [2][]int64
				if err := s.db.Read(t.Context(), func(tx *gorm.DB) error {
					word, err := rarestWord(tx, f, limitsOfPages)
					if err != nil {
						return err
					}
					if word.none && len(want) > 0 {
						t.Errorf("%q is said to find nothing: %v", text, want)
					}
					for i, way := range []string{"", word.rare} {
						s := list(tx, "number", f, way)
						if got[i], err = database.Select[int64](tx, s.Text, s.Args...); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				// Pages of one ticket are slow to read, so each filter is tried with one of the other limits, and each text begins with another.
				others := []pageLimits{
					{rareOfAll: 2000, rareOfSome: 200, candidates: []int{1}, first: 1, next: 1},
					{candidates: []int{2, 9}, first: 1, next: 3},                  // no word is rare or selective
					{rareOfAll: 40, candidates: []int{2, 9}, first: 1, next: 3},   // words are selective
					{rareOfAll: 40, candidates: []int{5, 100}, first: 9, next: 9}, // and the candidates are all that people may see
				}
				for _, limits := range []pageLimits{limitsOfPages, others[(nth+nthText)%len(others)]} {
					if d := cmp.Diff(want, pages(t, s, f, limits), cmpopts.EquateEmpty()); d != "" {
						t.Errorf("%q, in pages, with %+v, %+v: (-want +got)\n%s", text, limits, f, d)
					}
				}
				for i, way := range []string{"through what they may see", "through those with the word"} {
					if d := cmp.Diff(want, got[i], cmpopts.EquateEmpty()); d != "" {
						t.Errorf("%q, %s, %+v: (-want +got)\n%s", text, way, f, d)
					}
				}
			}
		}
	})
}

// pages returns the numbers of the tickets on all pages of a list.
func pages(t *testing.T, s *Store, f approval.Filter, limits pageLimits) (out []int64) {
	t.Helper()
	f.Limit, f.OmitEvents = 4, true
	for {
		list, err := s.listWith(t.Context(), f, limits)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			out = append(out, x.Number)
		}
		if len(list) < f.Limit {
			return out
		}
		f.After.Number = list[len(list)-1].Number
	}
}
