package oncall

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// MaxTiers bounds the tiers of a schedule, as the form of onCall in approval policies does.
	MaxTiers = 16

	maxFile      = 1 << 20 // bytes
	maxSchedules = 200
	maxPeople    = 100 // of one rotation, one interval, or one answer about a tier
	maxIntervals = 1000

	defaultEvery  = time.Minute
	leastEvery    = 10 * time.Second
	defaultMaxAge = 15 * time.Minute
	maxMaxAge     = 24 * time.Hour
)

// File is the content of the configuration file; see docs/approvals.md.
type File struct {
	// Every is the interval between two readings of PagerDuty and Opsgenie; 0 means a minute.
	Every metav1.Duration `json:"every,omitzero"`
	// MaxAge is the age from which on an answer of PagerDuty or Opsgenie is not used any more; 0 means 15 minutes.
	MaxAge metav1.Duration `json:"maxAge,omitzero"`
	// Schedules are the schedules by the names that approval policies use.
	Schedules map[string]Schedule `json:"schedules"`
}

// Schedule is one schedule. Exactly one field is set.
type Schedule struct {
	Tiers     []Tier     `json:"tiers,omitempty"`
	PagerDuty *PagerDuty `json:"pagerDuty,omitempty"`
	Opsgenie  *Opsgenie  `json:"opsgenie,omitempty"`
}

// Tier defines who is on call in one tier: the people of the intervals that are going on, or if there is none, of the rotation.
type Tier struct {
	Rotation  *Rotation  `json:"rotation,omitempty"`
	Intervals []Interval `json:"intervals,omitempty"`
}

// Rotation passes the duty from one person to the next after a number of days, always at the same time of the day.
type Rotation struct {
	People   []string `json:"people"`             // e-mail addresses, in their order
	Start    string   `json:"start"`              // when the first person begins: 2026-01-05T09:00
	TimeZone string   `json:"timeZone,omitempty"` // of Start; empty means UTC
	Days     int      `json:"days"`

	start time.Time
}

// Interval is a time in which people are on call.
type Interval struct {
	People []string    `json:"people"` // e-mail addresses
	From   metav1.Time `json:"from"`   // inclusive
	To     metav1.Time `json:"to"`     // exclusive
}

// PagerDuty is an escalation policy of PagerDuty, whose levels are the tiers.
type PagerDuty struct {
	EscalationPolicy string `json:"escalationPolicy"` // its id
	TokenFile        string `json:"tokenFile"`        // a read-only REST API key; read at each request
	URL              string `json:"url,omitempty"`    // empty means https://api.pagerduty.com
}

// Opsgenie is a list of schedules of Opsgenie, one for each tier.
type Opsgenie struct {
	Schedules  []string `json:"schedules"`            // by IdentifierType, the first tier first
	Identifier string   `json:"identifier,omitempty"` // name or id; empty means name
	TokenFile  string   `json:"tokenFile"`            // an API key with read access; read at each request
	URL        string   `json:"url,omitempty"`        // empty means https://api.opsgenie.com
}

