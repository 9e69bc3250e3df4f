package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // images without a time zone database, and machines without one, know the same zones

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Hours are recurring hours of the week in a time zone, for decisions.
type Hours struct {
	zone *time.Location
	// open are the seconds of the week in which the hours are open, from Monday 00:00 on, sorted and without overlaps.
	open []secondsOfWeek
	key  string
}

// secondsOfWeek are the seconds from a first one to one before the last.
type secondsOfWeek struct{ from, to int64 }

const (
	daySeconds  = int64(24 * 60 * 60)
	weekSeconds = 7 * daySeconds
	// epochWeekday is the position of 1 January 1970, a Thursday, in a week that begins on Monday.
	epochWeekday = 3
)

// ErrInvalidHours is the kind of the errors of ParseHours.
var ErrInvalidHours = errors.New("invalid hours")

// zones caches the time zones, because loading one reads a file. There are some hundred.
var zones sync.Map

func loadZone(name string) (*time.Location, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	// A name in these directories means the same zone, or one whose clocks count leap seconds.
	if name == "" || name == "Local" || strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		return nil, ErrInvalidHours
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("load a time zone: %w", err)
	}
	kept, _ := zones.LoadOrStore(name, z)
	return kept.(*time.Location), nil
}

// ParseHours returns the hours for decisions, or an error of the kind ErrInvalidHours that says which part is invalid.
func ParseHours(w *v1alpha1.WeeklyHours) (*Hours, error) {
	zone, err := loadZone(w.TimeZone)
	if err != nil {
		return nil, message.HoursTimeZone(message.Quoted(w.TimeZone)).WithKind(ErrInvalidHours)
	}
	if len(w.Periods) == 0 {
		return nil, message.HoursEmpty().WithKind(ErrInvalidHours)
	}
	h := &Hours{zone: zone}
	for i := range w.Periods {
		if err := h.add(&w.Periods[i]); err != nil {
			return nil, err
		}
	}
	h.merge()
	h.key = w.TimeZone
	for _, o := range h.open {
		h.key += " " + strconv.FormatInt(o.from, 36) + "-" + strconv.FormatInt(o.to, 36)
	}
	return h, nil
}

func (h *Hours) add(p *v1alpha1.DailyPeriod) error {
	from, okFrom := secondOfDay(p.From)
	to, okTo := secondOfDay(p.To)
	if !okFrom || !okTo || from == daySeconds || from == to {
		return message.HoursPeriod(message.Quoted(p.From), message.Quoted(p.To)).WithKind(ErrInvalidHours)
	}
	if to < from {
		to += daySeconds
	}
	if len(p.Days) == 0 {
		return message.HoursEmpty().WithKind(ErrInvalidHours)
	}
	for _, day := range p.Days {
		n := slices.Index(v1alpha1.Weekdays(), day)
		if n < 0 {
			return message.HoursDay(message.Quoted(string(day))).WithKind(ErrInvalidHours)
		}
		start := int64(n) * daySeconds
		h.open = append(h.open, secondsOfWeek{start + from, min(start+to, weekSeconds)})
		if start+to > weekSeconds {
			h.open = append(h.open, secondsOfWeek{0, start + to - weekSeconds})
		}
	}
	return nil
}

// secondOfDay returns the second of the day of a time as HH:MM.
func secondOfDay(text string) (int64, bool) {
	hour, minute, ok := strings.Cut(text, ":")
	h, errH := strconv.ParseUint(hour, 10, 8)
	m, errM := strconv.ParseUint(minute, 10, 8)
	if !ok || errH != nil || errM != nil || len(hour) != 2 || len(minute) != 2 || m > 59 || h > 24 || h == 24 && m > 0 {
		return 0, false
	}
	return int64(h)*60*60 + int64(m)*60, true
}

