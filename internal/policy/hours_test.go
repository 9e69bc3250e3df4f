package policy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// weekly returns hours of one period.
func weekly(zone, from, to string, days ...v1alpha1.Weekday) *v1alpha1.WeeklyHours {
	return &v1alpha1.WeeklyHours{TimeZone: zone, Periods: []v1alpha1.DailyPeriod{{Days: days, From: from, To: to}}}
}

func parsed(t *testing.T, w *v1alpha1.WeeklyHours) *Hours {
	t.Helper()
	h, err := ParseHours(w)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHoursOpen(t *testing.T) {
	work := weekly("Europe/Berlin", "09:00", "18:00", "Mon", "Tue", "Wed", "Thu", "Fri")
	night := weekly("Europe/Berlin", "22:00", "06:00", "Fri", "Sun")
	spring := weekly("Europe/Berlin", "02:30", "03:30", "Sun")
	for _, tc := range []struct {
		hours *v1alpha1.WeeklyHours
		at    string
		open  bool
	}{
		{work, "2026-11-20T07:59:59Z", false}, // Friday, 08:59:59 in Berlin
		{work, "2026-11-20T08:00:00Z", true},
		{work, "2026-11-20T16:59:59Z", true},
		{work, "2026-11-20T17:00:00Z", false},
		{work, "2026-11-21T10:00:00Z", false}, // Saturday
		{work, "2026-07-03T07:00:00Z", true},  // daylight saving time
		{night, "2026-11-20T20:59:00Z", false},
		{night, "2026-11-20T21:00:00Z", true},
		{night, "2026-11-21T04:59:00Z", true}, // Saturday morning
		{night, "2026-11-21T05:00:00Z", false},
		{night, "2026-11-23T04:59:00Z", true}, // Monday morning, in the next week
		{night, "2026-11-20T04:00:00Z", false},
		{spring, "2026-03-29T00:59:59Z", false}, // 01:59:59; then the clocks show 03:00
		{spring, "2026-03-29T01:00:00Z", true},
		{spring, "2026-03-29T01:30:00Z", false},
		{spring, "2026-10-25T00:30:00Z", true},  // 02:30 for the first time
		{spring, "2026-10-25T01:00:00Z", false}, // 02:00 for the second time
		{spring, "2026-10-25T01:30:00Z", true},
		{spring, "2026-10-25T02:30:00Z", false},
	} {
		at, err := time.Parse(time.RFC3339, tc.at)
		if err != nil {
			t.Fatal(err)
		}
		if open := parsed(t, tc.hours).Open(at); open != tc.open {
			t.Errorf("%s at %s: got open %t", tc.hours, tc.at, open)
		}
	}
	var none *Hours
	if !none.Open(noon) {
		t.Error("no hours are not always open")
	}
}

// TestHoursEdges compares with the clocks of random time zones, minute by minute around the changes of their offsets.
func TestHoursEdges(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "Asia/Kolkata", "Asia/Shanghai", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"}
	starts := []time.Time{
		time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC), time.Date(2011, 12, 29, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC), time.Date(2026, 4, 4, 0, 0, 0, 0, time.UTC), time.Date(1969, 12, 30, 0, 0, 0, 0, time.UTC),
	}
	for seed := range uint64(60) {
		d := dice{rand.New(rand.NewPCG(seed, 3))}
		var w *v1alpha1.WeeklyHours
		for w == nil {
			w = d.weekly()
		}
		w.TimeZone = pick(d, zones...)
		h, at := parsed(t, w), pick(d, starts...).Add(time.Duration(d.IntN(60))*time.Minute)
		next, ok := h.Next(at)
		if !ok || !next.After(at) {
			t.Fatalf("seed %d: the next change after %s is %s, %t", seed, at, next, ok)
		}
		for range 3 * 24 * 60 {
			before, open := at, openByClock(w, at)
			if h.Open(at) != open {
				t.Fatalf("seed %d: %s at %s: got open %t", seed, w, at, h.Open(at))
			}
			if last, ok := h.Last(at); !ok || last.After(at) || h.Open(last) != open {
				t.Fatalf("seed %d: %s: the last change until %s is %s, %t", seed, w, at, last, ok)
			}
			at = at.Add(time.Minute)
			if !at.Before(next) {
				if next, ok = h.Next(at); !ok || !next.After(at) {
					t.Fatalf("seed %d: the next change after %s is %s, %t", seed, at, next, ok)
				}
			} else if openByClock(w, at) != open {
				t.Fatalf("seed %d: %s changes after %s, but the next change was said to be at %s", seed, w, before, next)
			}
		}
	}
}

