package ledger

import (
	"strings"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Suffixes of the keys of details that have the code and the parameters of the message whose English text is the detail itself. The
// hash of the line covers them like the text.
const (
	codeSuffix   = "Code"
	paramsSuffix = "Params"
)

// SetMessage stores a text of the portal in the details of an entry, with its code and parameters under further keys, so that it can be
// shown in other languages. Texts of people and of other programs are stored without SetMessage, and have no code.
func SetMessage(details map[string]string, key string, m message.Message) {
	if m.IsZero() {
		return
	}
	details[key] = m.Text
	code, params := m.Compact()
	if code != "" {
		details[key+codeSuffix] = code
	}
	if params != "" {
		details[key+paramsSuffix] = params
	}
}

// Message returns the text of the entry's action. It is derived from the action, so it needs nothing that is stored. It is zero if this
// version does not know the action.
func (e Entry) Message() message.Message {
	if of := actions[e.Action]; of != nil {
		return of()
	}
	return message.Message{}
}

// Labels returns the names of the keys of the details. Keys that are identifiers, or that this version does not know, have none.
func (e Entry) Labels() map[string]message.Message {
	out := map[string]message.Message{}
	if identifiersAsKeys[e.Action] {
		return out
	}
	for key := range e.Details {
		if of := labels[key]; of != nil {
			out[key] = of()
		}
	}
	return out
}

// Texts returns, by key, the details that are texts of ACP or times: those with a stored code, those whose values ACP chooses from a
// list, and instants. Texts that earlier versions stored have no code, and are not returned. Neither are the words of people.
func (e Entry) Texts() map[string]message.Message {
	out := map[string]message.Message{}
	if identifiersAsKeys[e.Action] {
		return out
	}
	for key, value := range e.Details {
		if code := e.Details[key+codeSuffix]; code != "" {
			out[key] = message.Restore(value, code, e.Details[key+paramsSuffix])
			continue
		}
		list := valueTexts[key]
		if key == "step" && e.Action == "ticket.reviewed" {
			list = reviewStates
		}
		if of := list[value]; of != nil {
			out[key] = of()
			continue
		}
		if resource, ok := strings.CutPrefix(value, "owner:"); ok && key == "step" {
			out[key] = message.StepNameOwnerOf(resource)
			continue
		}
		if at, err := time.Parse(time.RFC3339, value); err == nil && times[key] {
			out[key] = message.LedgerValueTime(at)
		}
	}
	return out
}
