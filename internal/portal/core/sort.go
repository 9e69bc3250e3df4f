package core

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// Sort is the order of a list: by a column, and by the list's own identifier where the column has equal values. The parameter
// `sort` is the name of the column, with a minus sign in front for descending order.
type Sort struct {
	Column     string
	Descending bool
	// isDefault reports whether the list has this order without the parameter.
	isDefault bool
}

// String returns the sort as the parameter has it.
func (s Sort) String() string {
	if s.Descending {
		return "-" + s.Column
	}
	return s.Column
}

// ParseSort returns the order of a list. allowed contains the values of the parameter that the list has, its default order first: a list
// offers only the orders that it reads quickly. Another value is a problem with status 400.
func ParseSort[S ~string](value *S, allowed ...string) (Sort, error) {
	text := string(Value(value))
	if text == "" {
		text = allowed[0]
	}
	if !slices.Contains(allowed, text) {
		return Sort{}, &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: message.CallParameterOneOf("sort", allowed),
			Fields: []approval.Field{{Path: "sort", Code: "unknown", Message: message.FieldOneOf(allowed)}}}
	}
	column, descending := strings.CutPrefix(text, "-")
	return Sort{Column: column, Descending: descending, isDefault: text == allowed[0]}, nil
}

// List returns the name of a list in this order, for its cursors: a position in one order is none in another. The default order adds
// nothing to the name.
func (s Sort) List(name string) string {
	if s.isDefault {
		return name
	}
	return name + " " + s.String()
}

// NumberKey returns a text that compares as a number that is not negative, for SortedPage.
func NumberKey(n int64) string { return fmt.Sprintf("%019d", max(n, 0)) }

// placed is an item of a list with its position: the value by which the list is sorted, and the id.
type placed[T any] struct {
	item    T
	key, id string
}

// Rows are the rows of a list that is in memory, in the default order, which is by id.
type Rows[T any] struct {
	All []T
	ID  func(T) string
	// Keys contains the other columns: the value of a row as a text that compares by bytes.
	Keys map[string]func(T) string
	// Keep reports whether the list has a row; nil means that it has all.
	Keep func(T) bool
}

// SortedPage returns one page of rows in an order; rows with equal values are compared by id. All of them are in memory, so every column
// can be sorted quickly.
func SortedPage[T any](list string, sort Sort, rows Rows[T], cursor *string, limit *int) ([]T, *string, error) {
	id, keep := rows.ID, rows.Keep
	if keep == nil {
		keep = func(T) bool { return true }
	}
	if sort.isDefault {
		return Page(list, rows.All, id, func(x T, _ string) bool { return keep(x) }, nil, cursor, limit)
	}
	n, err := PageSize(limit)
	if err != nil {
		return nil, nil, err
	}
	list = sort.List(list)
	after, err := DecodeCursor(list, cursor)
	if err != nil {
		return nil, nil, err
	}
	key := rows.Keys[sort.Column]
	if key == nil {
		key = func(T) string { return "" } // by id alone
	}
	compare := func(a, b placed[T]) int {
		c := strings.Compare(a.key, b.key)
		if c == 0 {
			c = strings.Compare(a.id, b.id)
		}
		if sort.Descending {
			return -c
		}
		return c
	}
	var last placed[T]
	if after != "" {
		i := strings.LastIndexByte(after, '\n') // an id has no line break, but a key may have any character
		if i < 0 {
			return nil, nil, InvalidCursor()
		}
		last.key, last.id = after[:i], after[i+1:]
	}
	var rest []placed[T]
	for _, x := range rows.All {
		if p := (placed[T]{x, key(x), id(x)}); (after == "" || compare(p, last) > 0) && keep(x) {
			rest = append(rest, p)
		}
	}
	slices.SortFunc(rest, compare)
	out := make([]T, 0, min(n, len(rest)))
	for _, p := range rest[:min(n, len(rest))] {
		out = append(out, p.item)
	}
	if len(rest) <= n {
		return out, nil, nil
	}
	end := rest[n-1]
	return out, EncodeCursor(list, end.key+"\n"+end.id), nil
}
