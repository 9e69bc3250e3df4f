package notify

import (
	"slices"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// facts returns what a message about an event of the ticket says, without its items.
func (x *messageBuilder) facts(e approval.Event) Facts {
	t := x.ticket
	f := Facts{Event: string(e.Kind), TicketKind: string(t.Kind), State: string(t.State()), Requester: x.people.Name(t.Requester),
		RequesterID: t.Requester, ActorID: e.Actor, Step: e.Step}
	if e.Actor != "" {
		f.Actor = x.people.Name(e.Actor)
	}
	if e.OnBehalfOf != "" {
		f.ActorFor = x.people.Name(e.OnBehalfOf)
	}
	switch e.Kind {
	case approval.EventSubmitted, approval.EventBreakGlass, approval.EventEscalated, approval.EventReminded, approval.EventLastReminder:
		f.Reason = t.Reason
	default:
		f.Comment, f.Message = e.Comment, e.Message
		if lines := approval.EventLines(e.Kind, e.Comment); lines != nil {
			f.Message = linesMessage(lines)
		}
	}
	for _, i := range x.items(e) {
		if at := t.Items[i].End(); !at.IsZero() && (f.Until.IsZero() || at.Before(f.Until)) {
			f.Until = at
		}
	}
	return f
}

// mostLines is the maximum number of lines of a ticket in a notification.
const mostLines = 10

// linesMessage returns the first lines that differ from what was approved, and the number of the others.
func linesMessage(lines []string) message.Message {
	shown := approval.LineMessages(lines[:min(len(lines), mostLines)])
	if more := len(lines) - len(shown); more > 0 {
		shown = append(shown, message.LineMoreNotShown(more))
	}
	return message.LineList(shown)
}

// about describes an item of a ticket.
func about(it approval.Item, people People) About {
	if c := it.Change; c != nil {
		return About{Object: c.Kind + "/" + c.Name, From: string(c.FromMode), To: string(c.ToMode)}
	}
	if it.Target != nil && it.Application == "" {
		return About{Object: approval.FormatID(it.Target.Ticket)}
	}
	if it.Scope != nil && !it.Scope.Denies() {
		return About{Application: Names(it.Scope.Subjects), ApplicationTitle: titles(it.Scope.Subjects, people), Resource: Names(it.Scope.Resources),
			ResourceTitle: titles(it.Scope.Resources, people), Actions: it.Actions}
	}
	return About{Application: it.Application, Resource: it.Resource, Actions: it.Actions}
}

// titles returns the first titles of names, and the number of the others, as Names does; empty if the catalog has none of them.
func titles(names []string, people People) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = people.Title(name)
	}
	if slices.Equal(out, names) {
		return ""
	}
	return Names(out)
}
