package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/notify"
)

// load loads a configuration in which DIR stands for a directory with the files key, token, url and password.
func load(t *testing.T, text string) (*Channels, error) {
	t.Helper()
	dir := t.TempDir()
	for name, secret := range map[string]string{
		"key":         "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
		"token":       "xoxb-1",
		"signing":     "8f742231b10e8888abcd99yyyzzz85a5",
		"short":       "xoxb-2",
		"password":    "s3cret",
		"url":         "https://hooks.slack.example.com/services/s3cret",
		"notify.yaml": strings.ReplaceAll(text, "DIR", dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(filepath.Join(dir, "notify.yaml"))
}

const whole = `
mail: {host: mail.example.com, from: ACP <acp@example.com>, username: acp, passwordFile: DIR/password}
slack: {tokenFile: DIR/token, signingSecretFile: DIR/signing}
slackChannels:
- {name: security, urlFile: DIR/url, kinds: [break-glass, voided]}
webhooks:
- {name: siem, url: "https://siem.example.com/acp", keyFile: DIR/key}
- {name: jira, url: "https://jira.example.com/acp", keyFile: DIR/key, answers: {as: directory}}
`

func TestLoad(t *testing.T) {
	c, err := load(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	want := []notify.SharedChannel{
		{Channel: "slack:security", Kinds: []notify.Kind{notify.KindBreakGlass, notify.KindVoided}},
		{Channel: "webhook:siem"},
		{Channel: "webhook:jira"},
	}
	if d := cmp.Diff(
		want,
		c.SharedChannels,
	); d != "" || !slices.Equal(c.People, []notify.Channel{notify.ChannelMail, notify.ChannelSlack}) ||
		len(c.Senders) != 5 {
		t.Errorf("got people %v, senders %v, diff %s", c.People, c.Senders, d)
	}
	if c.Slack == nil || len(c.Receivers) != 1 || c.Receivers["jira"] == nil {
		t.Errorf("got the bot %v and the receivers %v, want jira only", c.Slack, c.Receivers)
	}
	none, err := Load("")
	if err != nil || none.Slack != nil || len(none.Receivers) > 0 || len(none.People)+len(none.SharedChannels)+len(none.Senders) != 0 {
		t.Errorf("Load without a file: got %+v %v, want no channels", none, err)
	}
}

func TestInvalidConfigurationsAreReported(t *testing.T) {
	for name, tc := range map[string]struct{ reason, from, to, want string }{
		"field":      {"a typing mistake", "host:", "hots:", "hots"},
		"no sender":  {"mail has a sender", "from: ACP <acp@example.com>, ", "", "mail.from"},
		"password":   {"a file that is not there", "DIR/password", "DIR/missing", "mail.passwordFile"},
		"token":      {"a file that is not there", "DIR/token", "DIR/missing", "slack.tokenFile"},
		"signing":    {"an empty or short secret admits others", "DIR/signing", "DIR/short", "slack.signingSecretFile"},
		"answers":    {"for whom is explicit", "as: directory", "as: anybody", "answers.as"},
		"no answers": {"for whom is explicit", "{as: directory}", "{}", "answers.as"},
		"slack url":  {"not an address", "urlFile: DIR/url", "urlFile: DIR/token", "not a URL"},
		"kind":       {"no one would be notified", "voided", "gossip", `"gossip"`},
		"http":       {"notifications could be read in transit", "https://siem", "http://siem", "not https"},
		"metadata":   {"not even by mistake", "https://siem.example.com/acp", "http://169.254.169.254/latest", "not https"},
		"key":        {"a file that is no key", "DIR/key", "DIR/token", "does not hold a webhook key"},
		"name":       {"names are part of the channel's", "name: siem", "name: a b", "small letters"},
		"twice": {
			"two would be one channel", "webhooks:",
			"webhooks:\n- {name: siem, url: \"https://siem.example.com/acp\", keyFile: DIR/key}", "two of this name",
		},
		"unreadable": {"no YAML", "mail:", "mail", "notify.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, strings.Replace(whole, tc.from, tc.to, 1))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "xoxb") {
				t.Errorf("%s: want %q and no secret, got %v", tc.reason, tc.want, err)
			}
		})
	}
	if _, err := Load("missing.yaml"); err == nil {
		t.Error("Load of a missing file succeeded")
	}
}
