package core

import (
	"testing"
)

func TestCursors(t *testing.T) {
	for place, want := range map[string]string{"42": "42", "app-888": "app-888", "a:b": "a:b", "ü": "ü"} {
		if got, err := DecodeCursor("x", EncodeCursor("x", place)); err != nil || got != want {
			t.Errorf("%q came back as %q, %v", place, got, err)
		}
	}
	for reason, c := range map[string]*string{
		"of another list": EncodeCursor("y", "42"), "no base64": new("%%%"),
		"no place": EncodeCursor("x", ""), "padding bits": new("eDo0Mh"),
	} {
		if got, err := DecodeCursor("x", c); err == nil {
			t.Errorf("a cursor %s is read as %q", reason, got)
		}
	}
	for reason, c := range map[string]*string{
		"zero": EncodeNumberCursor("x", 0), "negative": EncodeNumberCursor("x", -1), "a word": EncodeCursor("x", "y"),
		"a sign": EncodeCursor("x", "+1"), "too large": EncodeCursor("x", "99999999999999999999"),
	} {
		if n, err := DecodeNumberCursor("x", c); err == nil {
			t.Errorf("%s is read as %d", reason, n)
		}
	}
}

// FuzzCursor: whatever comes is refused, or is the one text for its place.
func FuzzCursor(f *testing.F) {
	for _, s := range []string{"", "eDo0Mg", "eDox", "eDotMQ", "!"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := DecodeNumberCursor("x", &s)
		if err == nil && s != "" && (n < 1 || *EncodeNumberCursor("x", n) != s) {
			t.Errorf("%q is read as %d", s, n)
		}
		if place, err := DecodeCursor("x", &s); err == nil && s != "" && *EncodeCursor("x", place) != s {
			t.Errorf("%q and %q are the same place", s, *EncodeCursor("x", place))
		}
	})
}
