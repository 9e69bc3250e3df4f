package gormstore

import (
	"encoding/json"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// itemBody is an item as it is stored. Its messages are strings in the form of message.Encode, because earlier versions
// stored English texts there, and still read the rows while they are replaced.
type itemBody struct {
	approval.Item
	Steps   []stepBody
	Review  *stepBody
	Message string
}

// stepBody is a step as it is stored.
type stepBody struct {
	approval.Step
	Note string
}

func stepBodyOf(s approval.Step) stepBody { return stepBody{s, s.Note.Encode()} }

func (b stepBody) step() approval.Step {
	b.Step.Note = message.Decode(b.Note)
	return b.Step
}

func encodeItem(it approval.Item) ([]byte, error) {
	b := itemBody{Item: it, Message: it.Message.Encode()}
	for _, s := range it.Steps {
		b.Steps = append(b.Steps, stepBodyOf(s))
	}
	if it.Review != nil {
		b.Review = new(stepBodyOf(*it.Review))
	}
	return json.Marshal(b)
}

func decodeItem(data []byte) (approval.Item, error) {
	var b itemBody
	if err := json.Unmarshal(data, &b); err != nil {
		return approval.Item{}, err
	}
	it := b.Item
	it.Message = message.Decode(b.Message)
	if b.Steps != nil {
		it.Steps = make([]approval.Step, len(b.Steps))
		for i, s := range b.Steps {
			it.Steps[i] = s.step()
		}
	}
	if b.Review != nil {
		it.Review = new(b.Review.step())
	}
	return it, nil
}

// commentOf returns the value of an event's column comment: the actor's own words, or the encoded message of the portal.
func commentOf(e approval.Event) string {
	if e.Actor == "" && !e.Message.IsZero() {
		return e.Message.Encode()
	}
	return e.Comment
}

// setComment sets the comment or the message of an event from its column. An event with an actor never has a message, so
// that no one can store text that is shown as the portal's.
func setComment(e *approval.Event, comment string) {
	switch {
	case e.Actor != "", e.Kind == approval.EventVoided, e.Kind == approval.EventReduced:
		e.Comment = comment
	default:
		e.Message = message.Decode(comment)
	}
}
