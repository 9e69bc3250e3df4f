package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// SignatureHeader is the header with the signature of a request by Slack.
	SignatureHeader = "X-Slack-Signature"
	// TimestampHeader is the header with the time of a request by Slack, in seconds since 1970.
	TimestampHeader = "X-Slack-Request-Timestamp"
	// MaxAge is how far that time may be from the portal's clock.
	MaxAge = 5 * time.Minute
	// minSecret is the minimum length of a signing secret; Slack's have 32 characters.
	minSecret = 16
)

// ErrUnsigned means that a request was not signed by Slack, or not at about this time.
var ErrUnsigned = errors.New("the request has no valid signature of Slack of this time")

// ReadSigningSecrets reads a file with the signing secret of the app. During a change it may have several, one on each line.
func ReadSigningSecrets(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read Slack's signing secret: %w", err)
	}
	secrets := strings.Fields(string(data))
	for _, s := range secrets {
		if len(s) < minSecret {
			return nil, fmt.Errorf("%s does not hold a signing secret: copy it from the page Basic Information of the app", file)
		}
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%s is empty: copy the signing secret from the page Basic Information of the app", file)
	}
	return secrets, nil
}

// Verify checks that Slack signed a request at about this time (https://docs.slack.dev/authentication/verifying-requests-from-slack). It
// returns the signature, which is different for every request, so that the caller can refuse repeated ones. The error is ErrUnsigned, or
// says why the secret cannot be read.
func (b *Bot) Verify(header http.Header, body []byte, now time.Time) (signature string, err error) {
	secrets, err := ReadSigningSecrets(b.SigningSecretFile)
	if err != nil {
		return "", err
	}
	at, signature := header.Get(TimestampHeader), header.Get(SignatureHeader)
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > MaxAge {
		return "", ErrUnsigned
	}
	for _, s := range secrets {
		if hmac.Equal([]byte(signature), []byte(Signature(s, at, body))) {
			return signature, nil
		}
	}
	return "", ErrUnsigned
}

// Signature returns Slack's signature of a request with a body at a time, which is the text of TimestampHeader.
func Signature(secret, at string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("v0:" + at + ":"))
	h.Write(body)
	return "v0=" + hex.EncodeToString(h.Sum(nil))
}

// Act is what a person did.
type Act string

const (
	// ActNone is an interaction that needs no answer, for example a link that was opened.
	ActNone Act = ""
	// ActApprove means that the person pressed and confirmed the button Approve.
	ActApprove Act = "approve"
	// ActReject means that the person pressed the button Reject, and has to give a reason.
	ActReject Act = "reject"
	// ActReason means that the person rejects with a reason.
	ActReason Act = "reason"
)

// Interaction is what a person did with a message of the bot.
type Interaction struct {
	Act        Act
	User, Team string // IDs of Slack
	Trigger    string
	// Channel and Message identify the message.
	Channel, Message string
	Binding          Binding
	Reason           string
}

var (
	idPattern = regexp.MustCompile(`^[A-Z0-9]{1,32}$`)
	tsPattern = regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{1,8}$`)
)

// errInteraction is the error about a payload that the portal's messages and dialogs do not cause.
var errInteraction = errors.New("not an interaction with a message of the portal")

type payload struct {
	Type string `json:"type"`
	User struct {
		ID     string `json:"id"`
		TeamID string `json:"team_id"`
	} `json:"user"`
	Team struct {
		ID string `json:"id"`
	} `json:"team"`
	Trigger   string `json:"trigger_id"`
	Container struct {
		Type    string `json:"type"`
		Channel string `json:"channel_id"`
		Message string `json:"message_ts"`
	} `json:"container"`
	Actions []struct {
		ID    string `json:"action_id"`
		Value string `json:"value"`
	} `json:"actions"`
	View struct {
		Callback string `json:"callback_id"`
		Metadata string `json:"private_metadata"`
		State    struct {
			Values map[string]map[string]struct {
				Value string `json:"value"`
			} `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// ParseInteraction parses the body of a request whose signature was verified.
func ParseInteraction(body []byte) (Interaction, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil || len(form["payload"]) != 1 {
		return Interaction{}, errInteraction
	}
	var p payload
	if err := json.Unmarshal([]byte(form["payload"][0]), &p); err != nil {
		return Interaction{}, errInteraction
	}
	x := Interaction{User: p.User.ID, Team: p.Team.ID, Trigger: p.Trigger, Channel: p.Container.Channel, Message: p.Container.Message}
	if p.User.TeamID != "" {
		x.Team = p.User.TeamID
	}
	binding := ""
	switch {
	case p.Type == "block_actions" && len(p.Actions) == 1 && p.Actions[0].ID == actionApprove:
		x.Act, binding = ActApprove, p.Actions[0].Value
	case p.Type == "block_actions" && len(p.Actions) == 1 && p.Actions[0].ID == actionReject:
		x.Act, binding = ActReject, p.Actions[0].Value
	case p.Type == "view_submission" && p.View.Callback == callbackReject:
		var from origin
		if err := json.Unmarshal([]byte(p.View.Metadata), &from); err != nil {
			return Interaction{}, errInteraction
		}
		x.Act, x.Binding, x.Channel, x.Message = ActReason, from.Binding, from.Channel, from.Message
		x.Reason = strings.TrimSpace(p.View.State.Values[blockReason][actionReason].Value)
	default:
		return Interaction{}, nil
	}
	if binding != "" {
		if err := json.Unmarshal([]byte(binding), &x.Binding); err != nil {
			return Interaction{}, errInteraction
		}
	}
	if !idPattern.MatchString(x.User) || !idPattern.MatchString(x.Team) || !idPattern.MatchString(x.Channel) || !tsPattern.MatchString(x.Message) ||
		x.Binding.Ticket == "" || x.Binding.Version <= 0 || x.Binding.Digest == "" || x.Binding.Person == "" {
		return Interaction{}, errInteraction
	}
	return x, nil
}
