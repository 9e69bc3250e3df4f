package message

import (
	"encoding/json"
	"strings"
)

// Compact returns the code and the parameters for a store that keeps the text beside them, such as the status of an
// object. Messages among the parameters are without their texts, which follow from the catalogue. Verbatim has neither
// code nor parameters, because they would only repeat the text.
func (m Message) Compact() (code, params string) {
	if m.Code == codeVerbatim || m.Params == "" || !strings.Contains(m.Params, `"code":`) {
		if m.Code == codeVerbatim {
			return "", ""
		}
		return m.Code, m.Params
	}
	var values map[string]any
	if err := json.Unmarshal([]byte(m.Params), &values); err != nil {
		return "", ""
	}
	for name, v := range values {
		values[name] = withoutText(v)
	}
	data, err := json.Marshal(values)
	if err != nil {
		return "", ""
	}
	return m.Code, string(data)
}

// Restore returns the message of a text with what Compact returned for it. Without a code, which an older program did
// not store, it is Verbatim. So it is if a message among the parameters has a code that this program does not have,
// because then only the text says everything. A message whose own code is not known is kept and rendered as the text.
func Restore(text, code, params string) Message {
	if code == "" {
		return Verbatim(text)
	}
	m := Message{Code: code, Params: params, Text: text}
	if params == "" {
		return m
	}
	var values map[string]any
	if err := json.Unmarshal([]byte(params), &values); err != nil {
		return Verbatim(text)
	}
	nested := false
	for name, v := range values {
		with, known := withText(v, &nested)
		if !known {
			return Verbatim(text)
		}
		values[name] = with
	}
	if !nested {
		return m
	}
	data, err := json.Marshal(values)
	if err != nil {
		return Verbatim(text)
	}
	m.Params = string(data)
	return m
}

// withoutText removes the texts of the messages in a parameter.
func withoutText(v any) any {
	switch x := v.(type) {
	case []any:
		for i := range x {
			x[i] = withoutText(x[i])
		}
	case map[string]any:
		delete(x, "text")
		if params, ok := x["params"].(map[string]any); ok && x["code"] != codeVerbatim {
			for name, p := range params {
				params[name] = withoutText(p)
			}
		}
	}
	return v
}

// withText adds the texts to the messages in a parameter. It returns false if one has a code that is not known.
func withText(v any, nested *bool) (any, bool) {
	switch x := v.(type) {
	case []any:
		for i := range x {
			with, known := withText(x[i], nested)
			if !known {
				return nil, false
			}
			x[i] = with
		}
	case map[string]any:
		*nested = true
		code, _ := x["code"].(string)
		if _, known := byCode()[code]; !known && code != codeVerbatim {
			return nil, false
		}
		params, _ := x["params"].(map[string]any)
		for name, p := range params {
			if code == codeVerbatim {
				break
			}
			with, known := withText(p, nested)
			if !known {
				return nil, false
			}
			params[name] = with
		}
		x["text"] = render(inEnglish, code, lookup(params))
	}
	return v, true
}

// OfNamedText returns the message that has a text, such as one of OfText, if a constructor makes it of one name, which is read from the text.
func OfNamedText(text string, of func(name string) Message) (m Message, ok bool) {
	const mark = "\x00"
	before, after, _ := strings.Cut(of(mark).Text, mark)
	if len(text) < len(before)+len(after) || !strings.HasPrefix(text, before) || !strings.HasSuffix(text, after) {
		return Message{}, false
	}
	m = of(text[len(before) : len(text)-len(after)])
	return m, m.Text == text
}

// OfText returns the candidate that has a text which a store keeps without its code, such as the message of a condition. The text may be
// the beginning of the candidate's, followed by "...". A text that no candidate has, such as one of another version, is Verbatim.
func OfText(text string, candidates ...Message) Message {
	for _, m := range candidates {
		if m.Text == text {
			return m
		}
		if begin, cut := strings.CutSuffix(text, "..."); cut && begin != "" && strings.HasPrefix(m.Text, begin) {
			return m
		}
	}
	return Verbatim(text)
}
