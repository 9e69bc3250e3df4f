// Package tokenize splits texts into search tokens: words, which are found by prefix, and, in scripts without spaces between
// words, each two adjacent characters.
package tokenize

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// longest is how much of a word is looked at, in characters.
const longest = 40

// Tokens are the words of texts, each once, in order.
func Tokens(texts ...string) []string {
	var out []string
	for _, t := range texts {
		for run := range runs(t) {
			out = append(out, run.words()...)
			if run.dense {
				out = append(out, string(run.text[len(run.text)-1:])) // begins no pair, and may be asked for alone
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Prefixes are the beginnings of words that a text must have for what somebody typed; none: there is nothing to search by.
func Prefixes(typed string) []string {
	var out []string
	for run := range runs(typed) {
		out = append(out, run.words()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Match tells whether words, as Of returns them, have one that begins with each of some beginnings.
func Match(in, beginnings []string) bool {
	return !slices.ContainsFunc(beginnings, func(b string) bool {
		i, _ := slices.BinarySearch(in, b)
		return i == len(in) || !strings.HasPrefix(in[i], b)
	})
}

// PrefixEnd is the first text behind all that begin with a word, in the order of bytes.
func PrefixEnd(word string) string { return word + string(unicode.MaxRune) }

// run is what stands between two characters that belong to no word.
type run struct {
	text  []rune
	dense bool // of a script without spaces
}

func (r run) words() []string {
	if !r.dense {
		return []string{string(r.text[:min(len(r.text), longest)])}
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

// runs of a text, in the form and the case in which they are compared.
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
