package istio

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/message"
)

const (
	// maxMatches bounds the alternatives of one expression.
	maxMatches = 64
	// star represents ".*" while an expression is being split.
	star = "\x00"
	// reserved contains characters with a special meaning in Istio's matches, and those that never reach them because
	// queries are cut off before.
	reserved = star + "*{}?#"
)

// matchesOf converts an anchored regular expression into Istio's matches: exact text, a prefix, a suffix, or "*". It
// returns an error if they would not match the same texts.
func matchesOf(expression string) ([]string, error) {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, message.IstioExpressionInvalid(message.Quoted(expression)).Err()
	}
	texts, ok := alternatives(re)
	if !ok {
		return nil, message.IstioExpressionUnsupported(message.Quoted(expression)).Err()
	}
	var out []string
	for _, t := range texts {
		plain := strings.Trim(t, star)
		switch {
		case t == "":
			continue // a method or path is never empty
		case strings.Contains(plain, star), strings.HasPrefix(t, star) && strings.HasSuffix(t, star) && plain != "":
			return nil, message.IstioExpressionMiddle(message.Quoted(expression)).Err()
		}
		out = append(out, strings.ReplaceAll(collapseStars(t), star, "*"))
	}
	if len(out) == 0 {
		return nil, message.IstioExpressionNothing(message.Quoted(expression)).Err()
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// collapseStars replaces a run of stars by one.
func collapseStars(t string) string {
	for strings.Contains(t, star+star) {
		t = strings.ReplaceAll(t, star+star, star)
	}
	return t
}

// alternatives returns the texts that an expression stands for, with star for ".*". It returns false if there are too
// many, or if the expression is not supported here.
func alternatives(re *syntax.Regexp) ([]string, bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []string{""}, true
	case syntax.OpLiteral:
		text := string(re.Rune)
		return []string{text}, re.Flags&syntax.FoldCase == 0 && !strings.ContainsAny(text, reserved)
	case syntax.OpCharClass:
		var out []string
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if out = append(out, string(r)); len(out) > maxMatches || strings.ContainsRune(reserved, r) {
					return nil, false
				}
			}
		}
		return out, true
	case syntax.OpCapture:
		return alternatives(re.Sub[0])
	case syntax.OpQuest:
		out, ok := alternatives(re.Sub[0])
		return append([]string{""}, out...), ok
	case syntax.OpStar:
		anything := re.Sub[0].Op == syntax.OpAnyChar || re.Sub[0].Op == syntax.OpAnyCharNotNL
		return []string{star}, anything
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			texts, ok := alternatives(sub)
			if out = append(out, texts...); !ok || len(out) > maxMatches {
				return nil, false
			}
		}
		return out, true
	case syntax.OpConcat:
		out := []string{""}
		for _, sub := range re.Sub {
			texts, ok := alternatives(sub)
			if !ok || len(out)*len(texts) > maxMatches {
				return nil, false
			}
			var longer []string
			for _, head := range out {
				for _, tail := range texts {
					longer = append(longer, head+tail)
				}
			}
			out = longer
		}
		return out, true
	default:
		return nil, false
	}
}
