package portal

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/approval/gormstore"
)

// with returns a path with a further parameter.
func with(path, parameter string) string {
	if strings.Contains(path, "?") {
		return path + "&" + parameter
	}
	return path + "?" + parameter
}

// itemsOf returns all items of a list, read in pages of two.
func itemsOf(t *testing.T, x *site, who, path string) (out []map[string]any) {
	t.Helper()
	cursor := ""
	for range 100 {
		var list struct {
			Items      []map[string]any
			NextCursor string
		}
		a := x.as(who).Get("/api/v1" + with(path, "limit=2") + cursor)
		if a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.Status, a.Body)
		}
		a.Into(t, &list)
		if out = append(out, list.Items...); list.NextCursor == "" {
			return out
		}
		cursor = "&cursor=" + list.NextCursor
	}
	t.Fatalf("%s has no end", path)
	return nil
}

// pages returns the values of a field of all items of a list, read in pages of two.
func pages(t *testing.T, x *site, who, path, field string) (out []string) {
	t.Helper()
	for _, item := range itemsOf(t, x, who, path) {
		out = append(out, fmt.Sprint(item[field]))
	}
	return out
}

// wantOrders checks the orders of a list: the pages of each, that an unknown one is refused, and that a cursor is refused in another order.
func wantOrders(t *testing.T, x *site, who, path, field string, orders map[string][]string) {
	t.Helper()
	for order, want := range orders {
		if got := pages(t, x, who, with(path, "sort="+order), field); !slices.Equal(got, want) {
			t.Errorf("%s by %s: %v, want %v", path, order, got, want)
		}
	}
	if got, want := pages(t, x, who, path, field), orders[""]; !slices.Equal(got, want) {
		t.Errorf("%s without the parameter: %v, want %v", path, got, want)
	}
	for name, tc := range map[string]struct{ query, field, code string }{
		"an unknown column": {"sort=hash", "sort", "unknown"},
		"a column twice":    {"sort=--created", "sort", "unknown"},
		"another order":     {"limit=2&cursor=" + cursorOf(t, x, who, path) + "&sort=" + other(orders), "cursor", "order"},
	} {
		var p problemBody
		a := x.as(who).Get("/api/v1" + with(path, tc.query))
		if a.Into(t, &p); a.Status != http.StatusBadRequest || p.Code != "invalid" || len(p.Fields) != 1 || p.Fields[0].Field != tc.field ||
			p.Fields[0].Code != tc.code {
			t.Errorf("%s with %s: %d %s", path, name, a.Status, a.Body)
		}
	}
}

func cursorOf(t *testing.T, x *site, who, path string) string {
	t.Helper()
	var list struct{ NextCursor string }
	if x.as(who).Get("/api/v1"+with(path, "limit=2")).Into(t, &list); list.NextCursor == "" {
		t.Fatalf("%s has only one page", path)
	}
	return list.NextCursor
}

// other returns an order that has other rows first than the default.
func other(orders map[string][]string) string {
	for _, order := range slices.Sorted(maps.Keys(orders)) {
		if order != "" && !slices.Equal(orders[order], orders[""]) {
			return order
		}
	}
	return ""
}

