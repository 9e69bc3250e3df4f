package message

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	// maxRecognized is the number of bytes of the longest text that Recognize compares with the catalogue.
	maxRecognized = 4096
	// maxRecognizedDepth is how deep messages among the parameters are recognized.
	maxRecognizedDepth = 4
	// maxPlaces is how many places of a literal in a text are tried as the end of a parameter.
	maxPlaces = 8
)

// Recognize returns the message of the given families (the part of a code before its first point) whose English text is the text; Verbatim
// where there is none. It serves texts that are kept in English only because something is bound to them, such as a digest. The
// text of the result is always the text, so a translation cannot say anything else. Templates with times or with capitalized
// parameters are not recognized. Of several templates that match, one that begins with literal text is chosen, or else the one with the
// most of it.
func Recognize(text string, families ...string) Message {
	if len(text) <= maxRecognized {
		if m, ok := (recognizer{families: families}).message(text, maxRecognizedDepth); ok {
			return m
		}
	}
	return Verbatim(text)
}

// template is the English text of an entry of the catalogue, divided at its parameters.
type template struct {
	code, family string
	literals     []string // one more than params: the text before, between and after them
	params       []param  // the value is the type
	weight       int      // bytes of literal text
}

// prefixed returns 1 if the text begins with literal text, else 0.
func (t template) prefixed() int { return min(len(t.literals[0]), 1) }

// templates returns the templates that can be recognized: those that begin with literal text first, and of these those with the most of it.
var templates = sync.OnceValue(func() []template {
	var out []template
	for _, e := range byCode() {
		if t, ok := newTemplate(e); ok {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b template) int {
		return cmp.Or(cmp.Compare(b.prefixed(), a.prefixed()), cmp.Compare(b.weight, a.weight), strings.Compare(a.code, b.code))
	})
	return out
})

// newTemplate returns false for an entry whose parameters cannot be read from its text.
func newTemplate(e Entry) (template, bool) {
	t := template{code: e.Code}
	t.family, _, _ = strings.Cut(e.Code, ".")
	types := map[string]string{}
	for _, p := range e.Params {
		name, kind, _ := strings.Cut(p, " ")
		types[name] = kind
	}
	rest := e.En
	for {
		before, after, open := strings.Cut(rest, "{")
		t.literals = append(t.literals, before)
		t.weight += len(before)
		if !open {
			// A parameter that the English text does not have cannot be known.
			return t, len(types) == 0
		}
		name, following, _ := strings.Cut(after, "}")
		// In the text of a message, these are as they are in the parameters.
		name = strings.TrimSuffix(strings.TrimSuffix(name, ":plain"), ":duration")
		kind := types[name]
		if kind == "" || kind == "time" || kind == "messages" {
			return template{}, false // also a parameter with a form, and one that stands in the text twice
		}
		delete(types, name)
		t.params = append(t.params, param{name, kind})
		rest = following
	}
}

type recognizer struct{ families []string }

func (r recognizer) message(text string, depth int) (Message, bool) {
	if depth == 0 || text == "" {
		return Message{}, false
	}
	for _, t := range templates() {
		if !slices.Contains(r.families, t.family) {
			continue
		}
		rest, ok := strings.CutPrefix(text, t.literals[0])
		if !ok {
			continue
		}
		values, ok := r.values(t, 0, rest, depth)
		if !ok {
			continue
		}
		if m := t.message(values); m.Text == text {
			return m, true
		}
	}
	return Message{}, false
}

// values returns the values of the parameters from the given one on. The rest of the text begins with the first of them.
func (r recognizer) values(t template, from int, rest string, depth int) ([]any, bool) {
	if from == len(t.params) {
		return nil, rest == ""
	}
	literal := t.literals[from+1]
	if literal == "" && from+1 == len(t.params) {
		v, ok := r.value(t.params[from].value, rest, depth)
		return []any{v}, ok
	}
	if literal == "" {
		return nil, false // two parameters with nothing between them
	}
	at := 0
	for range maxPlaces {
		next := strings.Index(rest[at:], literal)
		if next < 0 {
			break
		}
		at += next
		if v, ok := r.value(t.params[from].value, rest[:at], depth); ok {
			if others, ok := r.values(t, from+1, rest[at+len(literal):], depth); ok {
				return append([]any{v}, others...), true
			}
		}
		at++
	}
	return nil, false
}

// value returns a parameter of a type from its text.
func (r recognizer) value(kind any, text string, depth int) (any, bool) {
	switch kind {
	case "string":
		return text, text != "" && !strings.Contains(text, ": ") // which separates it from the next part
	case "number":
		n, err := strconv.Atoi(text)
		return n, err == nil
	case "list":
		list := strings.Split(text, ", ")
		return list, !slices.ContainsFunc(list, func(name string) bool { return name == "" || strings.Contains(name, " ") })
	default:
		return r.message(text, depth-1)
	}
}

// message returns the message with the values of the parameters, which are in the order of the text.
func (t template) message(values []any) Message {
	if len(values) == 0 {
		return Message{Code: t.code, Text: t.literals[0]}
	}
	params := make([]param, len(values))
	for i, v := range values {
		params[i] = param{t.params[i].name, v}
	}
	slices.SortFunc(params, func(a, b param) int { return strings.Compare(a.name, b.name) })
	return build(t.code, params...)
}
