// Package setup reads the configuration file of the notification channels. Secrets are in separate files that it names.
package setup

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/notify/mail"
	"github.com/acp-io/acp/internal/notify/slack"
	"github.com/acp-io/acp/internal/notify/webhook"
	"github.com/acp-io/acp/internal/webhooksender"
)

// File is the content of the configuration file; see docs/notifications.md.
type File struct {
	Mail          *mail.Config   `json:"mail,omitempty"`
	Slack         *Slack         `json:"slack,omitempty"`
	SlackChannels []SlackChannel `json:"slackChannels,omitempty"`
	Webhooks      []Webhook      `json:"webhooks,omitempty"`
}

// Slack configures direct messages by a bot.
type Slack struct {
	TokenFile string `json:"tokenFile"`
	API       string `json:"api,omitempty"` // default: https://slack.com/api
	// SigningSecretFile permits people to decide in messages; empty means that they cannot.
	SigningSecretFile string `json:"signingSecretFile,omitempty"`
}

// SlackChannel configures an incoming webhook, whose URL is a secret.
type SlackChannel struct {
	Name    string        `json:"name"`
	URLFile string        `json:"urlFile"`
	Kinds   []notify.Kind `json:"kinds,omitempty"` // empty means all
}

// Webhook configures a receiver that is a program.
type Webhook struct {
	Name    string        `json:"name"`
	URL     string        `json:"url"`
	KeyFile string        `json:"keyFile"`
	Kinds   []notify.Kind `json:"kinds,omitempty"` // empty means all
	// Answers permits the receiver to decide for people; nil means that it may not.
	Answers *Answers `json:"answers,omitempty"`
}

// AsDirectory is the value of Answers.As by which a receiver decides for anybody in the directory.
const AsDirectory = "directory"

// Answers configures for whom a receiver may decide.
type Answers struct {
	As string `json:"as"`
}

// Channels are the configured channels and their senders.
type Channels struct {
	People         []notify.Channel
	SharedChannels []notify.SharedChannel
	Senders        map[notify.Channel]notify.Sender
	// Slack is the bot in whose messages people can decide, or nil.
	Slack *slack.Bot
	// Receivers are the receivers of webhooks that may answer, by name.
	Receivers map[string]*webhook.Receiver
}

// Load reads and validates the file. For an empty name it returns no channels, so that only the inbox exists. It does not contact
// the receivers.
func Load(name string) (*Channels, error) {
	if name == "" {
		return (&File{}).channels()
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--notify: %w", err)
	}
	var f File
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return nil, fmt.Errorf("--notify %s: %w", name, err)
	}
	c, err := f.channels()
	if err != nil {
		return nil, fmt.Errorf("--notify %s: %w", name, err)
	}
	return c, nil
}

const slackAPI = "https://slack.com/api"

func (f *File) channels() (*Channels, error) {
	c := &Channels{Senders: map[notify.Channel]notify.Sender{}, Receivers: map[string]*webhook.Receiver{}}
	if f.Mail != nil {
		s, err := mail.New(*f.Mail)
		if err != nil {
			return nil, err
		}
		c.person(notify.ChannelMail, s)
	}
	if f.Slack != nil {
		s, err := f.Slack.bot()
		if err != nil {
			return nil, err
		}
		c.person(notify.ChannelSlack, s)
		if s.SigningSecretFile != "" {
			c.Slack = s
		}
	}
	var problems []error
	for _, x := range f.SlackChannels {
		_, err := slack.ReadURL(x.URLFile)
		if err == nil {
			err = c.broadcast(
				"slack:",
				x.Name,
				x.Kinds,
				&slack.IncomingWebhook{URLFile: x.URLFile, Client: webhooksender.NewClient(webhooksender.Timeout), Now: time.Now},
			)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("slackChannels %q: %w", x.Name, err))
		}
	}
	for _, x := range f.Webhooks {
		u, err := webhooksender.ParseURL(x.URL)
		if err == nil {
			_, err = webhooksender.ReadKeys(x.KeyFile)
		}
		var receiver *webhook.Receiver
		if err == nil && x.Answers != nil {
			receiver = &webhook.Receiver{Name: x.Name, KeyFile: x.KeyFile}
			if x.Answers.As != AsDirectory {
				err = fmt.Errorf("answers.as has to be %q: the receiver vouches for anybody in the directory", AsDirectory)
			}
		}
		if err == nil {
			err = c.broadcast(
				"webhook:",
				x.Name,
				x.Kinds,
				&webhook.Sender{
					Target:   &webhooksender.Target{URL: u, KeyFile: x.KeyFile, Client: webhooksender.NewClient(webhooksender.Timeout), Now: time.Now},
					Receiver: receiver,
				},
			)
		}
		if err == nil && receiver != nil {
			c.Receivers[x.Name] = receiver
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("webhooks %q: %w", x.Name, err))
		}
	}
	return c, errors.Join(problems...)
}

func (s *Slack) bot() (*slack.Bot, error) {
	api := s.API
	if api == "" {
		api = slackAPI
	}
	u, err := webhooksender.ParseURL(api)
	if err != nil {
		return nil, fmt.Errorf("slack.api: %w", err)
	}
	if _, err := os.ReadFile(s.TokenFile); err != nil {
		return nil, fmt.Errorf("slack.tokenFile: %w", err)
	}
	if s.SigningSecretFile != "" {
		if _, err := slack.ReadSigningSecrets(s.SigningSecretFile); err != nil {
			return nil, fmt.Errorf("slack.signingSecretFile: %w", err)
		}
	}
	return &slack.Bot{
		API: u, TokenFile: s.TokenFile, SigningSecretFile: s.SigningSecretFile, Client: webhooksender.NewClient(webhooksender.Timeout), Now: time.Now,
	}, nil
}

func (c *Channels) person(name notify.Channel, s notify.Sender) {
	c.People = append(c.People, name)
	c.Senders[name] = s
}

var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (c *Channels) broadcast(prefix, name string, kinds []notify.Kind, s notify.Sender) error {
	if !namePattern.MatchString(name) {
		return errors.New("its name has to be small letters, digits and '-'")
	}
	channel := notify.Channel(prefix + name)
	if _, ok := c.Senders[channel]; ok {
		return errors.New("there are two of this name")
	}
	for _, k := range kinds {
		if !slices.Contains(notify.Kinds(), k) {
			return fmt.Errorf("there is no kind %q: use %v", k, notify.Kinds())
		}
	}
	c.SharedChannels = append(c.SharedChannels, notify.SharedChannel{Channel: channel, Kinds: kinds})
	c.Senders[channel] = s
	return nil
}
