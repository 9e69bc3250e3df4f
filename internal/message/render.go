package message

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// Language is a language of the catalogue.
type Language string

// The languages.
const (
	// English is the language with the code en.
	English Language = "en"
	// Chinese is the language with the code zh.
	Chinese Language = "zh"
)

// LanguageOf returns the language of a locale such as zh_CN.UTF-8; English where there is no catalogue for it.
func LanguageOf(locale string) Language {
	if strings.HasPrefix(strings.ToLower(locale), string(Chinese)) {
		return Chinese
	}
	return English
}

// Entry is one entry of the catalogue. Each of Params is "name type" with the type string, number, list, time, message or
// messages, in the order of the constructor's arguments. Texts have the parameters in braces; {name:sentence} begins
// with a capital letter, {name:list} joins Messages like words instead of like sentences, {name:time} is an instant in the
// time zone of the reader, {name:duration} is a duration such as 1d 12h in words, and {name:plain} is a number without
// separators of thousands, such as a port or a version.
type Entry struct {
	Code   string   `json:"code"`
	Params []string `json:"params,omitempty"`
	En     string   `json:"en"`
	Zh     string   `json:"zh"`
}

//go:embed catalogue.json
var source []byte

// Catalogue returns the entries in the order of their codes.
func Catalogue() ([]Entry, error) {
	var entries []Entry
	if err := json.Unmarshal(source, &entries); err != nil {
		return nil, fmt.Errorf("read the catalogue of messages: %w", err)
	}
	return entries, nil
}

var byCode = sync.OnceValue(func() map[string]Entry {
	entries, err := Catalogue()
	if err != nil {
		panic(err) // The file is compiled in, and a test reads it.
	}
	out := make(map[string]Entry, len(entries))
	for _, e := range entries {
		out[e.Code] = e
	}
	return out
})

// Reader is the language and the time zone for which a text is rendered.
type Reader struct {
	Language Language
	Zone     *time.Location // nil is UTC
	// stored renders Message.Text, in which numbers and durations are as they are in the parameters: digests and stored texts of
	// earlier versions are compared with it.
	stored bool
}

// inEnglish is the reader of Message.Text.
var inEnglish = Reader{Language: English, stored: true}

// Render returns the text in a language, with times in UTC.
func (m Message) Render(language Language) string { return m.RenderFor(Reader{Language: language}) }

// RenderFor returns the text in the language and the time zone of a reader. The English text that came with the message is
// returned if the program does not have its code, and in English if nothing in it differs for readers.
func (m Message) RenderFor(r Reader) string {
	if _, known := byCode()[m.Code]; r == inEnglish || !known {
		return m.Text
	}
	params := map[string]any{}
	if m.Params != "" {
		if err := json.Unmarshal([]byte(m.Params), &params); err != nil {
			return m.Text
		}
	}
	if r.Language == English && !differs(m.Code, params) {
		return m.Text
	}
	return render(r, m.Code, lookup(params))
}

