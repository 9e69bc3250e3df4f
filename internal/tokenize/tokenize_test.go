package tokenize

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		texts  []string
		want   []string
	}{
		"nothing": {"there is nothing to search", []string{"", " -!%"}, nil},
		"words": {
			"without case, each once", []string{"The checkout needs it", "checkout-API_v2"},
			[]string{"api", "checkout", "it", "needs", "the", "v2"},
		},
		"chinese":     {"each two, and the last", []string{"订单缓存"}, []string{"单缓", "存", "缓存", "订单"}},
		"one":         {"it may be all", []string{"单"}, []string{"单"}},
		"mixed":       {"scripts are parted", []string{"用redis缓存"}, []string{"redis", "存", "用", "缓存"}},
		"full width":  {"another form of the same letters", []string{"ＲＥＤＩＳ"}, []string{"redis"}},
		"accents":     {"one letter or two", []string{"e\u0301te", "\u00e9te"}, []string{"\u00e9te"}},
		"very long":   {"its beginning is enough", []string{strings.Repeat("x", 200)}, []string{strings.Repeat("x", maxTokenLength)}},
		"not UTF-8":   {"what is no text parts words", []string{"a\xffb"}, []string{"a", "b"}},
		"other words": {"of scripts with spaces", []string{"Приве́т мир"}, []string{"мир", "приве\u0301т"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Tokens(tc.texts...)); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	in := Tokens("The checkout needs the 订单缓存", "app-123")
	for name, tc := range map[string]struct {
		reason, typed string
		want          bool
	}{
		"a word":          {"as it is", "checkout", true},
		"a beginning":     {"somebody is still typing", "NEE che", true},
		"an id":           {"its parts", "app-12", true},
		"not one of them": {"all are asked for", "checkout cart", false},
		"the middle":      {"only beginnings are known", "heckout", false},
		"chinese":         {"any two that follow each other", "单缓", true},
		"three":           {"both pairs", "单缓存", true},
		"turned round":    {"another word", "存缓", false},
		"the first":       {"begins a pair", "订", true},
		"the last":        {"begins none", "存", true},
		"longer":          {"a word that has more than the text", "checkouts", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Match(in, Prefixes(tc.typed)); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
	if asked := Prefixes("%!"); len(asked) != 0 {
		t.Errorf("nothing to search by: %q", asked)
	}
}

// FuzzTokens checks that a search for a text finds it, and that its tokens are valid and sorted.
func FuzzTokens(f *testing.F) {
	for _, s := range []string{"The checkout needs it", "订单缓存的 redis", "İstanbul ǅ ß ﬁ", "a\xff\U0010ffffb", "ｶﾞｷﾞ한글"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		in := Tokens(text)
		if !slices.IsSorted(in) {
			t.Errorf("%q is not in order", in)
		}
		for _, w := range in {
			if n := utf8.RuneCountInString(w); n == 0 || n > maxTokenLength || !utf8.ValidString(w) {
				t.Errorf("the word %q has %d characters", w, n)
			}
			if w >= PrefixEnd(w) {
				t.Errorf("%q is not before its end", w)
			}
		}
		if !Match(in, Prefixes(text)) {
			t.Errorf("%q is not found by itself: %q in %q", text, Prefixes(text), in)
		}
	})
}
