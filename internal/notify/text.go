package notify

import (
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"time"
)

// Text is a message in words. Title is one line; Body has no title in it; Link leads to the ticket.
type Text struct{ Title, Body, Link string }

// Writer finds the words.
type Writer struct{ Portal *url.URL }

// phrase is how one thing is said: the title, and the sentence that begins the body.
type phrase struct{ title, lead *template.Template }

// say parses a phrase of this package, while the program starts.
func say(title, lead string) phrase {
	parse := func(s string) *template.Template {
		return template.Must(template.New("").Option("missingkey=error").Parse(s))
	}
	return phrase{parse(title), parse(lead)}
}

type labels struct{ reason, comment, open, why, more, others, digest string }

var labelsIn = map[string]labels{
	English: {reason: "Reason: ", comment: "Comment: ", open: "Open", more: "and %d more", others: "%s and %d more", digest: "ACP: %d news",
		why: "You get this because ACP knows that it concerns you. Choose what you get in your profile: %s"},
	Chinese: {reason: "理由：", comment: "备注：", open: "打开", more: "以及另外 %d 项", others: "%s 及另外 %d 项", digest: "ACP：%d 条新消息",
		why: "您收到此消息是因为它与您有关。可在个人设置中选择接收方式：%s"},
}

// what the phrases are given.
type words struct {
	Facts
	ID, Subject string
	zone        *time.Location
}

// Clock says an instant in the person's time.
func (w words) Clock(t time.Time) string { return t.In(w.zone).Format("2006-01-02 15:04 MST") }

// Write a message in a person's language and time.
func (w *Writer) Write(m Message, p Preferences) (Text, error) {
	lang := p.language()
	ph, ok := phrases[lang][string(m.Kind)+"/"+m.Facts.Event]
	if !ok {
		ph, ok = phrases[lang][string(m.Kind)]
	}
	if !ok {
		return Text{}, fmt.Errorf("there are no words for %q", m.Kind)
	}
	m.Facts.clean()
	in := words{Facts: m.Facts, Subject: subject(m.Facts, lang), zone: p.location()}
	if m.Ticket > 0 {
		in.ID = fmt.Sprintf("T-%d", m.Ticket)
	}
	var title, lead strings.Builder
	if err := ph.title.Execute(&title, in); err != nil {
		return Text{}, fmt.Errorf("find the words for %q: %w", m.Kind, err)
	}
	if err := ph.lead.Execute(&lead, in); err != nil {
		return Text{}, fmt.Errorf("find the words for %q: %w", m.Kind, err)
	}
	return Text{Title: cut(Line(title.String()), 200), Body: in.body(lead.String(), lang), Link: w.link(m.Ticket, m.Facts.Page)}, nil
}

func (w *Writer) link(ticket int64, page string) string {
	if page != "" {
		return w.Portal.JoinPath(page).String()
	}
	if ticket == 0 {
		return w.Portal.JoinPath("delegations").String()
	}
	return w.Portal.JoinPath("tickets", fmt.Sprintf("T-%d", ticket)).String()
}

func (w words) body(lead, lang string) string {
	l := labelsIn[lang]
	var b strings.Builder
	b.WriteString(lead + "\n")
	if len(w.Items) > 0 {
		b.WriteString("\n")
	}
	for _, it := range w.Items {
		b.WriteString("- " + Line(it.String()) + "\n")
	}
	if w.More > 0 {
		fmt.Fprintf(&b, "- "+l.more+"\n", w.More)
	}
	if w.Reason != "" || w.Comment != "" {
		b.WriteString("\n")
	}
	if w.Reason != "" {
		b.WriteString(l.reason + w.Reason + "\n")
	}
	if w.Comment != "" {
		b.WriteString(l.comment + w.Comment + "\n")
	}
	return b.String()
}

// Footer says why somebody gets the message and where to change that.
func (w *Writer) Footer(p Preferences) string {
	return fmt.Sprintf(labelsIn[p.language()].why, w.Portal.JoinPath("profile").String())
}

// Open is the word on a link.
func (w *Writer) Open(p Preferences) string { return labelsIn[p.language()].open }

// Digest puts several texts into one; a single one stays as it is.
func (w *Writer) Digest(texts []Text, p Preferences) Text {
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
	return Text{Title: fmt.Sprintf(labelsIn[p.language()].digest, len(texts)), Body: b.String(), Link: w.Portal.String()}
}

// subject is what a ticket is about, in a few words.
func subject(f Facts, lang string) string {
	switch n := len(f.Items) + f.More; n {
	case 0:
		return ""
	case 1:
		return f.Items[0].String()
	default:
		return fmt.Sprintf(labelsIn[lang].others, f.Items[0].String(), n-1)
	}
}