// differs reports whether the English text for a reader differs from Message.Text: because the text of the message, or of one among
// its parameters as JSON decoded them, has a time, a duration, or a number with separators.
func differs(code string, params map[string]any) bool {
	text := byCode()[code].En
	if strings.Contains(text, ":time}") || strings.Contains(text, ":duration}") {
		return true
	}
	for name, v := range params {
		if n, ok := v.(float64); ok && math.Abs(n) >= 1000 && strings.Contains(text, "{"+name+"}") {
			return true
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, each := range list {
			if m, ok := each.(map[string]any); ok {
				code, _ := m["code"].(string)
				nested, _ := m["params"].(map[string]any)
				if differs(code, nested) {
					return true
				}
			}
		}
	}
	return false
}

// lookup returns the parameters as JSON decoded them.
func lookup(params map[string]any) func(string) any {
	return func(name string) any { return params[name] }
}

func render(r Reader, code string, param func(name string) any) string {
	entry, known := byCode()[code]
	if !known {
		text, _ := param("text").(string)
		return text
	}
	template := entry.En
	if r.Language == Chinese {
		template = entry.Zh
	}
	var b strings.Builder
	b.Grow(len(template) + 64)
	for {
		before, rest, open := strings.Cut(template, "{")
		b.WriteString(before)
		if !open {
			return b.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		name, form, _ := strings.Cut(name, ":")
		text := value(r, param(name), form)
		switch form {
		case "sentence":
			text = capitalized(text)
		case "time":
			text = r.clock(text)
		case "duration":
			text = r.duration(text)
		}
		b.WriteString(text)
		template = after
	}
}

// clock returns an instant in RFC 3339 as the time in the reader's zone. Another text, such as one that was shortened, is returned unchanged.
func (r Reader) clock(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	zone := r.Zone
	if zone == nil {
		zone = time.UTC
	}
	return at.In(zone).Format("2006-01-02 15:04 MST")
}

// number returns a number with separators of thousands, which are the same in all languages.
func (r Reader) number(n int64, form string) string {
	if r.stored || form == "plain" {
		return strconv.FormatInt(n, 10)
	}
	return humanize.Comma(n)
}

// unit is a unit of durations with its names.
type unit struct {
	length        time.Duration
	one, many, zh string
}

// units are the units of durations, the longest first.
var units = []unit{
	{day, "day", "days", "天"},
	{time.Hour, "hour", "hours", "小时"},
	{time.Minute, "minute", "minutes", "分钟"},
	{time.Second, "second", "seconds", "秒"},
}

const day = 24 * time.Hour

// duration returns a duration such as 1d 12h or 36h0m0s in words. Another text, such as one that was shortened, is returned unchanged.
func (r Reader) duration(text string) string {
	d, ok := parseDuration(text)
	if r.stored || !ok || d == 0 {
		return text
	}
	var parts []string
	for _, u := range units {
		n := d / u.length
		d -= n * u.length
		name := u.many
		switch {
		case n == 0:
			continue
		case r.Language == Chinese:
			name = u.zh
		case n == 1:
			name = u.one
		}
		parts = append(parts, r.number(int64(n), "")+" "+name)
	}
	return strings.Join(parts, " ")
}

// parseDuration parses a duration of whole seconds, which may begin with days.
func parseDuration(text string) (time.Duration, bool) {
	days, rest, hasDays := strings.Cut(strings.ReplaceAll(text, " ", ""), "d")
	if !hasDays {
		days, rest = "0", days
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, false
	}
	d, err := time.ParseDuration(cmp.Or(rest, "0s"))
	total := time.Duration(n)*day + d // negative if it overflows
	return total, err == nil && d >= 0 && total >= 0 && d%time.Second == 0
}

// value renders a parameter as a constructor holds it, or as JSON decodes it, in the form of its place. Messages are joined by
// semicolons, or by commas if they are words.
func value(r Reader, v any, form string) string {
	comma, semicolon := ", ", "; "
	if r.Language == Chinese {
		comma, semicolon = "、", "；"
	}
	if form == "list" {
		semicolon = comma
	}
	switch x := v.(type) {
	case string:
		return x
	case int:
		return r.number(int64(x), form)
	case int64:
		return r.number(x, form)
	case float64:
		if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return strconv.FormatFloat(x, 'f', -1, 64)
		}
		return r.number(int64(x), form)
	case []string:
		return strings.Join(x, comma)
	case time.Time:
		return x.UTC().Format(time.RFC3339)
	case Message:
		return x.RenderFor(r)
	case []Message:
		parts := make([]string, len(x))
		for i, m := range x {
			parts[i] = m.RenderFor(r)
		}
		return strings.Join(parts, semicolon)
	case map[string]any:
		return decoded(x).RenderFor(r)
	case []any:
		parts, separator := make([]string, len(x)), comma
		for i, each := range x {
			parts[i] = value(r, each, form)
			if _, nested := each.(map[string]any); nested {
				separator = semicolon
			}
		}
		return strings.Join(parts, separator)
	}
	return ""
}

// decoded returns the Message that JSON decoded into a map.
func decoded(v map[string]any) Message {
	code, _ := v["code"].(string)
	text, _ := v["text"].(string)
	m := Message{Code: code, Text: text}
	if params, ok := v["params"].(map[string]any); ok {
		data, _ := json.Marshal(params)
		m.Params = string(data)
	}
	return m
}

func capitalized(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
