package message

import (
	"strings"
	"testing"
)

// TestShorten checks that a message keeps its code and its translation when names in it are cut.
func TestShorten(t *testing.T) {
	const limit = 120
	long := strings.Repeat("长x", 200)
	for name, m := range map[string]Message{
		"String":   GuardMark(long, "by", "reason"),
		"Strings":  GuardMark(long, long, long),
		"List":     NamesList([]string{long, "short", long}),
		"Nested":   RefusalPart("part", GuardMark("since", long, "reason")),
		"Verbatim": RefusalPart("part", Verbatim(long)),
	} {
		got := m.Shorten(limit)
		if got.Code != m.Code || len(got.Text) > limit || !strings.Contains(got.Text, ellipsis) {
			t.Errorf("%s: %d bytes of the code %s: %s", name, len(got.Text), got.Code, got.Text)
		}
		if decoded := Decode(got.Encode()); decoded != got {
			t.Errorf("%s: read back as %+v, want %+v", name, decoded, got)
		}
		if code, params := got.Compact(); Restore(got.Text, code, params) != got {
			t.Errorf("%s: restored as %+v, want %+v", name, Restore(got.Text, code, params), got)
		}
		if zh := got.Render(Chinese); zh == got.Text && name != "List" {
			t.Errorf("%s: %q is not translated", name, zh)
		}
	}
	if m := GuardMark("since", "by", "reason"); m.Shorten(limit) != m {
		t.Errorf("a short message became %+v", m.Shorten(limit))
	}
	for name, m := range map[string]Message{"Words": SpecTrailing(), "Unknown": {Code: "of.another-version", Text: SpecTrailing().Text}} {
		if got := m.Shorten(8); got != Verbatim(m.Text[:5]+ellipsis) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
