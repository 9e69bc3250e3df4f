package catalog

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/bits-and-blooms/bitset"
)

// Index is a search index of a catalog's applications and resources in memory. It is immutable and safe for concurrent
// use.
type Index struct {
	catalog *Catalog
	parts   map[Kind]*kindIndex
}

// kindIndex is the index of one kind. It is not changed after newKindIndex.
type kindIndex struct {
	docs   []doc // sorted by id
	grams  map[[3]byte]*postings
	words  []word  // sorted
	labels []label // sorted
	sorted sortedDocs
}

// postings are the documents in which a word or a sequence of three bytes occurs, as positions in kindIndex.docs in
// ascending order.
type postings []uint32

// add appends the document with the highest position so far, unless the postings contain it.
func (p *postings) add(doc uint32) {
	if n := len(*p); n == 0 || (*p)[n-1] != doc {
		*p = append(*p, doc)
	}
}

// label is an id or a title of a document, in lower case.
type label struct {
	text string
	doc  uint32
}

// doc is an entity with its text in lower case.
type doc struct {
	entity    Entity
	id, title string
	text      string // id, title and name
	about     string // description and names of owners
}

type word struct {
	text    string
	letters uint64 // a bit set of its letters and digits
	docs    postings
	// frequent has the documents of a word that many documents have, and is nil for other words.
	frequent *bitset.BitSet
}

// addTo adds the documents that have the word.
func (w *word) addTo(into *bitset.BitSet) {
	if w.frequent != nil {
		into.InPlaceUnion(w.frequent)
		return
	}
	for _, doc := range w.docs {
		into.Set(uint(doc))
	}
}

// NewIndex indexes a catalog.
func NewIndex(c *Catalog) *Index {
	return &Index{catalog: c, parts: map[Kind]*kindIndex{
		KindApplication: newKindIndex(c, c.sortedApplications), KindResource: newKindIndex(c, c.sortedResources)}}
}

func newKindIndex(c *Catalog, entities []Entity) *kindIndex {
	p := &kindIndex{docs: make([]doc, len(entities)), grams: map[[3]byte]*postings{}}
	words := map[string]*postings{}
	for i, e := range entities {
		owners := make([]string, len(e.Owners))
		for j, o := range e.Owners {
			owners[j] = o.ID + " " + c.OwnerName(o)
		}
		d := doc{entity: e, id: strings.ToLower(e.ID), title: strings.ToLower(e.Title)}
		d.text = d.id + "\n" + d.title + "\n" + strings.ToLower(e.Name)
		d.about = strings.ToLower(e.Description + "\n" + strings.Join(owners, "\n"))
		p.docs[i] = d
		p.labels = append(p.labels, label{d.id, uint32(i)}, label{d.title, uint32(i)})
		for j := 0; j+3 <= len(d.text); j++ {
			getOrAdd(p.grams, [3]byte{d.text[j], d.text[j+1], d.text[j+2]}).add(uint32(i))
		}
		for _, w := range slices.Concat(split(d.text), split(d.about)) {
			getOrAdd(words, w).add(uint32(i))
		}
	}
	for text, docs := range words {
		w := word{text: strings.Clone(text), letters: letterMask(text), docs: *docs}
		if len(w.docs) > len(entities)/64 {
			w.frequent = p.none()
			for _, doc := range w.docs {
				w.frequent.Set(uint(doc))
			}
		}
		p.words = append(p.words, w)
	}
	p.sorted = p.sortColumns()
	slices.SortFunc(p.words, func(a, b word) int { return strings.Compare(a.text, b.text) })
	slices.SortFunc(p.labels, func(a, b label) int { return cmp.Or(strings.Compare(a.text, b.text), cmp.Compare(a.doc, b.doc)) })
	return p
}

func getOrAdd[K comparable](m map[K]*postings, key K) *postings {
	p := m[key]
	if p == nil {
		p = &postings{}
		m[key] = p
	}
	return p
}

func split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// match finds the entities that have every word. meant are the words that were used instead of words that no entity
// has.
func (p *kindIndex) match(words []string) (found *bitset.BitSet, meant []string) {
	found = p.none().FlipRange(0, uint(len(p.docs)))
	for _, w := range words {
		have := p.none()
		p.withPrefix(w, have)
		p.containing(w, have)
		if have.None() {
			have = p.approximate(w, &meant)
		}
		found.InPlaceIntersection(have)
	}
	return found, meant
}

// none returns an empty set of documents.
func (p *kindIndex) none() *bitset.BitSet { return bitset.New(uint(len(p.docs))) }

