package slack

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/notify"
)

const secret = "8f742231b10e8888abcd99yyyzzz85a5"

// TestSignatureOfSlacksDocumentation uses the example of https://docs.slack.dev/authentication/verifying-requests-from-slack.
func TestSignatureOfSlacksDocumentation(t *testing.T) {
	const body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&" +
		"user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F" +
		"96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	const want = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	if got := Signature(secret, "1531420618", []byte(body)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestVerify(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	body := []byte("payload=x")
	signed := func(secret string, at time.Time) http.Header {
		stamp := strconv.FormatInt(at.Unix(), 10)
		h := http.Header{}
		h.Set(TimestampHeader, stamp)
		h.Set(SignatureHeader, Signature(secret, stamp, body))
		return h
	}
	odd := signed(secret, now)
	odd.Set(TimestampHeader, "now")
	for name, tc := range map[string]struct {
		reason, file string
		header       http.Header
		body         string
		ok, unsigned bool
	}{
		"signed":          {"by Slack, now", secret, signed(secret, now), "payload=x", true, false},
		"during a change": {"the file has both secrets", "another-secret-of-it " + secret, signed(secret, now), "payload=x", true, false},
		"just in time":    {"five minutes", secret, signed(secret, now.Add(-MaxAge)), "payload=x", true, false},
		"old":             {"longer", secret, signed(secret, now.Add(-MaxAge-time.Second)), "payload=x", false, true},
		"future":          {"longer", secret, signed(secret, now.Add(MaxAge+time.Second)), "payload=x", false, true},
		"another body":    {"the body is signed", secret, signed(secret, now), "payload=y", false, true},
		"another secret":  {"of somebody else", secret, signed("another-secret-of-it", now), "payload=x", false, true},
		"no headers":      {"not of Slack", secret, http.Header{}, "payload=x", false, true},
		"odd time":        {"not a number", secret, odd, "payload=x", false, true},
		"empty file":      {"an empty secret would admit everybody", "", signed("", now), "payload=x", false, false},
		"short secret":    {"it could be guessed", "x", signed("x", now), "payload=x", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&Bot{SigningSecretFile: file(t, tc.file)}).Verify(tc.header, []byte(tc.body), now)
			if (err == nil) != tc.ok || errors.Is(err, ErrUnsigned) != tc.unsigned {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if err != nil && tc.file != "" && len(tc.file) > 1 && strings.Contains(err.Error(), tc.file) {
				t.Errorf("the error has the secret: %v", err)
			}
		})
	}
}

// answerable returns a notification that can be answered.
func answerable(lines ...string) notify.Notification {
	p := parcel()
	p.Answer = &notify.Answer{Answerable: approval.Answerable{Version: 3, Digest: "d1"}, Ticket: "T-7", Shown: lines,
		Labels: notify.AnswerLabels{Approve: "Approve", Reject: "Reject", Cancel: "Cancel", Shows: "It grants:"}}
	return p
}

func TestButtons(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, secret string
		p              notify.Notification
		want           string // ids of the actions
	}{
		"answerable": {"the bot receives answers", secret, answerable("allow a"), "acp_approve acp_reject acp_open"},
		"off":        {"no secret is configured", "", answerable("allow a"), ""},
		"in portal":  {"the ticket is sensitive", secret, parcel(), ""},
		"long":       {"nobody approves what is not shown", secret, answerable(strings.Repeat("x", maxSection)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &workspace{lookup: `{"ok":true,"user":{"id":"U42"}}`, post: `{"ok":true}`}
			b := bot(t, w)
			if tc.secret != "" {
				b.SigningSecretFile = file(t, tc.secret)
			}
			if err := b.Send(t.Context(), tc.p); err != nil {
				t.Fatal(err)
			}
			actions := w.posted.Blocks[len(w.posted.Blocks)-1].Elements
			var ids []string
			for _, e := range actions {
				ids = append(ids, e.ActionID)
			}
			if got := strings.TrimSpace(strings.Join(ids, " ")); got != tc.want {
				t.Fatalf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			if tc.want == "" {
				return
			}
			var v Binding
			if err := json.Unmarshal([]byte(actions[0].Value), &v); err != nil || v != (Binding{"T-7", 3, "d1", "bob"}) || actions[0].Confirm == nil {
				t.Errorf("the button is %+v", actions[0])
			}
			if !strings.Contains(w.posted.Blocks[2].Text.Text, "allow a") {
				t.Errorf("the message does not show the lines: %+v", w.posted.Blocks)
			}
		})
	}
}

// TestChannelsHaveNoButtons checks that the message of a channel cannot be answered, because its reader is not known.
func TestChannelsHaveNoButtons(t *testing.T) {
	for _, b := range postOf(answerable("allow a"), "").Blocks {
		for _, e := range b.Elements {
			if e.Value != "" || e.ActionID != "" {
				t.Errorf("got %+v", e)
			}
		}
	}
}

