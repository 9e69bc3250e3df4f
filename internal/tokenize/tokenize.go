// Package tokenize splits texts into search tokens: words, which are found by prefix, and, in scripts without spaces between
// words, each two adjacent characters.
package tokenize

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxTokenLength is the number of characters of a word that are used.
const maxTokenLength = 40

// Tokens returns the tokens of texts, sorted, each once.
func Tokens(texts ...string) []string {
	var out []string
	for _, t := range texts {
		for run := range runs(t) {
			out = append(out, run.words()...)
			if run.dense {
				out = append(out, string(run.text[len(run.text)-1:])) // The last character begins no pair, and may be searched alone.
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Prefixes returns the prefixes that the tokens of a text must match to be found by a query. If there are none, the
// query has nothing to search for.
func Prefixes(typed string) []string {
	var out []string
	for run := range runs(typed) {
		out = append(out, run.words()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Match reports whether tokens, as Tokens returns them, contain one for each of the prefixes.
func Match(in, beginnings []string) bool {
	return !slices.ContainsFunc(beginnings, func(b string) bool {
		i, _ := slices.BinarySearch(in, b)
		return i == len(in) || !strings.HasPrefix(in[i], b)
	})
}

// PrefixEnd returns the upper bound, in byte order, of the texts that begin with a prefix.
func PrefixEnd(word string) string { return word + string(unicode.MaxRune) }

// run is a sequence of characters between two characters that belong to no word.
type run struct {
	text  []rune
	dense bool // of a script without spaces
}

func (r run) words() []string {
	if !r.dense {
		return []string{string(r.text[:min(len(r.text), maxTokenLength)])}
	}
	if len(r.text) == 1 {
		return []string{string(r.text)}
	}
	out := make([]string, 0, len(r.text)-1)
	for i := range len(r.text) - 1 {
		out = append(out, string(r.text[i:i+2]))
	}
	return out
}

// runs yields the runs of a text after Unicode normalization and in lower case.
func runs(text string) func(yield func(run) bool) {
	return func(yield func(run) bool) {
		var now run
		for _, c := range strings.ToLower(norm.NFKC.String(strings.ToValidUTF8(text, " "))) {
			word, dense := unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c), unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana)
			if len(now.text) > 0 && (!word || dense != now.dense) {
				if !yield(now) {
					return
				}
				now = run{}
			}
			if word {
				now.text, now.dense = append(now.text, c), dense
			}
		}
		if len(now.text) > 0 {
			yield(now)
		}
	}
}
