package audit

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func FuzzParseCursor(f *testing.F) {
	for _, s := range []string{
		"", "x", Cursor{At: 1, Tie: "7", Until: 3}.String(),
		Cursor{At: -1 << 63, Tie: "a\x00b\xff"}.String(), strings.Repeat("A", maxCursor+1),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCursor(s)
		switch {
		case s == "":
			if c != nil || err != nil {
				t.Errorf("ParseCursor of an empty text: got %v, %v; want nil", c, err)
			}
		case err != nil:
			if !errors.Is(err, ErrInvalidQuery) {
				t.Errorf("ParseCursor(%q): %v, want ErrInvalidQuery", s, err)
			}
		case c.String() != s:
			t.Errorf("ParseCursor(%q) accepted a text that differs from String(), %q", s, c.String())
		}
	})
}

func TestFilterWindow(t *testing.T) {
	at := time.Date(2026, 11, 2, 10, 0, 30, 0, time.FixedZone("", 8*3600))
	minute := time.Date(2026, 11, 2, 2, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason       string
		filter       Filter
		since, until time.Time
	}{
		"None":    {"a missing bound stays missing", Filter{}, time.Time{}, time.Time{}},
		"Inside":  {"the minutes that contain the bounds are included", Filter{Since: at, Until: at}, minute, minute.Add(time.Minute)},
		"OnAEdge": {"an end at a full minute is not extended", Filter{Since: minute, Until: minute}, minute, minute},
	} {
		t.Run(name, func(t *testing.T) {
			since, until := tc.filter.Window()
			if !since.Equal(tc.since) || !until.Equal(tc.until) {
				t.Errorf("%s: got Window() = %v, %v", tc.reason, since, until)
			}
		})
	}
}
