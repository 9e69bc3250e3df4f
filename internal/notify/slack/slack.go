// Package slack sends notifications through Slack: to people as direct messages of a bot, or to a channel by an incoming webhook.
// It does not determine recipients.
package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/notify/webhook"
	"github.com/acp-io/acp/internal/webhooksender"
)

// These are limits of Slack in characters, see https://api.slack.com/reference/block-kit/blocks.
const (
	maxHeader  = 150
	maxSection = 3000
)

// text is always of the type plain_text, so that users' text can neither mention anybody nor contain links.
type text struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji bool   `json:"emoji"`
}

type element struct {
	Type     string   `json:"type"`
	Text     text     `json:"text"`
	URL      string   `json:"url,omitempty"`
	ActionID string   `json:"action_id,omitempty"`
	Value    string   `json:"value,omitempty"`
	Style    string   `json:"style,omitempty"`
	Confirm  *confirm `json:"confirm,omitempty"`
}

// confirm is a dialog that Slack shows before it sends an action.
type confirm struct {
	Title   *text `json:"title"`
	Text    *text `json:"text"`
	Confirm *text `json:"confirm"`
	Deny    *text `json:"deny"`
}

type block struct {
	Type     string    `json:"type"`
	Text     *text     `json:"text,omitempty"`
	Elements []element `json:"elements,omitempty"`
}

type post struct {
	Channel string `json:"channel,omitempty"`
	// TS identifies the message that chat.update replaces.
	TS string `json:"ts,omitempty"`
	// Text is the fallback for clients that show no blocks. It is markup.
	Text        string  `json:"text"`
	Blocks      []block `json:"blocks"`
	UnfurlLinks bool    `json:"unfurl_links"`
	UnfurlMedia bool    `json:"unfurl_media"`
}

func postOf(p notify.Notification, channel string) post {
	return post{Channel: channel, Text: Escape(p.Text.Title), Blocks: []block{
		{Type: "header", Text: plain(p.Text.Title, maxHeader)},
		{Type: "section", Text: plain(strings.TrimSpace(p.Text.Body), maxSection)},
		{Type: "actions", Elements: []element{{Type: "button", Text: *plain(p.Open, 75), URL: p.Text.Link}}},
	}}
}

func plain(s string, most int) *text {
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return &text{Type: "plain_text", Text: s}
}

// Escape escapes text for Slack's markup, see https://api.slack.com/reference/surfaces/formatting#escaping.
func Escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// IncomingWebhook posts to the channel of an incoming webhook, whose URL is a secret in a file.
type IncomingWebhook struct {
	URLFile string
	Client  *http.Client
	Now     func() time.Time
}

// Send implements notify.Sender.
func (w *IncomingWebhook) Send(ctx context.Context, p notify.Notification) error {
	u, err := ReadURL(w.URLFile)
	if err != nil {
		return err
	}
	req, err := request(ctx, u.String(), postOf(p, ""))
	if err != nil {
		return err
	}
	_, err = webhooksender.Do(w.Client, req, w.Now())
	return webhook.Problem(err)
}

// ReadURL reads the URL of an incoming webhook from a file. Its errors do not contain the URL.
func ReadURL(file string) (*url.URL, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the address of Slack's webhook: %w", err)
	}
	u, err := webhooksender.ParseURL(strings.TrimSpace(string(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return u, nil
}

// Bot sends direct messages. Its token (scopes chat:write and users:read.email; with buttons also users:read) is read from a file for each
// request.
type Bot struct {
	API       *url.URL // https://slack.com/api
	TokenFile string
	// SigningSecretFile has the secret by which Slack signs what people answer. If it is empty, messages have no buttons to answer.
	SigningSecretFile string
	Client            *http.Client
	Now               func() time.Time
}

var _ notify.Retractor = (*Bot)(nil)

// Send implements notify.Sender.
func (b *Bot) Send(ctx context.Context, p notify.Notification) error {
	_, err := b.SendAnswerable(ctx, p)
	return err
}

// SendAnswerable implements notify.Retractor.
func (b *Bot) SendAnswerable(ctx context.Context, p notify.Notification) (receipt string, err error) {
	var who struct {
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	}
	ask, err := http.NewRequestWithContext(
		ctx,
		http.MethodGet,
		b.API.JoinPath("users.lookupByEmail").String()+"?"+url.Values{"email": {p.To.Email}}.Encode(),
		nil,
	)
	if err != nil {
		return "", fmt.Errorf("make the request: %w", err)
	}
	if err := b.call(ask, &who); err != nil {
		return "", err
	}
	what, answerable := postOf(p, who.User.ID), false
	if b.SigningSecretFile != "" && p.Answer != nil {
		if answerable, err = what.addAnswer(p); err != nil {
			return "", err
		}
	}
	var said json.RawMessage
	if err := b.postFor(ctx, "chat.postMessage", what, &said); err != nil || !answerable {
		return "", err
	}
	return receiptOf(said), nil
}

// post calls a method of Slack's API with a JSON body.
func (b *Bot) post(ctx context.Context, method string, what any) error {
	return b.postFor(ctx, method, what, nil)
}

// postFor is post for a method whose response the caller reads.
func (b *Bot) postFor(ctx context.Context, method string, what, into any) error {
	req, err := request(ctx, b.API.JoinPath(method).String(), what)
	if err != nil {
		return err
	}
	return b.call(req, into)
}

// call sends a request to Slack's API, which reports errors in the body.
func (b *Bot) call(req *http.Request, into any) error {
	token, err := os.ReadFile(b.TokenFile)
	if err != nil {
		return fmt.Errorf("read Slack's token: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	body, err := webhooksender.Do(b.Client, req, b.Now())
	if err != nil {
		return webhook.Problem(err)
	}
	var said struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return errors.New("Slack's answer is not JSON") //nolint:staticcheck // a name
	}
	if !said.OK {
		return &notify.Problem{Err: fmt.Errorf("Slack says %s", notify.Line(said.Error)), Permanent: permanent(said.Error)} //nolint:staticcheck // a name
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read Slack's answer: %w", err)
	}
	return nil
}

// permanent reports whether an error concerns this person or message only. Other errors concern the token or are temporary.
func permanent(said string) bool {
	switch said {
	case "users_not_found", "user_not_found", "user_not_visible", "channel_not_found", "user_disabled", "is_archived", "msg_too_long",
		"invalid_blocks", "no_text", "cannot_dm_bot", "message_not_found", "cant_update_message", "edit_window_closed":
		return true
	}
	return false
}

func request(ctx context.Context, where string, what any) (*http.Request, error) {
	body, err := json.Marshal(what)
	if err != nil {
		return nil, &notify.Problem{Err: fmt.Errorf("encode the message: %w", err), Permanent: true}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, where, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address cannot be used") // the URL may be a secret
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	return req, nil
}