func TestWholeWeekNeverChanges(t *testing.T) {
	h := parsed(t, weekly("Europe/Berlin", "00:00", "24:00", v1alpha1.Weekdays()...))
	if _, ok := h.Next(noon); ok || !h.Open(noon) {
		t.Error("hours of the whole week begin or end")
	}
	if _, ok := h.Last(noon); ok {
		t.Error("hours of the whole week began")
	}
}

func TestParseHoursRefuses(t *testing.T) {
	for _, w := range []*v1alpha1.WeeklyHours{
		weekly("", "09:00", "18:00", "Mon"), weekly("Local", "09:00", "18:00", "Mon"), weekly("Mars/Base", "09:00", "18:00", "Mon"),
		weekly("../../etc/passwd", "09:00", "18:00", "Mon"), weekly("right/UTC", "09:00", "18:00", "Mon"),
		weekly("UTC", "09:00", "09:00", "Mon"), weekly("UTC", "24:00", "09:00", "Mon"), weekly("UTC", "9:00", "18:00", "Mon"),
		weekly("UTC", "09:60", "18:00", "Mon"), weekly("UTC", "09:00", "24:01", "Mon"), weekly("UTC", "09:00", "", "Mon"),
		weekly("UTC", "+9:00", "18:00", "Mon"), weekly("UTC", "09:00", "18:00"), weekly("UTC", "09:00", "18:00", "Monday"), {TimeZone: "UTC"},
	} {
		if _, err := ParseHours(w); !errors.Is(err, ErrInvalidHours) {
			t.Errorf("%+v: got error %v", w, err)
		}
	}
}

func TestHoursCover(t *testing.T) {
	week := v1alpha1.Weekdays()
	wide, narrow := weekly("UTC", "08:00", "20:00", week...), weekly("UTC", "09:00", "18:00", "Mon", "Sun")
	for _, tc := range []struct {
		a, b   *v1alpha1.WeeklyHours
		covers bool
	}{
		{wide, narrow, true}, {narrow, wide, false}, {wide, wide, true}, {wide, nil, false}, {nil, wide, true}, {nil, nil, true},
		{wide, weekly("Europe/Berlin", "10:00", "11:00", "Mon"), false},
		{weekly("UTC", "00:00", "24:00", week...), weekly("Europe/Berlin", "10:00", "11:00", "Mon"), true},
		{weekly("UTC", "00:00", "24:00", "Mon", "Tue"), weekly("UTC", "20:00", "04:00", "Mon"), true},
	} {
		var a, b *Hours
		if tc.a != nil {
			a = parsed(t, tc.a)
		}
		if tc.b != nil {
			b = parsed(t, tc.b)
		}
		if got := a.Covers(b); got != tc.covers {
			t.Errorf("%v covers %v: got %t", tc.a, tc.b, got)
		}
	}
}

func during(w *v1alpha1.WeeklyHours) func(*v1alpha1.Statement) {
	return func(s *v1alpha1.Statement) { s.Hours = w }
}

