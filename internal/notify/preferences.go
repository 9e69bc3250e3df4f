package notify

import (
	"fmt"
	"slices"
	"time"
)

// Channel is a way to tell people. Receivers that the operator configured have the channel "webhook:NAME" or
// "slack:NAME" and no person.
type Channel string

// Channels of people.
const (
	ChannelInbox Channel = "inbox" // in the portal; always there, always at once
	ChannelMail  Channel = "mail"
	ChannelSlack Channel = "slack"
)

// When somebody is told.
type When string

// Choices.
const (
	Now    When = "at-once"
	Digest When = "digest" // once a day, in the person's morning
	Off    When = "off"
)

// Languages that messages are written in.
const (
	English = "en"
	Chinese = "zh"
)

// Preferences of a person; the zero value has the defaults.
type Preferences struct {
	Language   string                    `json:"language,omitempty"`   // en, zh
	TimeZone   string                    `json:"timeZone,omitempty"`   // an IANA name, as Asia/Shanghai
	DigestHour *int                      `json:"digestHour,omitempty"` // the hour of the digest, 0 to 23; nil: DefaultDigestHour
	Choices    map[Channel]map[Kind]When `json:"choices,omitempty"`    // what differs from the defaults
}

// DefaultDigestHour is the hour of a digest.
const DefaultDigestHour = 9

// presets say what happens when a person chose nothing. What waits for somebody, or is dangerous, comes at once; what
// merely is good to know, in the digest. Slack is for what cannot wait.
var presets = map[Channel]map[Kind]When{
	ChannelMail: {
		KindBreakGlass: Now, KindVoided: Now, KindEscalated: Now, KindNeeded: Now, KindFailed: Now, KindRollout: Now, KindDecided: Now,
		KindEffective: Now, KindRevoked: Now, KindExpires: Now, KindColleague: Digest, KindComment: Now, KindDelegation: Now,
	},
	ChannelSlack: {
		KindBreakGlass: Now, KindVoided: Now, KindEscalated: Now, KindNeeded: Now, KindFailed: Off, KindRollout: Now, KindDecided: Off,
		KindEffective: Off, KindRevoked: Off, KindExpires: Off, KindColleague: Off, KindComment: Off, KindDelegation: Now,
	},
}

// When a kind is told on a channel.
func (p Preferences) When(c Channel, k Kind) When {
	if c == ChannelInbox {
		return Now
	}
	if w, ok := p.Choices[c][k]; ok {
		return w
	}
	if w, ok := presets[c][k]; ok {
		return w
	}
	return Off
}

// Table is the whole of what happens, for a page that shows it.
func (p Preferences) Table(channels []Channel) map[Channel]map[Kind]When {
	out := map[Channel]map[Kind]When{}
	for _, c := range channels {
		out[c] = map[Kind]When{}
		for _, k := range Kinds() {
			out[c][k] = p.When(c, k)
		}
	}
	return out
}

// InvalidError names the field that is not valid.
type InvalidError struct{ Field, Reason string }

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// Validate what a person chose.
func (p Preferences) Validate() error {
	if p.Language != "" && p.Language != English && p.Language != Chinese {
		return &InvalidError{"language", fmt.Sprintf("Use %s or %s.", English, Chinese)}
	}
	if len(p.TimeZone) > 64 || p.TimeZone == "Local" {
		return &InvalidError{"timeZone", "Use a name such as Asia/Shanghai."}
	}
	if _, err := time.LoadLocation(p.TimeZone); err != nil {
		return &InvalidError{"timeZone", "Use a name such as Asia/Shanghai."}
	}
	if h := p.DigestHour; h != nil && (*h < 0 || *h > 23) {
		return &InvalidError{"digestHour", "Use an hour from 0 to 23."}
	}
	for c, kinds := range p.Choices {
		if _, ok := presets[c]; !ok && c != ChannelInbox {
			return &InvalidError{"choices", fmt.Sprintf("There is no channel %q to choose for.", c)}
		}
		for k, w := range kinds {
			if !slices.Contains(Kinds(), k) || w != Now && w != Digest && w != Off {
				return &InvalidError{"choices", fmt.Sprintf("%q cannot be %q: use at-once, digest or off.", k, w)}
			}
		}
	}
	return nil
}

// Language of the person's messages.
func (p Preferences) language() string {
	if p.Language == Chinese {
		return Chinese
	}
	return English
}

// Location of the person's clock; a zone that is not known any more is UTC.
func (p Preferences) location() *time.Location {
	l, err := time.LoadLocation(p.TimeZone)
	if err != nil {
		return time.UTC
	}
	return l
}

// NextDigest is the person's next morning after an instant.
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
