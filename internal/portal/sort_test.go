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

// pages returns the values of a field of all items of a list, read in pages of two.
func pages(t *testing.T, x *site, who, path, field string) (out []string) {
	t.Helper()
	cursor := ""
	for range 20 {
		var list struct {
			Items      []map[string]any
			NextCursor string
		}
		a := x.as(who).Get("/api/v1" + with(path, "limit=2") + cursor)
		if a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.Status, a.Body)
		}
		a.Into(t, &list)
		for _, item := range list.Items {
			out = append(out, fmt.Sprint(item[field]))
		}
		if list.NextCursor == "" {
			return out
		}
		cursor = "&cursor=" + list.NextCursor
	}
	t.Fatalf("%s has no end", path)
	return nil
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
