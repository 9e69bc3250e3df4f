package catalog

import (
	"errors"
	"strings"
	"testing"
)

// TestSortedSearch checks the orders of a search, in pages of different sizes.
func TestSortedSearch(t *testing.T) {
	x := searchable()
	for name, tc := range map[string]struct {
		q    Query
		want string
	}{
		"title":             {Query{Order: Order{Column: OrderTitle}}, "bobs-cluster checkout-cache orders-cache orders-cache-staging reorders"},
		"title, descending": {Query{Order: Order{OrderTitle, true}}, "reorders orders-cache-staging orders-cache checkout-cache bobs-cluster"},
		"environment, equal ones by id": {
			Query{Order: Order{Column: OrderEnvironment}},
			"bobs-cluster checkout-cache orders-cache reorders orders-cache-staging",
		},
		"environment, descending": {
			Query{Order: Order{OrderEnvironment, true}},
			"orders-cache-staging reorders orders-cache checkout-cache bobs-cluster",
		},
		"of a text":   {Query{Text: "order", Order: Order{OrderTitle, true}}, "reorders orders-cache-staging orders-cache"},
		"of an owner": {Query{Owner: Owner{OwnerPerson, "erin"}, Order: Order{OrderTitle, true}}, "reorders checkout-cache"},
	} {
		for limit := 1; limit < 7; limit++ {
			q := tc.q
			q.Kind, q.Limit = KindResource, limit
			var got []string
			for n := 0; n == 0 || q.Cursor != ""; n++ {
				p, err := x.Search(q)
				if err != nil || n > 6 {
					t.Fatalf("%s: %d pages, %v", name, n, err)
				}
				if want := len(strings.Fields(tc.want)); p.Total != want {
					t.Errorf("%s: a total of %d, want %d", name, p.Total, want)
				}
				if q.Cursor = p.Next; len(p.Entities) > 0 {
					got = append(got, ids(p.Entities))
				}
			}
			if all := strings.Join(got, " "); all != tc.want {
				t.Errorf("%s in pages of %d: %s, want %s", name, limit, all, tc.want)
			}
		}
	}
	for name, q := range map[string]Query{
		"an unknown column": {Kind: KindResource, Limit: 1, Order: Order{Column: "secret"}},
		"a broken cursor":   {Kind: KindResource, Limit: 1, Order: Order{Column: OrderTitle}, Cursor: "%"},
	} {
		if _, err := x.Search(q); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSortedCursorOfARemovedEntity checks that a cursor stays valid when its entity is removed.
func TestSortedCursorOfARemovedEntity(t *testing.T) {
	build := func(names ...string) *Index {
		var all []Record
		for _, n := range names {
			all = append(all, Record{Kind: KindApplication, ID: n, Title: strings.ToUpper(n), Name: "trnv1:rsc:trip-com:iam:sa:app/" + n})
		}
		return NewIndex(Build(all))
	}
	for _, descending := range []bool{false, true} {
		q := Query{Kind: KindApplication, Limit: 2, Order: Order{OrderTitle, descending}}
		first, err := build("a", "b", "c", "d").Search(q)
		if err != nil {
			t.Fatal(err)
		}
		q.Cursor = first.Next
		removed, want := "b", "c d"
		if descending {
			removed, want = "c", "b a"
		}
		names := strings.Fields(strings.ReplaceAll("a b c d", removed, ""))
		if next, err := build(names...).Search(q); err != nil || ids(next.Entities) != want {
			t.Errorf("descending %v: %s, %v", descending, ids(next.Entities), err)
		}
	}
}