func TestOrdersOfTickets(t *testing.T) {
	x := newSite(t)
	store := gormstore.New(x.db)
	for i := range 5 {
		it := approvaltest.Item(fmt.Sprint("a", i), "r")
		if _, err := store.Create(t.Context(), approvaltest.TicketOf(it, "")); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range []int64{4, 2} {
		if _, err := store.Update(t.Context(), n, func(y *approval.Ticket) error {
			return y.Comment("alice", "still needed", approvaltest.Start.Add(time.Duration(i+1)*time.Minute))
		}); err != nil {
			t.Fatal(err)
		}
	}
	newest := []string{"T-5", "T-4", "T-3", "T-2", "T-1"}
	for _, who := range []string{"alice", "dave"} {
		wantOrders(t, x, who, "/tickets?view=all", "id", map[string][]string{
			"": newest, "-created": newest, "created": {"T-1", "T-2", "T-3", "T-4", "T-5"},
			"-updated": {"T-2", "T-4", "T-5", "T-3", "T-1"}, "updated": {"T-1", "T-3", "T-5", "T-4", "T-2"},
		})
	}
}

func TestOrdersOfTheLedger(t *testing.T) {
	x := newSite(t)
	store := gormstore.New(x.db)
	for i := range 3 {
		if _, err := store.Create(t.Context(), approvaltest.TicketOf(approvaltest.Item(fmt.Sprint("a", i), "r"), "")); err != nil {
			t.Fatal(err)
		}
	}
	oldest := pages(t, x, "dave", "/ledger?sort=seq", "seq")
	newest := slices.Clone(oldest)
	slices.Reverse(newest)
	wantOrders(t, x, "dave", "/ledger", "seq", map[string][]string{"": newest, "-seq": newest, "seq": oldest})
}

// TestOrdersOfListsInMemory checks the lists whose rows are all in the memory of the portal: each order has the same rows, sorted by a field.
func TestOrdersOfListsInMemory(t *testing.T) {
	x := newSite(t)
	for _, tc := range []struct {
		path, id, column string
		field            func(item map[string]any) string
	}{
		{"/catalog/entities", "id", "title", func(i map[string]any) string { return strings.ToLower(fmt.Sprint(i["title"])) }},
		{"/catalog/entities", "id", "source", func(i map[string]any) string { return fmt.Sprint(i["source"]) }},
		{"/policies", "name", "name", func(i map[string]any) string { return fmt.Sprint(i["name"]) }},
		{"/policies", "name", "statements", func(i map[string]any) string { return fmt.Sprintf("%9.0f", i["statements"]) }},
		{"/access", "sid", "resource", func(i map[string]any) string { return fmt.Sprint(i["resource"].(map[string]any)["name"]) }},
		{"/access", "sid", "policy", func(i map[string]any) string { return fmt.Sprint(i["policy"], "/", i["sid"]) }},
	} {
		all := itemsOf(t, x, "dave", tc.path)
		for _, order := range []string{tc.column, "-" + tc.column} {
			got := itemsOf(t, x, "dave", with(tc.path, "sort="+order))
			if len(got) != len(all) || len(got) == 0 {
				t.Errorf("%s by %s: %d rows of %d", tc.path, order, len(got), len(all))
			}
			for i := 1; i < len(got); i++ {
				if before, at := tc.field(got[i-1]), tc.field(got[i]); before != at && before < at == strings.HasPrefix(order, "-") {
					t.Errorf("%s by %s: %q comes before %q", tc.path, order, before, at)
				}
			}
		}
	}
	for _, path := range []string{"/catalog/entities", "/policies", "/access", "/findings", "/applications", "/resources", "/flows", "/rollout"} {
		if a := x.as("dave").Get("/api/v1" + path + "?sort=secret"); a.Status != http.StatusBadRequest {
			t.Errorf("%s by a column that it does not have: %d %s", path, a.Status, a.Body)
		}
	}
}

func TestOrdersOfTheCatalog(t *testing.T) {
	x := newSite(t)
	byID := []string{"bobs-cluster", "ledger-db-cache", "unclassed"}
	backwards := []string{"unclassed", "ledger-db-cache", "bobs-cluster"}
	wantOrders(t, x, "dave", "/resources", "id", map[string][]string{"": byID, "relevance": byID, "title": byID, "-title": backwards})
}

func TestOrdersOfConnections(t *testing.T) {
	x := newSite(t)
	for query, want := range map[string]int{
		"sort=-seen": 200, "sort=-count": 400, "sort=-count&resource=bobs-cluster": 200, "sort=seen&subject=app-888": 200,
	} {
		var p problemBody
		if a := x.as("dave").Get("/api/v1/flows?" + query); a.Status != want {
			t.Errorf("%s: %d %s", query, a.Status, a.Body)
		} else if a.Into(t, &p); want == 400 && (len(p.Fields) != 1 || p.Fields[0].Field != "sort") {
			t.Errorf("%s: %s", query, a.Body)
		}
	}
	counts := func(order string) (out []float64) {
		for _, c := range itemsOf(t, x, "dave", "/flows?resource=bobs-cluster&sort="+order) {
			out = append(out, c["count"].(float64))
		}
		return out
	}
	most, fewest := counts("-count"), counts("count")
	slices.Reverse(fewest)
	if len(most) < 2 || !slices.Equal(most, fewest) || slices.IsSorted(most) {
		t.Errorf("most first: %v, fewest last: %v", most, fewest)
	}
}
