package message

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Message is something to tell people. Params is the canonical JSON object of its parameters (strings, numbers, lists of
// strings, Messages and lists of Messages), empty when there are none, so that equal Messages are equal values. Text is
// the English text, so that logs and programs that show no other language need no catalogue.
type Message struct {
	Code   string
	Params string
	Text   string
}

// IsZero reports whether there is nothing to tell.
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

// UnmarshalJSON reads what MarshalJSON writes. The text is kept as it came, because the code may be that of a newer program.
func (m *Message) UnmarshalJSON(data []byte) error {
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

// Decode returns the message that Encode wrote. A text of another form, such as one of an older program, is Verbatim.
func Decode(text string) Message {
	if text == "" {
		return Message{}
	}
	var m Message
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Code == "" {
		return Verbatim(text)
	}
	return m
}

// Error is a Message as an error, for functions whose errors are shown to people.
type Error struct {
	Message Message
	Err     error // what errors.Is finds in it; may be nil
}

// Error is for the log; people are shown what Of returns.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message.Text + ": " + e.Err.Error()
	}
	return e.Message.Text
}

func (e *Error) Unwrap() error { return e.Err }

// Err returns the message as an error.
func (m Message) Err() error { return &Error{Message: m} }

// Wrap returns the message as an error in which errors.Is finds err.
func (m Message) Wrap(err error) error { return &Error{m, err} }

// Of returns what an error tells people: the Message in its chain, or else its text.
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
	return build(codeVerbatim, map[string]any{"text": text})
}

// codeVerbatim has no entry in the catalogue: its text is the same in every language.
const codeVerbatim = "verbatim"

func build(code string, params map[string]any) Message {
	m := Message{Code: code}
	if len(params) > 0 {
		data, err := json.Marshal(params)
		if err != nil { // The parameters are strings, integers and Messages, so this is a defect of this package.
			panic(fmt.Sprintf("message %s: %v", code, err))
		}
		m.Params = string(data)
	}
	m.Text = render(English, code, params)
	return m
}
