package notify

import (
	"fmt"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// Content is the text of a notification, as messages that can be rendered in every language and time zone.
type Content struct {
	Title message.Message
	Body  message.Message
	// Items are lines about the items concerned. Neither list is nil.
	Items []message.Message
	// Notes are the reason of the request, and the comment of a person or of the portal on the change.
	Notes []message.Message
}

// messagesByEvent are the messages of one kind of notification by the event that causes it. Events without an entry have the messages of
// the event "", if there is one.
type messagesByEvent map[string]func(contentData) (title, body message.Message)

// contentData is the input of the messages.
type contentData struct {
	Facts
	ticket  string // ID of the ticket; empty if there is none
	subject message.Message
}

// ContentOf returns what a notification says. One of another version of ACP, whose kind or event has no messages, says so.
func ContentOf(m Message) Content {
	texts, ok := messagesByKind[m.Kind][m.Facts.Event]
	if !ok {
		texts, ok = messagesByKind[m.Kind][""]
	}
	if !ok {
		return Content{
			Title: message.NotificationUnknownTitle(Line(string(m.Kind))),
			Body:  message.NotificationUnknownBody(),
			Items: []message.Message{},
			Notes: []message.Message{},
		}
	}
	m.Facts.clean()
	d := contentData{Facts: m.Facts, subject: subject(m.Facts)}
	if m.Ticket > 0 {
		d.ticket = fmt.Sprintf("T-%d", m.Ticket)
	}
	out := Content{Items: []message.Message{}, Notes: []message.Message{}}
	out.Title, out.Body = texts(d)
	for _, it := range d.Items {
		out.Items = append(out.Items, message.NotificationItem(Line(it.String())))
	}
	if d.More > 0 {
		out.Items = append(out.Items, message.NotificationMoreItems(d.More))
	}
	if d.Reason != "" {
		out.Notes = append(out.Notes, message.NotificationReason(d.Reason))
	}
	if comment := d.commentMessage(); !comment.IsZero() {
		out.Notes = append(out.Notes, message.NotificationCommentText(comment))
	}
	return out
}

// commentMessage returns why the portal made the change, or else the comment of a person.
func (d contentData) commentMessage() message.Message {
	if !d.Message.IsZero() {
		return d.Message
	}
	return message.Verbatim(d.Comment)
}

// step returns the name of the step.
func (d contentData) step() message.Message { return approval.StepName(d.Step) }

// actor returns who acted, and for whom if they were a delegate.
func (d contentData) actor() message.Message {
	if d.ActorFor != "" {
		return message.NotificationPersonFor(d.Actor, d.ActorFor)
	}
	return message.NotificationPerson(d.Actor)
}

// subject returns a short description of the items.
func subject(f Facts) message.Message {
	switch n := len(f.Items) + f.More; {
	case len(f.Items) == 0:
		return message.NotificationSubject("")
	case n == 1:
		return message.NotificationSubject(Line(f.Items[0].String()))
	default:
		return message.NotificationSubjectAndMore(Line(f.Items[0].String()), n-1)
	}
}
