package catalog

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// orderValue returns the value of a document in a column.
func (d *doc) orderValue(column OrderColumn) string {
	if column == OrderEnvironment {
		return strings.ToLower(d.entity.Environment)
	}
	return d.title
}

// compareTo compares the position of a document in a column with the position of a value and an id.
func (d *doc) compareTo(column OrderColumn, value, id string) int {
	return cmp.Or(strings.Compare(d.orderValue(column), value), strings.Compare(d.entity.ID, id))
}

// sortedDocs contains the positions of all documents in the order of each column. A column is sorted when it is needed for the first time,
// because most catalogs are replaced before anybody sorts by it.
type sortedDocs struct{ title, environment func() []uint32 }

func (p *kindIndex) sortColumns() sortedDocs {
	by := func(column OrderColumn) func() []uint32 {
		return sync.OnceValue(func() []uint32 {
			out := make([]uint32, len(p.docs))
			for i := range out {
				out[i] = uint32(i)
			}
			slices.SortFunc(out, func(a, b uint32) int {
				return p.docs[a].compareTo(column, p.docs[b].orderValue(column), p.docs[b].entity.ID)
			})
			return out
		})
	}
	return sortedDocs{by(OrderTitle), by(OrderEnvironment)}
}

// searchSorted is Search in the order of a column.
func (x *Index) searchSorted(part *kindIndex, q Query) (Page, error) {
	var order []uint32
	switch q.Order.Column {
	case OrderTitle:
		order = part.sorted.title()
	case OrderEnvironment:
		order = part.sorted.environment()
	default:
		return Page{}, fmt.Errorf("sort by %q: %w", q.Order.Column, ErrNotFound)
	}
	column := q.Order.Column
	from, to := 0, len(order)
	if q.Cursor != "" {
		data, err := base64.RawURLEncoding.DecodeString(q.Cursor)
		id, value, ok := strings.Cut(string(data), " ")
		if err != nil || !ok || !validID(KindPerson, id) {
			return Page{}, ErrCursor
		}
		at, found := slices.BinarySearchFunc(order, id, func(n uint32, id string) int { return part.docs[n].compareTo(column, value, id) })
		switch {
		case q.Order.Descending:
			to = at
		case found:
			from = at + 1
		default:
			from = at
		}
	}
	_, words := wordsOf(q)
	found, _ := part.match(words)
	matches := x.filter(q)
	p := Page{Entities: []Entity{}}
	var last *doc // of the page
	for i := range order {
		at := i
		if q.Order.Descending {
			at = len(order) - 1 - i
		}
		d := &part.docs[order[at]]
		if !found.Test(uint(order[at])) || matches != nil && !matches(&d.entity) {
			continue
		}
		p.Total++
		switch {
		case at < from || at >= to || p.Next != "":
		case len(p.Entities) == q.Limit:
			p.Next = base64.RawURLEncoding.EncodeToString([]byte(last.entity.ID + " " + last.orderValue(column)))
		default:
			p.Entities, last = append(p.Entities, d.entity), d
		}
	}
	return p, nil
}
