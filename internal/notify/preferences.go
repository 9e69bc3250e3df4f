package notify

import (
	"slices"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Channel identifies a way of delivery. Channels that the operator configured are named "webhook:NAME" or "slack:NAME" and have
// no person.
type Channel string

// These are the channels of people.
const (
	// ChannelInbox is the inbox in the portal. It cannot be turned off, and its messages are always immediate.
	ChannelInbox Channel = "inbox"
	// ChannelMail is mail to the person's address.
	ChannelMail Channel = "mail"
	// ChannelSlack is a direct message in Slack.
	ChannelSlack Channel = "slack"
)

// Timing determines when a person is notified.
type Timing string

// These are the possible timings.
const (
	// Immediately sends each message as soon as it exists.
	Immediately Timing = "at-once"
	// Digest sends one message a day, at the person's digest hour.
	Digest Timing = "digest"
	// Off sends no message.
	Off Timing = "off"
)

// These are the languages of messages.
const (
	// English is the code of English.
	English = "en"
	// Chinese is the code of Chinese.
	Chinese = "zh"
)

// Preferences are a person's choices. The zero value means the defaults.
type Preferences struct {
	Language   string                      `json:"language,omitempty"`   // en or zh
	TimeZone   string                      `json:"timeZone,omitempty"`   // IANA name, for example Asia/Shanghai
	DigestHour *int                        `json:"digestHour,omitempty"` // hour of the digest, 0 to 23; nil means DefaultDigestHour
	Choices    map[Channel]map[Kind]Timing `json:"choices,omitempty"`    // differences from the defaults
}

// DefaultDigestHour is the default hour of a digest, in the person's time zone.
const DefaultDigestHour = 9

// defaultChoices are the timings of people without preferences. Dangerous events and pending decisions are notified immediately,
// informative ones in the digest. Slack is used for urgent kinds only.
var defaultChoices = map[Channel]map[Kind]Timing{
	ChannelMail: {
		KindBreakGlass:   Immediately,
		KindVoided:       Immediately,
		KindEscalated:    Immediately,
		KindNeeded:       Immediately,
		KindUndecided:    Immediately,
		KindFailed:       Immediately,
		KindRollout:      Immediately,
		KindAccessReview: Immediately,
		KindDecided:      Immediately,
		KindEffective:    Immediately,
		KindRevoked:      Immediately,
		KindExpires:      Immediately,
		KindColleague:    Digest,
		KindComment:      Immediately,
		KindDelegation:   Immediately,
	},
	ChannelSlack: {
		KindBreakGlass:   Immediately,
		KindVoided:       Immediately,
		KindEscalated:    Immediately,
		KindNeeded:       Immediately,
		KindUndecided:    Off,
		KindFailed:       Off,
		KindRollout:      Immediately,
		KindAccessReview: Immediately,
		KindDecided:      Off,
		KindEffective:    Off,
		KindRevoked:      Off,
		KindExpires:      Off,
		KindColleague:    Off,
		KindComment:      Off,
		KindDelegation:   Immediately,
	},
}

// Timing returns when messages of the kind are sent on the channel.
func (p Preferences) Timing(c Channel, k Kind) Timing {
	if c == ChannelInbox {
		return Immediately
	}
	if w, ok := p.Choices[c][k]; ok {
		return w
	}
	if w, ok := defaultChoices[c][k]; ok {
		return w
	}
	return Off
}

// Table returns the timing of every kind on the given channels.
func (p Preferences) Table(channels []Channel) map[Channel]map[Kind]Timing {
	out := map[Channel]map[Kind]Timing{}
	for _, c := range channels {
		out[c] = map[Kind]Timing{}
		for _, k := range Kinds() {
			out[c][k] = p.Timing(c, k)
		}
	}
	return out
}

// InvalidError reports an invalid field of preferences.
type InvalidError struct {
	Field  string
	Reason message.Message
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason.Text }

// Validate returns an *InvalidError for the first invalid field.
func (p Preferences) Validate() error {
	if p.Language != "" && p.Language != English && p.Language != Chinese {
		return &InvalidError{"language", message.PreferencesLanguage([]string{string(English), string(Chinese)})}
	}
	if len(p.TimeZone) > 64 || p.TimeZone == "Local" {
		return &InvalidError{"timeZone", message.PreferencesZone()}
	}
	if _, err := time.LoadLocation(p.TimeZone); err != nil {
		return &InvalidError{"timeZone", message.PreferencesZone()}
	}
	if h := p.DigestHour; h != nil && (*h < 0 || *h > 23) {
		return &InvalidError{"digestHour", message.PreferencesHour()}
	}
	for c, kinds := range p.Choices {
		if _, ok := defaultChoices[c]; !ok && c != ChannelInbox {
			return &InvalidError{"choices", message.PreferencesChannelUnknown(string(c))}
		}
		for k, w := range kinds {
			if !slices.Contains(Kinds(), k) || w != Immediately && w != Digest && w != Off {
				return &InvalidError{"choices", message.PreferencesTiming(string(k), string(w))}
			}
		}
	}
	return nil
}

// language returns the language of the person's messages; English by default.
func (p Preferences) language() string {
	if p.Language == Chinese {
		return Chinese
	}
	return English
}

// location returns the person's time zone; UTC if the zone is unknown.
func (p Preferences) location() *time.Location {
	l, err := time.LoadLocation(p.TimeZone)
	if err != nil {
		return time.UTC
	}
	return l
}

// NextDigest returns the next time of the person's digest after an instant.
func (p Preferences) NextDigest(after time.Time) time.Time {
	hour := DefaultDigestHour
	if p.DigestHour != nil {
		hour = *p.DigestHour
	}
	t := after.In(p.location())
	at := time.Date(t.Year(), t.Month(), t.Day(), hour, 0, 0, 0, t.Location())
	if !at.After(after) {
		at = time.Date(t.Year(), t.Month(), t.Day()+1, hour, 0, 0, 0, t.Location())
	}
	return at.UTC()
}
