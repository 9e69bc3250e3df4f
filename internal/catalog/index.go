package catalog

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	"github.com/RoaringBitmap/roaring/v2"
)

// Index is a search index of a catalog's applications and resources in memory. It is immutable and safe for concurrent
// use.
type Index struct {
	catalog *Catalog
	parts   map[Kind]*kindIndex
}

// kindIndex is the index of one kind. Its bitmaps hold positions in docs and are not changed after newKindIndex.
type kindIndex struct {
	docs   []doc // sorted by id
	grams  map[[3]byte]*roaring.Bitmap
	words  []word  // sorted
	labels []label // sorted
	all    *roaring.Bitmap
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
	docs    *roaring.Bitmap
}

// NewIndex indexes a catalog.
func NewIndex(c *Catalog) *Index {
	return &Index{catalog: c, parts: map[Kind]*kindIndex{
		KindApplication: newKindIndex(c, c.sortedApplications), KindResource: newKindIndex(c, c.sortedResources)}}
}

func newKindIndex(c *Catalog, entities []Entity) *kindIndex {
	p := &kindIndex{docs: make([]doc, len(entities)), grams: map[[3]byte]*roaring.Bitmap{}, all: roaring.New()}
	words := map[string]*roaring.Bitmap{}
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
		p.all.Add(uint32(i))
		for j := 0; j+3 <= len(d.text); j++ {
			getOrAddBitmap(p.grams, [3]byte{d.text[j], d.text[j+1], d.text[j+2]}).Add(uint32(i))
		}
		for _, w := range slices.Concat(split(d.text), split(d.about)) {
			getOrAddBitmap(words, strings.Clone(w)).Add(uint32(i))
		}
	}
	for text, docs := range words {
		p.words = append(p.words, word{text, letterMask(text), docs})
	}
	slices.SortFunc(p.words, func(a, b word) int { return strings.Compare(a.text, b.text) })
	slices.SortFunc(p.labels, func(a, b label) int { return cmp.Or(strings.Compare(a.text, b.text), cmp.Compare(a.doc, b.doc)) })
	return p
}

func getOrAddBitmap[K comparable](m map[K]*roaring.Bitmap, key K) *roaring.Bitmap {
	b := m[key]
	if b == nil {
		b = roaring.New()
		m[key] = b
	}
	return b
}

func split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// match finds the entities that have every word. meant are the words that were used instead of words that no entity
// has.
func (p *kindIndex) match(words []string) (found *roaring.Bitmap, meant []string) {
	found = p.all.Clone()
	for _, w := range words {
		have := roaring.New()
		p.withPrefix(w, have)
		p.containing(w, have)
		if have.IsEmpty() {
			have = p.approximate(w, &meant)
		}
		found.And(have)
	}
	return found, meant
}

// approximate finds the entities for a word that no entity has: each part of it between punctuation has to match,
// exactly or with a typing error.
func (p *kindIndex) approximate(w string, meant *[]string) *roaring.Bitmap {
	out := roaring.New()
	for i, piece := range split(w) {
		have := roaring.New()
		if p.withPrefix(piece, have); have.IsEmpty() {
			*meant = append(*meant, p.similar(piece, have)...)
		} else {
			*meant = append(*meant, piece)
		}
		if i == 0 {
			out = have
		} else {
			out.And(have)
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

// containing adds the entities that have w anywhere in id, title or name. It finds candidates by the sequences of three
// bytes in w, and compares the text of those that are not in the set already.
func (p *kindIndex) containing(w string, into *roaring.Bitmap) {
	var may *roaring.Bitmap
	for j := 0; j+3 <= len(w); j++ {
		have := p.grams[[3]byte{w[j], w[j+1], w[j+2]}]
		switch {
		case have == nil:
			return
		case j == 0:
			may = have.Clone()
		default:
			may.And(have)
		}
	}
	if may == nil {
		return
	}
	may.AndNot(into)
	for doc := range roaring.Values(may) {
		if len(w) == 3 || strings.Contains(p.docs[doc].text, w) {
			into.Add(doc)
		}
	}
}

// withPrefix adds the entities that have a word that begins with w. Words contain no punctuation, so punctuation in w
// prevents a match.
func (p *kindIndex) withPrefix(w string, into *roaring.Bitmap) {
	i, _ := slices.BinarySearchFunc(p.words, w, func(x word, w string) int { return strings.Compare(x.text, w) })
	for ; i < len(p.words) && strings.HasPrefix(p.words[i].text, w); i++ {
		into.Or(p.words[i].docs)
	}
}

// similar adds the entities that have a word that differs from w by one error, or by two if w is long, and returns
// these words.
func (p *kindIndex) similar(w string, into *roaring.Bitmap) (meant []string) {
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
			into.Or(x.docs)
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
