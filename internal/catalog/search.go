package catalog

import (
	"container/heap"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bits-and-blooms/bitset"

	"github.com/acp-io/acp/internal/message"
)

// Query selects applications or resources. Empty fields are no condition.
type Query struct {
	Kind Kind // KindApplication or KindResource
	// Text is searched in ids, titles, names, descriptions and names of owners. Every word of it must match a word, the
	// beginning of a word, the middle of a word or, if nothing else matches, a word with a typing error.
	Text        string
	Owner       Owner
	Mine        string // a person: selects what the person, or a group of the person, owns
	Sensitivity Sensitivity
	Environment string
	// Class selects the resources of a class by the class's name. ClassOf returns the class of a resource name.
	Class   string
	ClassOf func(name string) string
	// First has the ids that are listed before all others, the highest number first, for example because they were used
	// or denied lately.
	First map[string]int
	// Order is the order of the entities; by default the best matches come first, and First before them.
	Order Order
	// Cursor is the cursor of the previous page in the same order, or empty. Limit is the number of entities, at least 1.
	Cursor string
	Limit  int
}

// Order is a column by which entities are sorted, and by id where it has equal values. The zero value is the default order.
type Order struct {
	Column     OrderColumn
	Descending bool
}

// OrderColumn is a column by which entities can be sorted.
type OrderColumn string

const (
	// OrderTitle sorts by title, in any case.
	OrderTitle OrderColumn = "title"
	// OrderEnvironment sorts by environment, in any case.
	OrderEnvironment OrderColumn = "environment"
)

// Page is one page of a search.
type Page struct {
	Entities []Entity
	Next     string // cursor of the next page; empty on the last page
	Total    int    // number of entities on all pages
}

// ErrCursor reports a cursor that Search did not return.
var ErrCursor = refusal(ErrNotFound, message.CatalogCursorUnknown())

// hit is a found entity. Hits are sorted by score, highest first, then by the position of the entity.
type hit struct {
	score int
	doc   int // its position among all entities, which are sorted by id
}

func (h hit) before(o hit) bool { return h.score > o.score || h.score == o.score && h.doc < o.doc }

// Scores, from the best match to the weakest. Query.First ranks above all of them.
const (
	scoreExact  = 64 // the id or the title
	scorePrefix = 32 // of the id or the title
	scoreWord   = 4  // for each word: the beginning of a word of the id, the title or the name
	scoreInside = 2  // for each word: in the middle
	scoreAbout  = 1  // for each word: in the description or the owner's name
	scoreFirst  = 1 << 20
)

// Search returns one page. Cursors remain valid while the catalog changes: an entity is shown at most once unless its
// position changes.
func (x *Index) Search(q Query) (Page, error) {
	part := x.parts[q.Kind]
	if part == nil {
		return Page{}, fmt.Errorf("search for %q: %w", q.Kind, ErrNotFound)
	}
	if q.Order.Column != "" {
		return x.searchSorted(part, q)
	}
	after, err := part.readCursor(q.Cursor)
	if err != nil {
		return Page{}, err
	}
	text, words := wordsOf(q)
	found, meant := part.match(words)
	top, total := x.best(part, q, after, found, func(d *doc) int { return d.score(text, words, meant) }, part.labelled(text), maxScore(words, meant))
	hits := top.sorted()
	p := Page{Entities: make([]Entity, 0, min(len(hits), q.Limit)), Total: total}
	for i, h := range hits {
		if i == q.Limit {
			p.Next = part.cursor(hits[i-1])
			break
		}
		p.Entities = append(p.Entities, part.docs[h.doc].entity)
	}
	return p, nil
}

// wordsOf returns the text of a query in lower case, and its first words.
func wordsOf(q Query) (text string, words []string) {
	text = strings.ToLower(strings.TrimSpace(q.Text))
	words = strings.Fields(text)
	return text, words[:min(len(words), maxWords)]
}

const maxWords = 8

