package v1alpha1

import (
	"slices"
	"strings"
)

// String returns the hours as text, for example "Mon-Fri 09:00-18:00 (Europe/Berlin)".
func (w *WeeklyHours) String() string {
	periods := make([]string, len(w.Periods))
	for i, p := range w.Periods {
		periods[i] = daysText(p.Days) + " " + p.From + "-" + p.To
	}
	return strings.Join(periods, ", ") + " (" + w.TimeZone + ")"
}

// daysText returns days in the order of the week, for example "Mon-Fri Sun". Days that are none are left out.
func daysText(days []Weekday) string {
	week := Weekdays()
	var parts []string
	for i := 0; i < len(week); i++ {
		first := i
		for i < len(week) && slices.Contains(days, week[i]) {
			i++
		}
		switch i - first {
		case 0:
		case 1:
			parts = append(parts, string(week[first]))
		default:
			parts = append(parts, string(week[first])+"-"+string(week[i-1]))
		}
	}
	return strings.Join(parts, " ")
}

// Normal returns the hours with the days of each period in the order of the week, each once.
func (w *WeeklyHours) Normal() *WeeklyHours {
	out := w.DeepCopy()
	for i := range out.Periods {
		p := &out.Periods[i]
		p.Days = slices.DeleteFunc(Weekdays(), func(d Weekday) bool { return !slices.Contains(p.Days, d) })
	}
	return out
}
