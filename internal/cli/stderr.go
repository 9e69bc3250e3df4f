package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// plainWriter escapes everything that could control a terminal: control characters, invalid UTF-8 and characters that
// change the direction of text, because names and messages may come from any user. Line ends and tabs are kept.
type plainWriter struct{ to io.Writer }

func (w plainWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, escapeControls(string(text))); err != nil {
		return 0, fmt.Errorf("write to standard error: %w", err)
	}
	return len(text), nil
}

// escapeControls returns s with everything escaped that is not printable, except line ends and tabs.
func escapeControls(s string) string {
	isPlain := func(r rune) bool { return r == '\n' || r == '\t' || strconv.IsPrint(r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !isPlain(r) }) < 0 {
		return s
	}
	var out strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case isPlain(r):
			out.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return out.String()
}
