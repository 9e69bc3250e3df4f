package notify

import (
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Text is a rendered message. Title is one line and not repeated in Body; Link is the address of the page with the details.
type Text struct{ Title, Body, Link string }

// Renderer renders messages.
type Renderer struct{ Portal *url.URL }

// phrase is the template of a message: its title, and the sentence with which the body begins.
type phrase struct{ title, lead *template.Template }

// newPhrase parses a phrase of this package. It panics on an error, at the start of the process.
func newPhrase(title, lead string) phrase {
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

// templateData is the input of the templates.
type templateData struct {
	Facts
	ID, Subject string
	zone        *time.Location
}

// Clock formats an instant in the person's time zone.
func (d templateData) Clock(t time.Time) string { return t.In(d.zone).Format("2006-01-02 15:04 MST") }

// Render renders a message in the person's language and time zone.
func (r *Renderer) Render(m Message, p Preferences) (Text, error) {
	lang := p.language()
	ph, ok := phrases[lang][string(m.Kind)+"/"+m.Facts.Event]
	if !ok {
		ph, ok = phrases[lang][string(m.Kind)]
	}
	if !ok {
		return Text{}, fmt.Errorf("there is no text for %q", m.Kind)
	}
	m.Facts.clean()
	in := templateData{Facts: m.Facts, Subject: subject(m.Facts, lang), zone: p.location()}
	if m.Ticket > 0 {
		in.ID = fmt.Sprintf("T-%d", m.Ticket)
	}
	var title, lead strings.Builder
	if err := ph.title.Execute(&title, in); err != nil {
		return Text{}, fmt.Errorf("render the text for %q: %w", m.Kind, err)
	}
	if err := ph.lead.Execute(&lead, in); err != nil {
		return Text{}, fmt.Errorf("render the text for %q: %w", m.Kind, err)
	}
	return Text{Title: cut(Line(title.String()), 200), Body: in.body(lead.String(), lang), Link: r.link(m.Ticket, m.Facts.Page)}, nil
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

func (d templateData) body(lead, lang string) string {
	l := labelsIn[lang]
	var b strings.Builder
	b.WriteString(lead + "\n")
	if len(d.Items) > 0 {
		b.WriteString("\n")
	}
	for _, it := range d.Items {
		b.WriteString("- " + Line(it.String()) + "\n")
	}
	if d.More > 0 {
		fmt.Fprintf(&b, "- "+l.more+"\n", d.More)
	}
	comment := d.Comment
	if !d.Message.IsZero() {
		comment = cut(Line(d.Message.Render(message.Language(lang))), maxText)
	}
	if d.Reason != "" || comment != "" {
		b.WriteString("\n")
	}
	if d.Reason != "" {
		b.WriteString(l.reason + d.Reason + "\n")
	}
	if comment != "" {
		b.WriteString(l.comment + comment + "\n")
	}
	return b.String()
}

// Footer returns the reason why the person gets the message, and where to change that.
func (r *Renderer) Footer(p Preferences) string {
	return fmt.Sprintf(labelsIn[p.language()].why, r.Portal.JoinPath("profile").String())
}

// Open returns the label of a link.
func (r *Renderer) Open(p Preferences) string { return labelsIn[p.language()].open }

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
	return Text{Title: fmt.Sprintf(labelsIn[p.language()].digest, len(texts)), Body: b.String(), Link: r.Portal.String()}
}

// subject returns a short description of the ticket's items.
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