// merge sorts the periods, and joins those that overlap or follow one another.
func (h *Hours) merge() {
	slices.SortFunc(h.open, func(a, b secondsOfWeek) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	merged := h.open[:1]
	for _, o := range h.open[1:] {
		if last := &merged[len(merged)-1]; o.from <= last.to {
			last.to = max(last.to, o.to)
		} else {
			merged = append(merged, o)
		}
	}
	h.open = merged
}

// always reports whether the hours are the whole week.
func (h *Hours) always() bool { return h.open[0] == secondsOfWeek{0, weekSeconds} }

// Open reports whether an instant is in the hours. Nil hours are always open.
func (h *Hours) Open(at time.Time) bool {
	if h == nil {
		return true
	}
	_, second := h.local(at)
	return h.isOpen(second)
}

func (h *Hours) isOpen(second int64) bool {
	for _, o := range h.open {
		if second < o.to {
			return second >= o.from
		}
	}
	return false
}

// local returns the instant, in Unix seconds, at which the week of an instant begins by the present offset of the zone, and the second of
// the week.
func (h *Hours) local(at time.Time) (week, second int64) {
	_, offset := at.In(h.zone).Zone()
	clocks := at.Unix() + int64(offset) + epochWeekday*daySeconds
	second = clocks % weekSeconds
	if second < 0 {
		second += weekSeconds
	}
	return at.Unix() - second, second
}

// Next returns the first instant after another at which the hours may begin or end; false if they never do. Changes of the zone's offset
// are such instants, too.
func (h *Hours) Next(after time.Time) (time.Time, bool) {
	if h == nil || h.always() {
		return time.Time{}, false
	}
	week, second := h.local(after)
	next := weekSeconds + h.edge(0)
	for i := range 2 * len(h.open) {
		if e := h.edge(i); e > second {
			next = e
			break
		}
	}
	at := time.Unix(week+next, 0).UTC()
	if _, end := after.In(h.zone).ZoneBounds(); !end.IsZero() && end.Before(at) {
		at = end.UTC()
	}
	return at, true
}

// Last returns the last such instant that is not later than another; false if there is none.
func (h *Hours) Last(at time.Time) (time.Time, bool) {
	if h == nil || h.always() {
		return time.Time{}, false
	}
	week, second := h.local(at)
	last := h.edge(2*len(h.open)-1) - weekSeconds
	for i := 2*len(h.open) - 1; i >= 0; i-- {
		if e := h.edge(i); e <= second {
			last = e
			break
		}
	}
	out := time.Unix(week+last, 0).UTC()
	if start, _ := at.In(h.zone).ZoneBounds(); !start.IsZero() && start.After(out) {
		out = start.UTC()
	}
	return out, true
}

// edge returns the beginnings and ends of the periods, in seconds of the week: the ith of 2*len(open).
func (h *Hours) edge(i int) int64 {
	o := h.open[i/2]
	if i%2 == 0 {
		return o.from
	}
	return o.to
}

// Equal reports whether two hours have the same time zone and are open in the same seconds of the week. Nil hours are always open.
func (h *Hours) Equal(o *Hours) bool {
	if h == nil || o == nil {
		return h == o
	}
	return h.key == o.key
}

// Covers reports whether the hours are open whenever others are, as far as that follows from what is written: hours of different time
// zones are not compared.
func (h *Hours) Covers(o *Hours) bool {
	if h == nil || h.always() {
		return true
	}
	return o != nil && h.zone == o.zone && !slices.ContainsFunc(o.open, func(p secondsOfWeek) bool {
		return !slices.ContainsFunc(h.open, func(q secondsOfWeek) bool { return q.from <= p.from && p.to <= q.to })
	})
}

// hoursOfStatements returns the different hours of statements, sorted by their keys.
func hoursOfStatements(statements []*statement) []*Hours {
	found := map[string]*Hours{}
	for _, st := range statements {
		if st.hours != nil && found[st.hours.key] == nil {
			found[st.hours.key] = st.hours
		}
	}
	out := make([]*Hours, 0, len(found))
	for _, h := range found {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b *Hours) int { return cmp.Compare(a.key, b.key) })
	return out
}
