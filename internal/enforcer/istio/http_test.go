package istio

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMatchesOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, expression string
		want               []string
	}{
		"Literal":       {reason: "exact text", expression: "/healthz", want: []string{"/healthz"}},
		"Escaped":       {reason: "an escaped dot is a dot", expression: `/a\.css`, want: []string{"/a.css"}},
		"Alternatives":  {reason: "each apart, factored or not", expression: "GET|HEAD|GEX", want: []string{"GET", "GEX", "HEAD"}},
		"Prefix":        {reason: ".* at the end", expression: "/orders/.*", want: []string{"/orders/*"}},
		"Suffix":        {reason: ".* at the beginning", expression: `.*\.css`, want: []string{"*.css"}},
		"Any":           {reason: "whatever it is", expression: ".*", want: []string{"*"}},
		"Stars":         {reason: "two in a row are one", expression: "/a.*.*", want: []string{"/a*"}},
		"Optional":      {reason: "with and without", expression: "/orders(/.*)?", want: []string{"/orders", "/orders/*"}},
		"Class":         {reason: "a few characters", expression: "/v[12]/x", want: []string{"/v1/x", "/v2/x"}},
		"Empty":         {reason: "no path is empty, so that alternative goes", expression: "(/a)?", want: []string{"/a"}},
		"Middle":        {reason: "Istio has no star in the middle", expression: "/a/.*/b"},
		"BothSides":     {reason: "nor on both sides", expression: ".*a.*"},
		"Plus":          {reason: "one or more is not expressible", expression: "/a.+"},
		"Dot":           {reason: "one of any character neither", expression: "/a."},
		"FoldCase":      {reason: "matches are case-sensitive", expression: "(?i)/a"},
		"Anchors":       {reason: "not understood here", expression: "^/a$"},
		"LiteralStar":   {reason: "a star would be read as a wildcard", expression: `/a\*`},
		"Template":      {reason: "braces would be read as a template", expression: `/\{a\}`},
		"Query":         {reason: "a query never reaches the match", expression: `/a\?b=c`},
		"ManyInClass":   {reason: "too many", expression: "/[^a]"},
		"StarInClass":   {reason: "as with a literal star", expression: "/[*a]"},
		"Many":          {reason: "more alternatives than are worth writing", expression: "[a-h][a-h][a-h]"},
		"OnlyEmpty":     {reason: "it would match nothing", expression: "()"},
		"NoExpression":  {reason: "not a regular expression", expression: "("},
		"CountedLetter": {reason: "not understood here", expression: "a{2}"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := matchesOf(tc.expression)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.want != nil) {
				t.Errorf("%s: matchesOf(%q) = %v, %v; -want +got:\n%s", tc.reason, tc.expression, got, err, diff)
			}
		})
	}
}

// FuzzMatchesOf: what is written as Istio's matches matches the same text as the expression.
func FuzzMatchesOf(f *testing.F) {
	for _, e := range []string{"GET|HEAD", "/orders(/.*)?", `.*\.css`, "/v[12](/.*|)", "(?s).*", "a|(?i)b", "\\x00", "/a|/b.*|.*c"} {
		f.Add(e, uint64(1))
	}
	f.Fuzz(func(t *testing.T, expression string, seed uint64) {
		matches, err := matchesOf(expression)
		if err != nil {
			return
		}
		re, err := regexp.Compile(`^(?:` + expression + `)$`)
		if err != nil {
			t.Fatalf("%q became %v and is no expression: %v", expression, matches, err)
		}
		r := rand.New(rand.NewPCG(seed, 1))
		pool := []rune("/abcvGETHADorders12." + expression)
		for range 50 {
			text := make([]rune, 1+r.IntN(8))
			for i := range text {
				text[i] = pool[r.IntN(len(pool))]
			}
			for _, s := range append([]string{string(text)}, grown(matches, string(text))...) {
				if regexp.MustCompile(`[?#\n]`).MatchString(s) {
					continue // in no path
				}
				if got, want := listed(matches, s, false), re.MatchString(s); got != want {
					t.Fatalf("%q became %q; %q matches: %v, want %v", expression, matches, s, got, want)
				}
			}
		}
	})
}

// grown are texts near the matches.
func grown(matches []string, text string) []string {
	var out []string
	for _, m := range matches {
		for _, s := range []string{m, m + text, text + m} {
			out = append(out, regexp.MustCompile(`\*`).ReplaceAllString(s, text))
		}
	}
	return out
}
