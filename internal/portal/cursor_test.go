package portal

import "testing"

func TestCursors(t *testing.T) {
	for place, want := range map[string]string{"42": "42", "app-888": "app-888", "a:b": "a:b", "ü": "ü"} {
		if got, err := decodeCursor("x", encodeCursor("x", place)); err != nil || got != want {
			t.Errorf("%q came back as %q, %v", place, got, err)
		}
	}
	for reason, c := range map[string]*string{"of another list": encodeCursor("y", "42"), "no base64": new("%%%"), "no place": encodeCursor("x", ""), "padding bits": new("eDo0Mh")} {
		if got, err := decodeCursor("x", c); err == nil {
			t.Errorf("a cursor %s is read as %q", reason, got)
		}
	}
	for reason, c := range map[string]*string{"zero": encodeNumber("x", 0), "negative": encodeNumber("x", -1), "a word": encodeCursor("x", "y"), "a sign": encodeCursor("x", "+1"), "too large": encodeCursor("x", "99999999999999999999")} {
		if n, err := numberCursor("x", c); err == nil {
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
		n, err := numberCursor("x", &s)
		if err == nil && s != "" && (n < 1 || *encodeNumber("x", n) != s) {
			t.Errorf("%q is read as %d", s, n)
		}
		if place, err := decodeCursor("x", &s); err == nil && s != "" && *encodeCursor("x", place) != s {
			t.Errorf("%q and %q are the same place", s, *encodeCursor("x", place))
		}
	})
}
