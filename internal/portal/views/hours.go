package views

import (
	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// Hours returns the view of recurring hours; nil if there are none.
func Hours(w *v1alpha1.WeeklyHours) *openapi.WeeklyHours {
	if w == nil {
		return nil
	}
	out := &openapi.WeeklyHours{TimeZone: w.TimeZone, Periods: make([]openapi.DailyPeriod, len(w.Periods))}
	for i, p := range w.Periods {
		days := make([]openapi.Weekday, len(p.Days))
		for j, d := range p.Days {
			days[j] = openapi.Weekday(d)
		}
		out.Periods[i] = openapi.DailyPeriod{Days: days, From: p.From, To: p.To}
	}
	return out
}
