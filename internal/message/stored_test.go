package message

import (
	"strings"
	"testing"
)

// TestCompactAndRestore checks that a message survives a store that keeps text, code and parameters apart, and that nested
// messages are stored without their texts.
func TestCompactAndRestore(t *testing.T) {
	for _, c := range []struct {
		reason string
		m      Message
	}{
		{"no parameters", DecisionAllowed()},
		{"texts with characters that JSON escapes", NameScheme(Quoted("a\"<b>&\x00é"), "trnv1:rsc:")},
		{"numbers and lists", NamesListAndMore([]string{"m1", "m2"}, 3)},
		{"a message in a message", RefusalInMembers(NamesList([]string{"m1"}), RefusalMapFull(MapRoomIn(9, 10, "m1")))},
		{
			"a list of messages, one of which is a text of another program",
			DecisionExplained(DecisionAllowed(), []Message{DecisionMeans("denied"), Verbatim("KubeFed: no")}),
		},
		{"a text of another program", Verbatim("KubeFed: no")},
		{"nothing", Message{}},
	} {
		code, params := c.m.Compact()
		if got := Restore(c.m.Text, code, params); got != c.m {
			t.Errorf("%s: %+v became %+v (%s %s)", c.reason, c.m, got, code, params)
		}
	}
	_, params := RefusalMapFull(MapRoom(9, 10)).Compact()
	if want := `{"room":{"code":"map.room","params":{"entries":10,"limit":9}}}`; params != want {
		t.Errorf("the parameters are %s, want %s", params, want)
	}
}

// TestRestoreUnknown checks that what this program cannot render is shown as the text that came with it.
func TestRestoreUnknown(t *testing.T) {
	for reason, c := range map[string]struct{ code, params string }{
		"a status of an older program": {"", ""},
		"a code of a newer program":    {"newer.code", `{"a":1}`},
		"a code of a newer program in the parameters": {
			"refusal.in-members", `{"members":{"code":"names.list","params":{"names":["m1"]}},"reason":{"code":"newer.code"}}`,
		},
		"parameters that are not JSON":  {"refusal.in-members", `{"members`},
		"parameters that are no object": {"refusal.in-members", `[1]`},
	} {
		if got := Restore("the text", c.code, c.params); got.Text != "the text" || got.Render(Chinese) != "the text" {
			t.Errorf("%s: %+v is shown as %q", reason, got, got.Render(Chinese))
		}
	}
	deep := strings.Repeat(`{"reason":`, 100_000)
	if got := Restore("the text", "refusal.part", deep); got.Text != "the text" {
		t.Errorf("parameters that are nested deeply became %+v", got)
	}
}

// TestDecodeCode checks that a code alone is a stored form of a message without parameters, and of no other.
func TestDecodeCode(t *testing.T) {
	if got := Decode("decision.allowed"); got != DecisionAllowed() {
		t.Errorf("the code became %+v", got)
	}
	if got := Decode("refusal.part"); got != Verbatim("refusal.part") {
		t.Errorf("a code that needs parameters became %+v", got)
	}
}

func TestNamesOf(t *testing.T) {
	names := []string{"a", "b", "c"}
	if got := NamesOf(names, 3).Text; got != "a, b, c" {
		t.Errorf("got %q", got)
	}
	if got := NamesOf(names, 2); got.Text != "a, b and 1 more" || got.Render(Chinese) != "a、b 等（另有 1 个）" {
		t.Errorf("got %q and %q", got.Text, got.Render(Chinese))
	}
}

func TestErrorsOfAKind(t *testing.T) {
	kind := errKind{}
	if err := SpecTrailing().WithKind(kind); err.Error() != SpecTrailing().Text || Of(err) != SpecTrailing() {
		t.Errorf("the error is %q", err)
	}
}

type errKind struct{}

func (errKind) Error() string { return "kind" }

func BenchmarkBuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		StateQueued(StateNotThereYet(ObjectThePolicy()))
	}
}

// TestOfNamedText checks that a text gets its code and the name in it back, and that no other text does.
func TestOfNamedText(t *testing.T) {
	m := ConditionResourceClassInUse("cache, and more")
	for text, want := range map[string]Message{m.Text: m, "": {}, m.Text + ".": {}, "x" + m.Text: {}, m.Text[:40]: {}} {
		if got, ok := OfNamedText(text, ConditionResourceClassInUse); ok != !want.IsZero() || ok && got != want {
			t.Errorf("%q is %+v, %t, want %+v", text, got, ok, want)
		}
	}
}

// TestOfText checks that the text of a condition gets its code back, also when it was shortened, and that no other text does.
func TestOfText(t *testing.T) {
	m, other := SpecTooLarge(9, 8), SpecTrailing()
	for text, want := range map[string]Message{
		"":                       {},
		m.Text:                   m,
		m.Text[:12] + "...":      m,
		"...":                    Verbatim("..."),
		"the text of another":    Verbatim("the text of another"),
		m.Text[:12]:              Verbatim(m.Text[:12]),
		"the text of another...": Verbatim("the text of another..."),
	} {
		if got := OfText(text, other, m); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
}
