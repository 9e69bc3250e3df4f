package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Message is a text for users. Params is the canonical JSON object of its parameters (strings, numbers, lists of
// strings, Messages and lists of Messages, times in RFC 3339), empty when there are none, so that equal Messages are equal
// values. Text is the English text with times in UTC, and numbers and durations as they are in Params, so that logs and
// programs that show no other language need no catalogue.
type Message struct {
	Code   string
	Params string
	Text   string
}

// IsZero reports whether there is no message.
func (m Message) IsZero() bool { return m == Message{} }

func (m Message) String() string { return m.Text }

type wire struct {
	Code   string          `json:"code"`
	Params json.RawMessage `json:"params,omitempty"`
	Text   string          `json:"text"`
}

// MarshalJSON writes {"code", "params", "text"}.
func (m Message) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{m.Code, json.RawMessage(m.Params), m.Text})
}

// UnmarshalJSON reads what MarshalJSON writes, or a string, which an earlier version sent. The text is kept as it came,
// because the code may be that of a newer program.
func (m *Message) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return fmt.Errorf("read a message: %w", err)
		}
		*m = Verbatim(text)
		return nil
	}
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	*m = Message{Code: w.Code, Text: w.Text}
	if len(w.Params) == 0 || string(w.Params) == "null" {
		return nil
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(w.Params, &params); err != nil {
		return fmt.Errorf("read the parameters of the message %s: %w", w.Code, err)
	}
	canonical, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("read the parameters of the message %s: %w", w.Code, err)
	}
	m.Params = string(canonical)
	return nil
}

// Encode returns the message as one line of JSON, for stores that keep it in a column; empty for the zero Message.
func (m Message) Encode() string {
	if m.IsZero() {
		return ""
	}
	data, _ := m.MarshalJSON() // Params is valid JSON in every Message that a constructor or UnmarshalJSON made.
	return string(data)
}

// Decode returns the message that Encode wrote, or whose code is the whole text. A text of another form, such as one of
// an older program, is Verbatim.
func Decode(text string) Message {
	if text == "" {
		return Message{}
	}
	if e, known := byCode()[text]; known && len(e.Params) == 0 {
		return Message{Code: e.Code, Text: e.En}
	}
	var m Message
	if text[0] != '{' || json.Unmarshal([]byte(text), &m) != nil || m.Code == "" {
		return Verbatim(text)
	}
	return m
}

// Same reports whether two messages have the same text: they are equal, or one of them is the plain text of the other, as an
// older program stored it.
func (m Message) Same(other Message) bool {
	return m == other || (m.Code == codeVerbatim || other.Code == codeVerbatim) && m.Text == other.Text
}

// Stored is a Message in a JSON document that earlier versions read, in which it is a string in the form of Encode.
type Stored struct{ Message }

// MarshalJSON writes a string that Decode reads.
func (s Stored) MarshalJSON() ([]byte, error) { return json.Marshal(s.Encode()) }

// UnmarshalJSON reads what MarshalJSON writes, or the text that an earlier version wrote.
func (s *Stored) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("read a stored message: %w", err)
	}
	s.Message = Decode(text)
	return nil
}

// Error is a Message as an error, for functions whose errors are shown to people.
type Error struct {
	Message Message
	Err     error // what errors.Is finds in it; may be nil
	// kind reports whether Err is a sentinel error, which adds nothing to the text.
	kind bool
}

// Error is for the log; people are shown what Of returns.
func (e *Error) Error() string {
	if e.Err != nil && !e.kind {
		return e.Message.Text + ": " + e.Err.Error()
	}
	return e.Message.Text
}

func (e *Error) Unwrap() error { return e.Err }

// Err returns the message as an error.
func (m Message) Err() error { return &Error{Message: m} }

// Wrap returns the message as an error in which errors.Is finds err.
func (m Message) Wrap(err error) error { return &Error{Message: m, Err: err} }

// WithKind returns the message as an error of a kind: errors.Is finds the sentinel error, and the text does not repeat it.
func (m Message) WithKind(kind error) error { return &Error{Message: m, Err: kind, kind: true} }

// Quoted returns a text as it is written between quotes, so that the text of others adds no control characters to logs.
func Quoted(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// NamesOf lists the first of many names, and the number of the others.
func NamesOf(names []string, most int) Message {
	if len(names) <= most {
		return NamesList(names)
	}
	return NamesListAndMore(names[:most:most], len(names)-most)
}

// Of returns the message of an error for users: the Message in its chain, or else its text.
func Of(err error) Message {
	if err == nil {
		return Message{}
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Message
	}
	return Verbatim(err.Error())
}

// Verbatim is a text of another program, which has no translation.
func Verbatim(text string) Message {
	if text == "" {
		return Message{}
	}
	return build(codeVerbatim, param{"text", text})
}

// codeVerbatim has no entry in the catalogue: its text is the same in every language.
const codeVerbatim = "verbatim"

// param is a parameter of a message: a string, an int, a []string, a time.Time, a Message or a []Message.
type param struct {
	name  string
	value any
}

// build makes a message. The parameters must be sorted by name, so that equal messages are equal values.
func build(code string, params ...param) Message {
	data := append(make([]byte, 0, 96), '{')
	for i, p := range params {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(appendText(data, p.name), ':')
		data = appendValue(data, p.value)
	}
	return Message{Code: code, Params: string(append(data, '}')), Text: render(inEnglish, code, func(name string) any {
		for i := range params {
			if params[i].name == name {
				return params[i].value
			}
		}
		return nil
	})}
}

// appendValue appends the JSON of a parameter. It writes what json.Marshal would, without reflection: statuses are
// built during every push.
func appendValue(data []byte, v any) []byte {
	switch x := v.(type) {
	case string:
		return appendText(data, x)
	case int:
		return strconv.AppendInt(data, int64(x), 10)
	case []string:
		return appendList(data, x, appendText)
	case time.Time:
		return appendText(data, x.UTC().Format(time.RFC3339))
	case Message:
		return appendMessage(data, x)
	case []Message:
		return appendList(data, x, appendMessage)
	}
	panic(fmt.Sprintf("a parameter of a message is a %T", v)) // The generator writes no other type.
}

func appendList[T any](data []byte, list []T, add func([]byte, T) []byte) []byte {
	data = append(data, '[')
	for i, x := range list {
		if i > 0 {
			data = append(data, ',')
		}
		data = add(data, x)
	}
	return append(data, ']')
}

func appendMessage(data []byte, m Message) []byte {
	data = appendText(append(data, `{"code":`...), m.Code)
	if m.Params != "" {
		data = append(append(data, `,"params":`...), m.Params...)
	}
	return append(appendText(append(data, `,"text":`...), m.Text), '}')
}

// appendText appends a text as a JSON string.
func appendText(data []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(text) // A string always has a JSON form.
			return append(data, quoted...)
		}
	}
	return append(append(append(data, '"'), text...), '"')
}
