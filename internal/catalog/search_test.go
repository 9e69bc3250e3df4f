package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func searchable() *Index {
	resource := func(id, title, about, env string, s Sensitivity, owners ...Owner) Record {
		return Record{
			Kind:        KindResource,
			ID:          id,
			Title:       title,
			Description: about,
			Name:        "trnv1:rsc:trip-com:redis:clusters:" + id,
			Environment: env,
			Sensitivity: s,
			Owners:      owners,
		}
	}
	bob, storage := Owner{OwnerPerson, "bob"}, Owner{OwnerGroup, "storage"}
	return NewIndex(Build([]Record{
		{Kind: KindPerson, ID: "bob", Title: "Bob Tanaka", Groups: []string{"storage"}},
		{Kind: KindPerson, ID: "erin", Title: "Érin Walsh"},
		{Kind: KindGroup, ID: "storage", Title: "Storage"},
		resource("bobs-cluster", "Bob's cluster", "The sessions of all users.", "production", SensitivityMedium, bob),
		resource("orders-cache", "Orders cache", "Recent orders, for the checkout.", "production", SensitivityLow, storage),
		resource("orders-cache-staging", "Orders cache (staging)", "", "staging", SensitivityLow, storage),
		resource("checkout-cache", "Checkout cache", "", "production", SensitivityHigh, Owner{OwnerPerson, "erin"}),
		resource("reorders", "Reorders", "", "production", SensitivityLow, Owner{OwnerPerson, "erin"}),
		{Kind: KindApplication, ID: "app-888", Title: "Checkout (888)", Name: "trnv1:rsc:trip-com:iam:sa:app/888", Owners: []Owner{{OwnerPerson, "erin"}}},
	}))
}

func ids(es []Entity) string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = e.ID
	}
	return strings.Join(out, " ")
}

func TestSearch(t *testing.T) {
	x := searchable()
	for name, tc := range map[string]struct {
		reason string
		q      Query
		want   string
	}{
		"all":           {"by id", Query{}, "bobs-cluster checkout-cache orders-cache orders-cache-staging reorders"},
		"exact":         {"an exact title or id comes first", Query{Text: "Orders-Cache"}, "orders-cache orders-cache-staging"},
		"prefix":        {"then what begins so, then what has it inside", Query{Text: "order"}, "orders-cache orders-cache-staging reorders"},
		"about":         {"names come before descriptions", Query{Text: "checkout"}, "checkout-cache orders-cache"},
		"words":         {"every word, in any order", Query{Text: "staging  orders"}, "orders-cache-staging"},
		"two letters":   {"beginnings of words", Query{Text: "bo"}, "bobs-cluster"},
		"owner's name":  {"people know who, not what", Query{Text: "tanaka"}, "bobs-cluster"},
		"not ASCII":     {"names are of all languages", Query{Text: "érin"}, "checkout-cache reorders"},
		"full name":     {"pasted from a log", Query{Text: "trnv1:rsc:trip-com:redis:clusters:bobs-cluster"}, "bobs-cluster"},
		"middle":        {"any piece of three letters", Query{Text: "bs-clu"}, "bobs-cluster"},
		"letter out":    {"one error", Query{Text: "chekout"}, "checkout-cache orders-cache"},
		"what is meant": {"names come before descriptions there, too", Query{Text: "chekcout"}, "checkout-cache orders-cache"},
		"letter in":     {"one error", Query{Text: "cachee"}, "checkout-cache orders-cache orders-cache-staging"},
		"swapped":       {"one error", Query{Text: "bosb-cluster"}, "bobs-cluster"},
		"two errors":    {"in a long word", Query{Text: "prodctoin"}, ""},
		"too short":     {"three letters may be anything", Query{Text: "bxb"}, ""},
		"nothing":       {"no fit is no fit", Query{Text: "kafka"}, ""},
		"owner":         {"of this group", Query{Owner: Owner{OwnerGroup, "storage"}}, "orders-cache orders-cache-staging"},
		"mine":          {"owned by the person or the person's groups", Query{Mine: "bob"}, "bobs-cluster orders-cache orders-cache-staging"},
		"nobody's":      {"an unknown person owns nothing", Query{Mine: "nobody"}, ""},
		"environment":   {"this one", Query{Environment: "staging"}, "orders-cache-staging"},
		"sensitivity":   {"this one", Query{Sensitivity: SensitivityHigh}, "checkout-cache"},
		"together":      {"all conditions", Query{Text: "cache", Mine: "bob", Environment: "production"}, "orders-cache"},
		"class":         {"as the host cluster's classes say", Query{Class: "c", ClassOf: func(n string) string { return n[len(n)-1:] + "" }}, ""},
		"first": {
			"what was used lately", Query{First: map[string]int{"reorders": 2, "orders-cache": 1}},
			"reorders orders-cache bobs-cluster checkout-cache orders-cache-staging",
		},
		"applications": {"are another kind", Query{Kind: KindApplication, Text: "888"}, "app-888"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.q.Kind == "" {
				tc.q.Kind = KindResource
			}
			tc.q.Limit = 10
			p, err := x.Search(tc.q)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, ids(p.Entities)); d != "" || p.Next != "" || p.Total != len(p.Entities) {
				t.Errorf("%s: total %d, next %q, -want +got\n%s", tc.reason, p.Total, p.Next, d)
			}
		})
	}
	if _, err := x.Search(Query{Kind: KindPerson, Limit: 1}); !errors.Is(err, ErrNotFound) {
		t.Errorf("people are not searched for: %v", err)
	}
}