// Read reads and checks the configuration file. It contacts nobody.
func Read(name string) (*File, []byte, error) {
	f, err := os.Open(name) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(text) > maxFile {
		return nil, nil, fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	c, err := parse(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, text, nil
}

func parse(text []byte) (*File, error) {
	var f File
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(text), &f); err != nil {
		return nil, err
	}
	if f.Every.Duration == 0 {
		f.Every.Duration = defaultEvery
	}
	if f.MaxAge.Duration == 0 {
		f.MaxAge.Duration = defaultMaxAge
	}
	switch {
	case f.Every.Duration < leastEvery:
		return nil, fmt.Errorf("every: use at least %s", leastEvery)
	case f.MaxAge.Duration <= f.Every.Duration || f.MaxAge.Duration > maxMaxAge:
		return nil, fmt.Errorf("maxAge: use more than every (%s), and at most %s", f.Every.Duration, maxMaxAge)
	case len(f.Schedules) == 0 || len(f.Schedules) > maxSchedules:
		return nil, fmt.Errorf("schedules: name 1 to %d", maxSchedules)
	}
	var problems []error
	for name, s := range f.Schedules {
		if err := s.check(name); err != nil {
			problems = append(problems, fmt.Errorf("schedules.%s: %w", name, err))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return bytes.Compare([]byte(a.Error()), []byte(b.Error())) })
	return &f, errors.Join(problems...)
}

// namePattern is the pattern of names of schedules. Approval policies have the same pattern.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

func (s Schedule) check(name string) error {
	if !namePattern.MatchString(name) {
		return errors.New("its name has to be letters, digits, '-', '_' and '.', at most 63")
	}
	switch {
	case len(s.Tiers) > 0 && s.PagerDuty == nil && s.Opsgenie == nil:
		if len(s.Tiers) > MaxTiers {
			return fmt.Errorf("tiers: at most %d", MaxTiers)
		}
		for i := range s.Tiers {
			if err := s.Tiers[i].check(); err != nil {
				return fmt.Errorf("tiers[%d].%w", i, err)
			}
		}
		return nil
	case len(s.Tiers) == 0 && s.PagerDuty != nil && s.Opsgenie == nil:
		if s.PagerDuty.EscalationPolicy == "" {
			return errors.New("pagerDuty.escalationPolicy: give the id of the escalation policy")
		}
		return checkRemote("pagerDuty", s.PagerDuty.URL, s.PagerDuty.TokenFile)
	case len(s.Tiers) == 0 && s.PagerDuty == nil && s.Opsgenie != nil:
		o := s.Opsgenie
		if len(o.Schedules) == 0 || len(o.Schedules) > MaxTiers || slices.Contains(o.Schedules, "") {
			return fmt.Errorf("opsgenie.schedules: name 1 to %d", MaxTiers)
		}
		if o.Identifier != "" && o.Identifier != "name" && o.Identifier != "id" {
			return fmt.Errorf("opsgenie.identifier %q: use name or id", o.Identifier)
		}
		return checkRemote("opsgenie", o.URL, o.TokenFile)
	}
	return errors.New("give either tiers, pagerDuty or opsgenie")
}

func checkRemote(at, address, tokenFile string) error {
	if address != "" {
		if _, err := baseURL(address); err != nil {
			return fmt.Errorf("%s.url: %w", at, err)
		}
	}
	if _, err := readToken(tokenFile); err != nil {
		return fmt.Errorf("%s.tokenFile: %w", at, err)
	}
	return nil
}

// baseURL parses the address of an API. The token must not travel in the clear.
func baseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil { // The error's text contains the whole address.
		return nil, errors.New("it cannot be read: use https://HOST")
	}
	ip := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback) {
		return nil, fmt.Errorf("%q: use https://HOST, without user and query", u.Redacted())
	}
	return u, nil
}

func (t *Tier) check() error {
	if t.Rotation == nil && len(t.Intervals) == 0 {
		return errors.New("rotation: give a rotation or intervals")
	}
	if len(t.Intervals) > maxIntervals {
		return fmt.Errorf("intervals: at most %d", maxIntervals)
	}
	for i, x := range t.Intervals {
		if len(x.People) == 0 || len(x.People) > maxPeople {
			return fmt.Errorf("intervals[%d].people: name 1 to %d", i, maxPeople)
		}
		if !x.To.After(x.From.Time) {
			return fmt.Errorf("intervals[%d].to: it must be after from", i)
		}
	}
	r := t.Rotation
	if r == nil {
		return nil
	}
	if len(r.People) == 0 || len(r.People) > maxPeople {
		return fmt.Errorf("rotation.people: name 1 to %d", maxPeople)
	}
	if r.Days < 1 || r.Days > 366 {
		return errors.New("rotation.days: use 1 to 366")
	}
	zone, err := time.LoadLocation(r.TimeZone)
	if err != nil || r.TimeZone == "Local" {
		return fmt.Errorf("rotation.timeZone %q: it is not known", r.TimeZone)
	}
	if r.start, err = time.ParseInLocation("2006-01-02T15:04", r.Start, zone); err != nil {
		return fmt.Errorf("rotation.start %q: write it as 2026-01-05T09:00", r.Start)
	}
	return nil
}

// now returns the addresses of those on call at an instant.
func (t *Tier) now(at time.Time) []string {
	var out []string
	for _, x := range t.Intervals {
		if !at.Before(x.From.Time) && at.Before(x.To.Time) {
			out = append(out, x.People...)
		}
	}
	if len(out) == 0 && t.Rotation != nil {
		if p := t.Rotation.now(at); p != "" {
			out = []string{p}
		}
	}
	return out
}

// now returns the address of the person on call at an instant; empty before the start.
func (r *Rotation) now(at time.Time) string {
	if at.Before(r.start) {
		return ""
	}
	begins := func(turn int) time.Time { return r.start.AddDate(0, 0, turn*r.Days) } // keeps the time of the day when clocks change
	turn := int(at.Sub(r.start) / (time.Duration(r.Days) * 24 * time.Hour))
	for !at.Before(begins(turn + 1)) {
		turn++
	}
	for turn > 0 && at.Before(begins(turn)) {
		turn--
	}
	return r.People[turn%len(r.People)]
}
