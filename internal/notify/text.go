package notify

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// Text is a rendered message. Title is one line and not repeated in Body; Link is the address of the page with the details.
type Text struct{ Title, Body, Link string }

// Renderer turns notifications into texts. The links in them begin with the address Portal.
type Renderer struct{ Portal *url.URL }

// maxTitle and maxNote bound parts of a rendered message, in characters.
const (
	maxTitle = 200
	maxNote  = maxText + 10 // the text with its label
)

// Reader returns the person's language and time zone.
func (p Preferences) Reader() message.Reader {
	return message.Reader{Language: message.Language(p.language()), Zone: p.location()}
}

// Render renders a message in the person's language and time zone.
func (r *Renderer) Render(m Message, p Preferences) Text {
	c, to := ContentOf(m), p.Reader()
	var b strings.Builder
	b.WriteString(c.Body.RenderFor(to) + "\n")
	if len(c.Items) > 0 {
		b.WriteString("\n")
	}
	for _, item := range c.Items {
		b.WriteString(Line(item.RenderFor(to)) + "\n")
	}
	if len(c.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, note := range c.Notes {
		b.WriteString(cut(Line(note.RenderFor(to)), maxNote) + "\n")
	}
	return Text{Title: cut(Line(c.Title.RenderFor(to)), maxTitle), Body: b.String(), Link: r.link(m.Ticket, m.Facts.Page)}
}

func (r *Renderer) link(ticket int64, page string) string {
	if page != "" {
		return r.Portal.JoinPath(page).String()
	}
	if ticket == 0 {
		return r.Portal.JoinPath("delegations").String()
	}
	return r.Portal.JoinPath("tickets", fmt.Sprintf("T-%d", ticket)).String()
}

// Footer returns the reason why the person gets the message, and where to change that.
func (r *Renderer) Footer(p Preferences) string {
	return message.NotificationFooter(r.Portal.JoinPath("profile").String()).RenderFor(p.Reader())
}

// Open returns the label of a link.
func (r *Renderer) Open(p Preferences) string {
	return message.NotificationOpen().RenderFor(p.Reader())
}

// Answer returns how the ticket of a message is decided, in the person's language. The message must have an Answer.
func (r *Renderer) Answer(m Message, p Preferences) *Answer {
	to := p.Reader()
	a := &Answer{Answerable: *m.Facts.Answer, Ticket: approval.FormatID(m.Ticket), Portal: r.Portal, Labels: AnswerLabels{
		Approve: message.AnswerApprove().RenderFor(to),
		Reject:  message.AnswerReject().RenderFor(to),
		Cancel:  message.AnswerCancel().RenderFor(to),
		Shows:   message.AnswerShows().RenderFor(to),
	}}
	for _, line := range approval.LineMessages(a.Lines) {
		a.Shown = append(a.Shown, Line(line.RenderFor(to)))
	}
	return a
}

// Digest combines several texts into one; a single one is returned unchanged.
func (r *Renderer) Digest(texts []Text, p Preferences) Text {
	if len(texts) == 1 {
		return texts[0]
	}
	var b strings.Builder
	for i, t := range texts {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString("* " + t.Title + "\n  " + t.Link + "\n")
	}
	return Text{Title: message.NotificationDigestTitle(len(texts)).RenderFor(p.Reader()), Body: b.String(), Link: r.Portal.String()}
}