// approximate finds the entities for a word that no entity has: each part of it between punctuation has to match,
// exactly or with a typing error.
func (p *kindIndex) approximate(w string, meant *[]string) *bitset.BitSet {
	out := p.none()
	for i, piece := range split(w) {
		have := p.none()
		if p.withPrefix(piece, have); have.None() {
			*meant = append(*meant, p.similar(piece, have)...)
		} else {
			*meant = append(*meant, piece)
		}
		if i == 0 {
			out = have
		} else {
			out.InPlaceIntersection(have)
		}
	}
	return out
}

// labelled returns the entities with this id or title, in ascending order.
func (p *kindIndex) labelled(text string) (docs []uint32) {
	i, _ := slices.BinarySearchFunc(p.labels, text, func(c label, text string) int { return strings.Compare(c.text, text) })
	for ; i < len(p.labels) && p.labels[i].text == text; i++ {
		docs = append(docs, p.labels[i].doc)
	}
	return slices.Compact(docs)
}

// containing adds the entities that have w anywhere in id, title or name. Its candidates are the entities with the rarest sequence
// of three bytes in w; it compares the text of the candidates that are not in the set already.
func (p *kindIndex) containing(w string, into *bitset.BitSet) {
	if len(w) < 3 {
		return
	}
	var rarest postings
	for j := 0; j+3 <= len(w); j++ {
		docs := p.grams[[3]byte{w[j], w[j+1], w[j+2]}]
		if docs == nil {
			return
		}
		if j == 0 || len(*docs) < len(rarest) {
			rarest = *docs
		}
	}
	for _, doc := range rarest {
		if !into.Test(uint(doc)) && (len(w) == 3 || strings.Contains(p.docs[doc].text, w)) {
			into.Set(uint(doc))
		}
	}
}

// withPrefix adds the entities that have a word that begins with w. Words contain no punctuation, so punctuation in w
// prevents a match.
func (p *kindIndex) withPrefix(w string, into *bitset.BitSet) {
	i, _ := slices.BinarySearchFunc(p.words, w, func(x word, w string) int { return strings.Compare(x.text, w) })
	for ; i < len(p.words) && strings.HasPrefix(p.words[i].text, w); i++ {
		p.words[i].addTo(into)
	}
}

// similar adds the entities that have a word that differs from w by one error, or by two if w is long, and returns
// these words.
func (p *kindIndex) similar(w string, into *bitset.BitSet) (meant []string) {
	const shortest, long, mostMeant = 4, 8, 32
	n := len(w)
	if n < shortest || n > 64 {
		return nil
	}
	most := 1
	if n >= long {
		most = 2
	}
	have := letterMask(w)
	for i := range p.words {
		x := &p.words[i]
		// An error adds a letter to one of the two words, or one to each.
		if abs(len(x.text)-n) > most || bits.OnesCount64(x.letters&^have) > most || bits.OnesCount64(have&^x.letters) > most {
			continue
		}
		if editDistance(w, x.text, most) <= most {
			x.addTo(into)
			if len(meant) < mostMeant {
				meant = append(meant, x.text)
			}
		}
	}
	return meant
}

// score returns the score of a document that matches all words, or the words that were meant.
func (d *doc) score(text string, words, meant []string) int {
	if text == "" {
		return 0
	}
	if len(meant) > 0 {
		if slices.ContainsFunc(meant, func(w string) bool { return strings.Contains(d.text, w) }) {
			return scoreInside
		}
		return scoreAbout
	}
	n := 0
	switch {
	case d.id == text || d.title == text:
		n = scoreExact
	case strings.HasPrefix(d.id, text) || strings.HasPrefix(d.title, text):
		n = scorePrefix
	}
	for _, w := range words {
		switch at := strings.Index(d.text, w); {
		case at < 0:
			n += scoreAbout
		case wordBegins(d.text, w, at):
			n += scoreWord
		default:
			n += scoreInside
		}
	}
	return n
}

// wordBegins reports whether a word of the text begins with w. at is the first position of w in the text.
func wordBegins(text, w string, at int) bool {
	for {
		if at == 0 || !isWord(text[at-1]) {
			return true
		}
		next := strings.Index(text[at+1:], w)
		if next < 0 {
			return false
		}
		at += 1 + next
	}
}

func isWord(b byte) bool {
	return b >= 0x80 || b >= 'a' && b <= 'z' || b >= '0' && b <= '9'
}

func letterMask(w string) (out uint64) {
	for i := range len(w) {
		out |= 1 << (w[i] & 63)
	}
	return out
}

func abs(n int) int { return max(n, -n) }

// editDistance returns the number of letters that are inserted, left out, changed or swapped with their neighbour
// (optimal string alignment). If it is more than most, the result is some number above most.
func editDistance(a, b string, most int) int {
	var rows [3][66]int
	before, above, row := rows[0][:len(b)+1], rows[1][:len(b)+1], rows[2][:len(b)+1]
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > most {
			return most + 1
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