// maxScore returns the highest score of an entity whose id and title differ from the text; see score.
func maxScore(words, meant []string) int {
	switch {
	case len(words) == 0:
		return 0
	case len(meant) > 0:
		return scoreInside
	}
	return scorePrefix + scoreWord*len(words)
}

// best returns the hits of a page among the entities that were found, and the number of hits on all pages. Entities
// whose id or title equals the text come first. The others have at most the score most and come in the order of their
// positions: as soon as the page is full of such scores, the rest is only counted.
func (x *Index) best(p *kindIndex, q Query, after *hit, found *bitset.BitSet, score func(*doc) int, called []uint32, most int) (top topHits, total int) {
	top.limit = q.Limit + 1
	matches := x.filter(q)
	add := func(n uint32) {
		d := &p.docs[n]
		h := hit{score: score(d) + scoreFirst*q.First[d.entity.ID], doc: int(n)}
		if after == nil || after.before(h) {
			top.add(h)
		}
	}
	for _, n := range called {
		if found.Test(uint(n)) && (matches == nil || matches(&p.docs[n].entity)) {
			add(n)
		}
	}
	for at := range found.EachSet() {
		n := uint32(at)
		full := len(q.First) == 0 && len(top.hits) == top.limit && top.hits[0].score >= most
		if full && matches == nil {
			return top, int(found.Count())
		}
		if matches != nil && !matches(&p.docs[n].entity) {
			continue
		}
		total++
		if _, known := slices.BinarySearch(called, n); !full && !known {
			add(n)
		}
	}
	return top, total
}

// filter returns the conditions of the query except the text, or nil if there are none.
func (x *Index) filter(q Query) func(*Entity) bool {
	if q.Environment == "" && q.Sensitivity == "" && q.Owner == (Owner{}) && q.Mine == "" && q.Class == "" {
		return nil
	}
	var mine identities
	if q.Mine != "" {
		mine = x.catalog.identities(q.Mine)
	}
	return func(e *Entity) bool {
		return (q.Environment == "" || e.Environment == q.Environment) &&
			(q.Sensitivity == "" || e.Sensitivity == q.Sensitivity) &&
			(q.Owner == Owner{} || slices.Contains(e.Owners, q.Owner)) &&
			(q.Mine == "" || mine.owns(*e)) &&
			(q.Class == "" || q.ClassOf != nil && q.ClassOf(e.Name) == q.Class)
	}
}

// cursor contains the score and id of the last hit, which remain valid when positions change.
func (p *kindIndex) cursor(h hit) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(h.score) + " " + p.docs[h.doc].entity.ID))
}

func (p *kindIndex) readCursor(text string) (*hit, error) {
	if text == "" {
		return nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	score, id, ok := strings.Cut(string(data), " ")
	n, numErr := strconv.Atoi(score)
	if err != nil || !ok || numErr != nil || !validID(KindPerson, id) {
		return nil, ErrCursor
	}
	at, found := slices.BinarySearchFunc(p.docs, id, func(d doc, id string) int { return strings.Compare(d.entity.ID, id) })
	if !found {
		at-- // The entity was removed: the one before it was shown as well, or is shown later.
	}
	return &hit{score: n, doc: at}, nil
}

// topHits keeps the first of many hits, in a heap whose root is the last of them.
type topHits struct {
	limit int
	hits  []hit
}

func (t *topHits) Len() int           { return len(t.hits) }
func (t *topHits) Less(i, j int) bool { return t.hits[j].before(t.hits[i]) }
func (t *topHits) Swap(i, j int)      { t.hits[i], t.hits[j] = t.hits[j], t.hits[i] }
func (t *topHits) Push(x any)         { t.hits = append(t.hits, x.(hit)) }
func (t *topHits) Pop() any           { panic("never taken from") }

func (t *topHits) add(h hit) {
	switch {
	case len(t.hits) < t.limit:
		heap.Push(t, h)
	case h.before(t.hits[0]):
		t.hits[0] = h
		heap.Fix(t, 0)
	}
}

func (t *topHits) sorted() []hit {
	slices.SortFunc(t.hits, func(a, b hit) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return t.hits
}
