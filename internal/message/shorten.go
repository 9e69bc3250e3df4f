package message

import (
	"encoding/json"
	"strings"
)

// ellipsis replaces the end of a text that was cut.
const ellipsis = "..."

// Shorten returns the message with an English text of at most limit bytes and the same code: the longest strings among its parameters,
// which are names and texts of others, are cut. If the words of the catalogue alone are longer, it returns the beginning of the text
// as Verbatim.
func (m Message) Shorten(limit int) Message {
	if len(m.Text) <= limit {
		return m
	}
	cut := Verbatim(strings.ToValidUTF8(m.Text[:max(0, limit-len(ellipsis))], "") + ellipsis)
	if _, known := byCode()[m.Code]; !known {
		return cut
	}
	var params map[string]any
	if json.Unmarshal([]byte(m.Params), &params) != nil {
		return cut
	}
	for length := len(m.Text) / 2; length >= len(ellipsis); length /= 2 {
		nested := false
		for name, v := range params {
			with, ok := withText(cutStrings(v, length), &nested)
			if !ok {
				return cut
			}
			params[name] = with
		}
		if text := render(inEnglish, m.Code, lookup(params)); len(text) <= limit {
			data, err := json.Marshal(params)
			if err != nil {
				return cut
			}
			return Message{Code: m.Code, Params: string(data), Text: text}
		}
	}
	return cut
}

// cutStrings cuts the strings of a parameter to a length in bytes, also those of the messages in it. Codes stay as they are, and texts
// follow from the parameters.
func cutStrings(v any, length int) any {
	switch x := v.(type) {
	case string:
		if len(x) > length {
			return strings.ToValidUTF8(x[:length-len(ellipsis)], "") + ellipsis
		}
	case []any:
		for i := range x {
			x[i] = cutStrings(x[i], length)
		}
	case map[string]any:
		if params, ok := x["params"].(map[string]any); ok {
			for name, p := range params {
				params[name] = cutStrings(p, length)
			}
		}
	}
	return v
}