func TestStatementsWithHours(t *testing.T) {
	friday := weekly("UTC", "11:00", "13:00", "Fri")
	s := NewSnapshot(world(statementOf("a", Allow, app888, "redis:connect", bobs, during(friday)), protect(bobs, v1alpha1.ModeEnforce)))
	q := Query{Subjects: []string{app888}, Resources: []string{bobs}, Protocol: v1alpha1.ProtocolTCP, Port: 6379, At: noon}
	for after, want := range map[time.Duration]Verdict{0: Allowed, time.Hour: DefaultDenied, -time.Hour: Allowed, -time.Hour - 1: DefaultDenied,
		7 * 24 * time.Hour: Allowed} {
		q.At = noon.Add(after)
		if d := s.Decide(q); d.Verdict != want {
			t.Errorf("after %s: got %s, want %s", after, d.Verdict, want)
		}
		u, ok := s.CompileResource(bobs, q.At)
		if !ok || (len(u.Rules) > 0) != (want == Allowed) {
			t.Errorf("after %s: got rules %+v", after, u.Rules)
		}
	}
	if got := s.ChangedUnitsBetween(noon, noon.Add(time.Hour)); len(got) != 1 || got[0] != bobs {
		t.Errorf("got changed units %v when the hours ended", got)
	}
	if got := s.ChangedUnitsBetween(noon, noon.Add(59*time.Minute)); len(got) != 0 {
		t.Errorf("got changed units %v before the hours ended", got)
	}
	if at, ok := s.NextChange(noon); !ok || !at.Equal(noon.Add(time.Hour)) {
		t.Errorf("got the next change %s, %t", at, ok)
	}
	if at, ok := s.LastChange(noon); !ok || !at.Equal(noon.Add(-time.Hour)) {
		t.Errorf("got the last change %s, %t", at, ok)
	}
}

// TestInvalidHoursCloseAccess checks that a statement whose hours cannot be read is refused, and opens nothing.
func TestInvalidHoursCloseAccess(t *testing.T) {
	bad := weekly("Mars/Base", "00:00", "24:00", v1alpha1.Weekdays()...)
	q := Query{Subjects: []string{app888}, Resources: []string{bobs}, Protocol: v1alpha1.ProtocolTCP, Port: 6379, At: noon}
	s := NewSnapshot(world(statementOf("a", Allow, app888, "redis:connect", bobs, during(bad)), protect(bobs, v1alpha1.ModeEnforce)))
	if d := s.Decide(q); d.Verdict != DefaultDenied {
		t.Errorf("an allow with invalid hours: got %+v", d)
	}
	if r := s.Refusals(); len(r) != 1 || r[0].Reason != v1alpha1.RefusedInvalidHours {
		t.Errorf("got refusals %+v", r)
	}
	s = NewSnapshot(world(statementOf("a", Allow, app888, "redis:connect", bobs), statementOf("b", Deny, app888, "redis:connect", bobs, during(bad)),
		protect(bobs, v1alpha1.ModeEnforce)))
	if d := s.Decide(q); d.Verdict != Denied {
		t.Errorf("a deny with invalid hours: got %+v", d)
	}
	if u, ok := s.CompileResource(bobs, noon); !ok || len(u.Rules) != 0 {
		t.Errorf("a deny with invalid hours: got rules %+v", u.Rules)
	}
}

// TestWildcardUnitsFollowHours checks that the cached units of wildcards are not those of other hours.
func TestWildcardUnitsFollowHours(t *testing.T) {
	s := NewSnapshot(world(statementOf("a", Allow, app888, "redis:connect", allRedis, during(weekly("UTC", "11:00", "13:00", "Fri"))),
		protect(bobs, v1alpha1.ModeEnforce)))
	for _, after := range []time.Duration{0, 2 * time.Hour, 7 * 24 * time.Hour, 7*24*time.Hour + 2*time.Hour} {
		u, ok := s.CompileResource(allRedis, noon.Add(after))
		if open := after%(24*time.Hour) == 0; (ok && len(u.Rules) > 0) != open {
			t.Errorf("after %s: got %t and rules %+v", after, ok, u.Rules)
		}
	}
}

func ExampleParseHours() {
	h, err := ParseHours(weekly("Asia/Shanghai", "09:00", "18:00", "Mon", "Tue", "Wed", "Thu", "Fri"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.Open(time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC)))
	// Output: true
}