// TestReceiptsAndRetractions checks that a message with buttons can be replaced, and that no other message has a receipt.
func TestReceiptsAndRetractions(t *testing.T) {
	const posted = `{"ok":true,"channel":"D42","ts":"1700000000.000100"}`
	for name, tc := range map[string]struct {
		reason, secret, post string
		p                    notify.Notification
		want                 string
	}{
		"buttons":    {"it can be replaced", secret, posted, answerable("allow a"), "D42 1700000000.000100"},
		"no buttons": {"there is nothing to replace", secret, posted, parcel(), ""},
		"off":        {"no secret is configured", "", posted, answerable("allow a"), ""},
		"too long":   {"it has no buttons", secret, posted, answerable(strings.Repeat("x", maxSection)), ""},
		"no channel": {"it cannot be replaced, and was sent", secret, `{"ok":true}`, answerable("allow a"), ""},
		"odd ids":    {"they are not those of Slack", secret, `{"ok":true,"channel":"../x","ts":"1700000000.000100"}`, answerable("allow a"), ""},
		"odd types":  {"it was sent, and must not be sent again", secret, `{"ok":true,"channel":["D42"],"ts":17}`, answerable("allow a"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &workspace{lookup: `{"ok":true,"user":{"id":"U42"}}`, post: tc.post}
			b := bot(t, w)
			if tc.secret != "" {
				b.SigningSecretFile = file(t, tc.secret)
			}
			got, err := b.SendAnswerable(t.Context(), tc.p)
			if err != nil || got != tc.want {
				t.Fatalf("%s: got %q %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
	w := &workspace{post: `{"ok":true}`}
	b := bot(t, w)
	outcome := notify.Outcome{Text: "T-7 <x>\nrejected", Open: "Open", Link: "https://acp.example.com"}
	if err := b.Retract(t.Context(), "D42 1700000000.000100", outcome); err != nil {
		t.Fatal(err)
	}
	if w.asked[0] != "/api/chat.update" || w.posted.Channel != "D42" || w.posted.TS != "1700000000.000100" || len(w.posted.Blocks) != 2 ||
		w.posted.Blocks[0].Text.Text != "T-7 <x>\nrejected" || w.posted.Text != "T-7 &lt;x&gt;\nrejected" {
		t.Errorf("%v %+v", w.asked, w.posted)
	}
	for _, e := range w.posted.Blocks[1].Elements {
		if e.Value != "" || e.URL != "https://acp.example.com" {
			t.Errorf("a control is left: %+v", e)
		}
	}
	var p *notify.Problem
	w.post = `{"ok":false,"error":"message_not_found"}`
	if err := b.Retract(t.Context(), "D42 1700000000.000100", notify.Outcome{}); !errors.As(err, &p) || !p.Permanent {
		t.Errorf("a message that was deleted: %v", err)
	}
	if err := b.Retract(t.Context(), "D42", notify.Outcome{}); !errors.As(err, &p) || !p.Permanent {
		t.Errorf("a receipt of another form: %v", err)
	}
}

func FuzzParseInteraction(f *testing.F) {
	const value = `{\"t\":\"T-7\",\"v\":3,\"d\":\"d1\",\"p\":\"bob\"}`
	for _, p := range []string{
		`{"type":"block_actions","user":{"id":"U1","team_id":"T1"},"trigger_id":"1","container":{"channel_id":"D1","message_ts":"1.2"},` +
			`"actions":[{"action_id":"acp_approve","value":"` + value + `"}]}`,
		`{"type":"view_submission","user":{"id":"U1","team_id":"T1"},"view":{"callback_id":"acp_reject_reason",` +
			`"private_metadata":"{\"t\":\"T-7\",\"v\":3,\"d\":\"d1\",\"p\":\"bob\",\"c\":\"D1\",\"m\":\"1.2\"}",` +
			`"state":{"values":{"reason":{"text":{"value":"no"}}}}}}`,
		`{"type":"block_actions","actions":[{"action_id":"acp_open"}]}`, `{`, `[]`, ``,
	} {
		f.Add([]byte(url.Values{"payload": {p}}.Encode()))
	}
	f.Add([]byte("payload=%zz"))
	f.Fuzz(func(t *testing.T, body []byte) {
		x, err := ParseInteraction(body)
		if err != nil || x.Act == ActNone {
			return
		}
		if x.Binding.Ticket == "" || x.Binding.Digest == "" || x.Binding.Person == "" || x.Binding.Version <= 0 {
			t.Errorf("an interaction is not bound: %+v", x)
		}
		if !idPattern.MatchString(x.User) || !idPattern.MatchString(x.Channel) || !tsPattern.MatchString(x.Message) {
			t.Errorf("an ID is not one of Slack: %+v", x)
		}
	})
}
