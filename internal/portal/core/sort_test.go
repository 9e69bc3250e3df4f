package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseSort(t *testing.T) {
	allowed := []string{"-created", "created", "-count"}
	for value, tc := range map[string]struct {
		want Sort
		list string
	}{
		"":         {Sort{"created", true, true}, "x"},
		"-created": {Sort{"created", true, true}, "x"},
		"created":  {Sort{"created", false, false}, "x created"},
		"-count":   {Sort{"count", true, false}, "x -count"},
	} {
		got, err := ParseSort(&value, allowed...)
		if err != nil || got != tc.want || got.List("x") != tc.list {
			t.Errorf("%q: %+v of the list %q, %v", value, got, got.List("x"), err)
		}
	}
	for _, value := range []string{"count", "--created", "-", "created ", "requester; DROP TABLE tickets"} {
		_, err := ParseSort(&value, allowed...)
		var p *Problem
		if !errors.As(err, &p) || p.Status != 400 || p.Fields[0].Path != "sort" || p.Fields[0].Code != "unknown" {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestCursorsOfAnotherOrder(t *testing.T) {
	order := func(text string) Sort {
		s, err := ParseSort(&text, "-created", "created")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	codeOf := func(err error) string {
		var p *Problem
		if !errors.As(err, &p) {
			return ""
		}
		return p.Fields[0].Code
	}
	for _, tc := range []struct {
		reason, of, list, want string
	}{
		{"of the same order", "x created", order("created").List("x"), ""},
		{"of the default order", "x", order("created").List("x"), "order"},
		{"of another order", "x created", order("-created").List("x"), "order"},
		{"of another list", "y created", order("created").List("x"), "unknown"},
		{"of a list whose name begins alike", "xy created", order("created").List("x"), "unknown"},
	} {
		if _, err := DecodeCursor(tc.list, EncodeCursor(tc.of, "42")); codeOf(err) != tc.want {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// TestSortedPage checks that the pages of an order contain every item once, in the order.
func TestSortedPage(t *testing.T) {
	type item struct{ id, title string }
	var all []item
	for i := range 23 {
		all = append(all, item{fmt.Sprintf("%02d", i), []string{"b", "a\nx", "", "c"}[i%4]})
	}
	keys := map[string]func(item) string{"title": func(x item) string { return x.title }}
	rows := Rows[item]{All: append([]item{{"22-left out", "b"}}, all...), ID: func(x item) string { return x.id }, Keys: keys,
		Keep: func(x item) bool { return len(x.id) == 2 }}
	slices.SortFunc(rows.All, func(x, y item) int { return strings.Compare(x.id, y.id) })
	for _, value := range []string{"title", "-title", "id", "-id"} {
		order, err := ParseSort(&value, "id", "-id", "title", "-title")
		if err != nil {
			t.Fatal(err)
		}
		var got []item
		var cursor *string
		for pages := 0; pages == 0 || cursor != nil; pages++ {
			page, next, err := SortedPage("x", order, rows, cursor, new(5))
			if err != nil || pages > 5 {
				t.Fatal(pages, err)
			}
			got, cursor = append(got, page...), next
		}
		want := slices.SortedFunc(slices.Values(all), func(x, y item) int {
			if c := strings.Compare(x.title, y.title); c != 0 && order.Column == "title" {
				return c
			}
			return strings.Compare(x.id, y.id)
		})
		if order.Descending {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v", value, got)
		}
	}
	if _, _, err := SortedPage("x", Sort{}, rows, EncodeCursor("x ", "y"), nil); err == nil {
		t.Error("a cursor without an id is accepted")
	}
	if NumberKey(9) >= NumberKey(10) || NumberKey(-1) != NumberKey(0) {
		t.Error("numbers do not compare as their keys")
	}
}
