package statusfields

import (
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/message"
)

// TestBounded checks that code and parameters are dropped together with a part of the text, and kept otherwise.
func TestBounded(t *testing.T) {
	for reason, c := range map[string]struct {
		m     message.Message
		coded bool
	}{
		"a message":                    {message.MemberNoAnswer("m1", "https://m1"), true},
		"nothing":                      {message.Message{}, false},
		"a text of another program":    {message.Verbatim("no"), false},
		"a text that is too long":      {message.MemberNoAnswer("m1", strings.Repeat("x", 2000)), false},
		"parameters that are too long": {message.NamesList(strings.Split(strings.Repeat("x ", 340), " ")), false},
	} {
		text, code, params := BoundedMessage(c.m)
		if (code != "") != c.coded || len(text) > 1024 || len(code) > 63 || len(params) > 1024 {
			t.Errorf("%s: %d bytes of text, the code %q and %d bytes of parameters", reason, len(text), code, len(params))
		}
		if got := message.Restore(text, code, params); got.Text != text || c.coded && got != c.m {
			t.Errorf("%s: %+v became %+v", reason, c.m, got)
		}
	}
}

// TestCodesFit checks that each code of the catalogue fits into the field of a status.
func TestCodesFit(t *testing.T) {
	entries, err := message.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if len(e.Code) > 63 {
			t.Errorf("the code %s is longer than 63 bytes", e.Code)
		}
	}
}
