package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/notify"
)

// IDs of the controls in messages and dialogs.
const (
	actionApprove  = "acp_approve"
	actionReject   = "acp_reject"
	actionOpen     = "acp_open"
	callbackReject = "acp_reject_reason"
	blockReason    = "reason"
	actionReason   = "text"
)

// maxReason is the maximum length of a reason in characters; Slack permits 3000.
const maxReason = 1000

// Binding is the value of a button: what was shown, and to whom.
type Binding struct {
	Ticket  string `json:"t"`
	Version int64  `json:"v"`
	Digest  string `json:"d"`
	Person  string `json:"p"`
}

// addAnswer adds what the approval grants, and the buttons, to a direct message. It returns false if the message is too long for that.
func (x *post) addAnswer(p notify.Notification) (added bool, err error) {
	a := p.Answer
	value, err := json.Marshal(Binding{Ticket: a.Ticket, Version: a.Version, Digest: a.Digest, Person: p.To.Person})
	if err != nil {
		return false, &notify.Problem{Err: fmt.Errorf("encode the button: %w", err), Permanent: true}
	}
	shows := a.Labels.Shows + "\n" + strings.Join(a.Shown, "\n")
	if utf8.RuneCountInString(shows) > maxSection {
		return false, nil // Nobody approves what the message does not show.
	}
	lines := plain(shows, maxSection)
	approve, reject, deny := plain(a.Labels.Approve, 24), plain(a.Labels.Reject, 24), plain(a.Labels.Cancel, 24)
	last := len(x.Blocks) - 1
	open := x.Blocks[last].Elements[0]
	open.ActionID = actionOpen
	x.Blocks = append(x.Blocks[:last:last], block{Type: "section", Text: lines}, block{Type: "actions", Elements: []element{
		{
			Type: "button", Text: *approve, ActionID: actionApprove, Value: string(value), Style: "primary",
			Confirm: &confirm{Title: approve, Text: plain(p.Text.Title, 300), Confirm: approve, Deny: deny},
		},
		{Type: "button", Text: *reject, ActionID: actionReject, Value: string(value), Style: "danger"},
		open,
	}})
	return true, nil
}

// receiptOf returns what identifies a message for Retract from the response to chat.postMessage; empty if it has no such form. The message
// was sent in any case.
func receiptOf(response []byte) string {
	var said struct {
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	}
	if err := json.Unmarshal(response, &said); err != nil || !idPattern.MatchString(said.Channel) || !tsPattern.MatchString(said.TS) {
		return ""
	}
	return said.Channel + " " + said.TS
}

// Retract implements notify.Retractor.
func (b *Bot) Retract(ctx context.Context, receipt string, o notify.Outcome) error {
	channel, ts, ok := strings.Cut(receipt, " ")
	if !ok {
		return &notify.Problem{Err: errors.New("the receipt of the message is not valid"), Permanent: true}
	}
	return b.post(ctx, "chat.update", Reply(o).post(channel, ts))
}

// ErrUnknownUser means that a user of Slack is not a full, active and human member of the bot's workspace with a mail address, so that
// nobody vouches for the address.
var ErrUnknownUser = errors.New("not an active member of the workspace with a mail address")

// Email returns the mail address of a member of the bot's workspace.
func (b *Bot) Email(ctx context.Context, user, team string) (string, error) {
	var who struct {
		User struct {
			ID              string `json:"id"`
			TeamID          string `json:"team_id"`
			Deleted         bool   `json:"deleted"`
			Bot             bool   `json:"is_bot"`
			Restricted      bool   `json:"is_restricted"`
			UltraRestricted bool   `json:"is_ultra_restricted"`
			Stranger        bool   `json:"is_stranger"`
			Confirmed       *bool  `json:"is_email_confirmed"`
			Profile         struct {
				Email string `json:"email"`
			} `json:"profile"`
		} `json:"user"`
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, b.API.JoinPath("users.info").String()+"?"+url.Values{"user": {user}}.Encode(), nil)
	if err != nil {
		return "", fmt.Errorf("make the request: %w", err)
	}
	if err := b.call(ask, &who); err != nil {
		var p *notify.Problem
		if errors.As(err, &p) && p.Permanent { // also a missing scope, which the text says
			return "", fmt.Errorf("%w: %w", ErrUnknownUser, err)
		}
		return "", err
	}
	u := who.User
	if u.ID != user || u.TeamID != team || u.Deleted || u.Bot || u.Restricted || u.UltraRestricted || u.Stranger ||
		u.Confirmed != nil && !*u.Confirmed || u.Profile.Email == "" {
		return "", ErrUnknownUser
	}
	return u.Profile.Email, nil
}

// Reply is a text with a link that replaces a message, or follows it.
type Reply struct{ Text, Open, Link string }

func (r Reply) post(channel, ts string) post {
	return post{Channel: channel, TS: ts, Text: Escape(r.Text), Blocks: []block{
		{Type: "section", Text: plain(r.Text, maxSection)},
		{Type: "actions", Elements: []element{{Type: "button", Text: *plain(r.Open, 75), URL: r.Link, ActionID: actionOpen}}},
	}}
}

// Replace replaces the message of an interaction, so that its buttons are gone.
func (b *Bot) Replace(ctx context.Context, x Interaction, r Reply) error {
	return b.post(ctx, "chat.update", r.post(x.Channel, x.Message))
}

// Say posts a text below the message of an interaction, whose buttons stay.
func (b *Bot) Say(ctx context.Context, x Interaction, r Reply) error {
	return b.post(ctx, "chat.postMessage", r.post(x.Channel, ""))
}

type input struct {
	Type    string       `json:"type"`
	BlockID string       `json:"block_id"`
	Label   *text        `json:"label"`
	Element inputElement `json:"element"`
}

type inputElement struct {
	Type      string `json:"type"`
	ActionID  string `json:"action_id"`
	Multiline bool   `json:"multiline"`
	MinLength int    `json:"min_length"`
	MaxLength int    `json:"max_length"`
}

type view struct {
	Type            string  `json:"type"`
	CallbackID      string  `json:"callback_id"`
	PrivateMetadata string  `json:"private_metadata"`
	Title           *text   `json:"title"`
	Submit          *text   `json:"submit"`
	Close           *text   `json:"close"`
	Blocks          []input `json:"blocks"`
}

type viewRequest struct {
	Trigger string `json:"trigger_id"`
	View    view   `json:"view"`
}

// origin is the private metadata of the dialog: which message it belongs to.
type origin struct {
	Binding
	Channel string `json:"c"`
	Message string `json:"m"`
}

// AskReason opens the dialog that asks why the person rejects. Slack permits that for three seconds after the button was pressed.
func (b *Bot) AskReason(ctx context.Context, x Interaction, question, reject, cancel string) error {
	from, err := json.Marshal(origin{Binding: x.Binding, Channel: x.Channel, Message: x.Message})
	if err != nil {
		return fmt.Errorf("encode the dialog: %w", err)
	}
	return b.post(ctx, "views.open", viewRequest{Trigger: x.Trigger, View: view{
		Type: "modal", CallbackID: callbackReject, PrivateMetadata: string(from),
		Title: plain(x.Binding.Ticket, 24), Submit: plain(reject, 24), Close: plain(cancel, 24),
		Blocks: []input{{Type: "input", BlockID: blockReason, Label: plain(question, 2000), Element: inputElement{
			Type: "plain_text_input", ActionID: actionReason, Multiline: true, MinLength: 1, MaxLength: maxReason,
		}}},
	}})
}
