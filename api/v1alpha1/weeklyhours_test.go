package v1alpha1

import "testing"

func TestWeeklyHoursText(t *testing.T) {
	w := &WeeklyHours{TimeZone: "Europe/Berlin", Periods: []DailyPeriod{
		{Days: []Weekday{"Fri", "Mon", "Tue", "Wed", "Thu"}, From: "09:00", To: "18:00"},
		{Days: []Weekday{"Sun", "Fri", "Sat", "Mon", "Mon"}, From: "22:00", To: "06:00"},
		{Days: []Weekday{"Wed"}, From: "00:00", To: "24:00"},
	}}
	const want = "Mon-Fri 09:00-18:00, Mon Fri-Sun 22:00-06:00, Wed 00:00-24:00 (Europe/Berlin)"
	if got := w.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	n := w.Normal()
	if n.String() != want || len(n.Periods[1].Days) != 4 || n.Periods[1].Days[0] != "Mon" || w.Periods[1].Days[0] != "Sun" {
		t.Errorf("got %+v, from %+v", n, w)
	}
}
