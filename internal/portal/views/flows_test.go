package views

import (
	"testing"
	"time"
)

// TestWindow checks the period of a query by its beginning and its end.
func TestWindow(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := &Data{Now: func() time.Time { return now }}
	ago := func(length time.Duration) *time.Time { return new(now.Add(-length)) }
	for name, tc := range map[string]struct {
		since, until *time.Time
		from, to     *time.Time // nil: refused
	}{
		"without both":                         {nil, nil, ago(time.Hour), ago(0)},
		"with a beginning":                     {ago(2 * time.Hour), nil, ago(2 * time.Hour), ago(0)},
		"with an end":                          {nil, ago(time.Hour), ago(2 * time.Hour), ago(time.Hour)},
		"the longest":                          {ago(MaxWindow), nil, ago(MaxWindow), ago(0)},
		"the longest, a moment ago":            {ago(MaxWindow + time.Second), nil, ago(MaxWindow), ago(0)},
		"the longest, by a clock that is late": {ago(MaxWindow + clockSkew), nil, ago(MaxWindow), ago(0)},
		"too long":                             {ago(MaxWindow + clockSkew + time.Second), nil, nil, nil},
		"too long before an end":               {ago(MaxWindow + 2*time.Second), ago(time.Second), nil, nil},
		"in a future that a clock may be in":   {ago(0), ago(-clockSkew), ago(0), ago(-clockSkew)},
		"in the future":                        {ago(0), ago(-clockSkew - time.Second), nil, nil},
		"an end before the beginning":          {ago(time.Hour), ago(2 * time.Hour), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			from, to, err := d.Window(tc.since, tc.until, time.Hour)
			if tc.from == nil {
				if err == nil {
					t.Errorf("%s to %s is not refused", from, to)
				}
				return
			}
			if err != nil || !from.Equal(*tc.from) || !to.Equal(*tc.to) {
				t.Errorf("got %s to %s, %v, want %s to %s", from, to, err, tc.from, tc.to)
			}
		})
	}
}