func TestPages(t *testing.T) {
	x := searchable()
	for _, q := range []Query{{}, {Text: "order"}, {Text: "cache", First: map[string]int{"orders-cache-staging": 9}}} {
		q.Kind, q.Limit = KindResource, 100
		whole, err := x.Search(q)
		if err != nil {
			t.Fatal(err)
		}
		for q.Limit = 1; q.Limit <= 3; q.Limit++ {
			var got []Entity
			for q.Cursor = ""; ; {
				p, err := x.Search(q)
				if err != nil || p.Total != whole.Total || len(p.Entities) > q.Limit {
					t.Fatalf("%+v, %v", p, err)
				}
				got = append(got, p.Entities...)
				if q.Cursor = p.Next; q.Cursor == "" {
					break
				}
			}
			if d := cmp.Diff(ids(whole.Entities), ids(got)); d != "" {
				t.Errorf("pages of %d of %q: -want +got\n%s", q.Limit, q.Text, d)
			}
		}
	}
	for _, bad := range []string{"x", "!!", "bm90IGEgbnVtYmVy", "MSA"} {
		if _, err := x.Search(Query{Kind: KindResource, Limit: 1, Cursor: bad}); !errors.Is(err, ErrCursor) {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

// TestPagesOfAChangingCatalog checks that a page continues where the previous one ended, even if its last entity was
// removed.
func TestPagesOfAChangingCatalog(t *testing.T) {
	records := func(ids ...string) []Record {
		var out []Record
		for _, id := range ids {
			out = append(out, Record{Kind: KindResource, ID: id, Title: id, Name: "trnv1:rsc:a:b:c:" + id, Owners: []Owner{{OwnerPerson, "x"}}})
		}
		return out
	}
	first, err := NewIndex(Build(records("a", "b", "c"))).Search(Query{Kind: KindResource, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	next, err := NewIndex(Build(records("b", "c"))).Search(Query{Kind: KindResource, Limit: 5, Cursor: first.Next})
	if err != nil || ids(next.Entities) != "b c" {
		t.Errorf("after a: %q, %v", ids(next.Entities), err)
	}
}

// FuzzSearch compares every way of finding an entity with a scan of all entities.
func FuzzSearch(f *testing.F) {
	for _, s := range []string{"order", "bobs-cluster", "trnv1:rsc", "ca", "é", "chekout", "a b c d e f g h i j", "(888)", "\x00\xff"} {
		f.Add(s, "")
	}
	x := searchable()
	f.Fuzz(func(t *testing.T, text, cursor string) {
		p, err := x.Search(Query{Kind: KindResource, Text: text, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range x.catalog.Resources() {
			words := strings.Fields(strings.ToLower(text))
			if len(words) > maxWords {
				words = words[:maxWords]
			}
			all := true
			for _, w := range words {
				all = all && len(w) >= 3 && strings.Contains(strings.ToLower(e.ID+"\n"+e.Title+"\n"+e.Name), w)
			}
			if all && !slices.ContainsFunc(p.Entities, func(o Entity) bool { return o.ID == e.ID }) {
				t.Fatalf("%q does not find %s", text, e.ID)
			}
		}
		if _, err := x.Search(Query{Kind: KindResource, Text: text, Limit: 1, Cursor: cursor}); err != nil && !errors.Is(err, ErrCursor) {
			t.Fatal(err)
		}
	})
}

// large returns a catalog of 10,000 applications and 10,000 resources.
func large() *Catalog {
	words := []string{
		"checkout",
		"orders",
		"billing",
		"search",
		"suggest",
		"session",
		"ledger",
		"profile",
		"price",
		"hotel",
		"flight",
		"train",
		"ticket",
		"review",
		"photo",
		"coupon",
	}
	var out []Record
	for i := range 500 {
		out = append(out, Record{Kind: KindPerson, ID: fmt.Sprintf("person-%d", i), Title: fmt.Sprintf("Person %d", i)})
	}
	for i := range 10_000 {
		a, b := words[i%16], words[i/16%16]
		owner := []Owner{{OwnerPerson, fmt.Sprintf("person-%d", i%500)}}
		out = append(
			out,
			Record{
				Kind:        KindApplication,
				ID:          fmt.Sprintf("app-%d", i),
				Title:       fmt.Sprintf("%s %s (%d)", a, b, i),
				Description: "Serves the " + a + " of the " + b + ".",
				Name:        fmt.Sprintf("trnv1:rsc:trip-com:iam:sa:app/%d", i),
				Owners:      owner,
				Environment: "production",
			},
			Record{
				Kind:        KindResource,
				ID:          fmt.Sprintf("%s-%s-%d", a, b, i),
				Title:       fmt.Sprintf("%s %s %d", a, b, i),
				Description: "Keeps the " + a + " of the " + b + ".",
				Name: fmt.Sprintf(
					"trnv1:rsc:trip-com:redis:clusters:%s-%s-%d",
					a,
					b,
					i,
				),
				Owners:      owner,
				Environment: "production",
				Sensitivity: SensitivityLow,
			},
		)
	}
	return Build(out)
}

func BenchmarkIndex(b *testing.B) {
	c := large()
	for b.Loop() {
		NewIndex(c)
	}
}

func BenchmarkSearch(b *testing.B) {
	x := NewIndex(large())
	for name, q := range map[string]Query{
		"none": {}, "prefix": {Text: "checkout-ord"}, "common": {Text: "app"}, "words": {Text: "hotel photo"}, "number": {Text: "9871"}, "two": {Text: "ch"},
		"typo": {Text: "chekout"}, "mine": {Mine: "person-7"}, "name": {Text: "trnv1:rsc:trip-com:redis:clusters:hotel-photo-5721"},
	} {
		b.Run(name, func(b *testing.B) {
			q.Kind, q.Limit = KindResource, 50
			for b.Loop() {
				if _, err := x.Search(q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestPagesTogetherAreAll compares the pages with one page that is large enough for everything, because hits are
// skipped when a page is full.
func TestPagesTogetherAreAll(t *testing.T) {
	var records []Record
	for i := range 300 {
		title := [...]string{"Shop checkout", "Orders cache", "Shop", "The shop", "Workshop"}[i%5]
		records = append(
			records,
			Record{Kind: KindResource, ID: fmt.Sprintf("r-%03d", i), Title: title, Name: fmt.Sprint("trnv1:rsc:a:b:c:", i), Description: "for the checkout",
				Environment: [...]string{"production", "staging"}[i%2]},
		)
	}
	x := NewIndex(Build(records))
	for _, text := range []string{"", "shop", "checkout", "the shop", "shpo", "r-", "r-12", "orders cache", "nothing of it"} {
		for name, q := range map[string]Query{
			"all": {}, "production": {Environment: "production"}, "used lately": {First: map[string]int{"r-299": 1, "r-007": 2}},
		} {
			q.Kind, q.Text, q.Limit = KindResource, text, 1000
			want, err := x.Search(q)
			if err != nil {
				t.Fatal(err)
			}
			var got []Entity
			for q.Limit = 7; ; {
				p, err := x.Search(q)
				if err != nil {
					t.Fatal(err)
				}
				if p.Total != want.Total {
					t.Errorf("%q of %s: a page says there are %d, want %d", text, name, p.Total, want.Total)
				}
				got = append(got, p.Entities...)
				if q.Cursor = p.Next; q.Cursor == "" {
					break
				}
			}
			if d := cmp.Diff(ids(want.Entities), ids(got)); d != "" {
				t.Errorf("%q of %s: (-one page +pages)\n%s", text, name, d)
			}
		}
	}
}
