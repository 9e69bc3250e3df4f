package message

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func catalogue(t *testing.T) []Entry {
	t.Helper()
	entries, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

var placeholder = regexp.MustCompile(`\{(\w*)(:\w*)?\}`)

// TestCatalogueIsComplete checks that each code has a text in every language, and that the texts have the parameters of the code.
func TestCatalogueIsComplete(t *testing.T) {
	chinese := regexp.MustCompile(`\p{Han}`)
	letter := regexp.MustCompile(`\pL`) // texts of parameters and punctuation have none
	form := regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, e := range catalogue(t) {
		if !form.MatchString(e.Code) || seen[e.Code] || e.Code == codeVerbatim {
			t.Errorf("%s: the code is there twice, reserved, or not of lower-case words", e.Code)
		}
		seen[e.Code] = true
		if strings.TrimSpace(e.En) == "" || strings.TrimSpace(e.Zh) == "" {
			t.Errorf("%s: a language has no text", e.Code)
		}
		if chinese.MatchString(e.En) || !chinese.MatchString(e.Zh) && letter.MatchString(placeholder.ReplaceAllString(e.Zh, "")) {
			t.Errorf("%s: the texts are not one in English and one in Chinese", e.Code)
		}
		params := map[string]bool{}
		times, kinds := map[string]bool{}, map[string]string{}
		for _, p := range e.Params {
			name, kind, _ := strings.Cut(p, " ")
			params[name], times[name], kinds[name] = true, kind == "time", kind
			if !strings.Contains(e.En, "{"+name) {
				t.Errorf("%s: the English text does not say the parameter %s", e.Code, name)
			}
		}
		for _, text := range []string{e.En, e.Zh} {
			for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
				if !params[m[1]] || times[m[1]] != (m[2] == ":time") ||
					m[2] != "" && !slices.Contains([]string{":sentence", ":list", ":time", ":plain", ":duration"}, m[2]) {
					t.Errorf("%s: %s in %q is no parameter", e.Code, m[0], text)
				}
				if m[2] == ":plain" && kinds[m[1]] != "number" || m[2] == ":duration" && kinds[m[1]] != "string" {
					t.Errorf("%s: %s in %q is of the type %s", e.Code, m[0], text, kinds[m[1]])
				}
				if kinds[m[1]] == "number" && unseparated[m[1]] && m[2] != ":plain" {
					t.Errorf("%s: %s in %q would get separators of thousands: write {%s:plain}", e.Code, m[0], text, m[1])
				}
			}
		}
	}
}

// unseparated are the names of the parameters that are numbers without being amounts.
var unseparated = map[string]bool{
	"port": true, "first": true, "last": true, "version": true, "generation": true, "line": true, "column": true, "item": true, "next": true, "number": true,
	"oldest": true, "tier": true, "wave": true, "waves": true, "year": true, "id": true,
}

// TestTextIsStable checks that Message.Text has neither separators nor words for durations: it is stored, and digests are bound to it.
func TestTextIsStable(t *testing.T) {
	m := MapRoom(300, 16384)
	if m.Text != "300 of 16384" || m.Render(English) != "300 of 16,384" {
		t.Errorf("the text is %q, and %q for a reader", m.Text, m.Render(English))
	}
	if got := Recognize(m.Text, "map"); got != m {
		t.Errorf("the text is recognized as %+v", got)
	}
	if m := PolicyStepDenies("36h"); m.Text != "after 36h deny" || m.Render(English) != "after 1 day 12 hours deny" {
		t.Errorf("the text is %q, and %q for a reader", m.Text, m.Render(English))
	}
}

// TestEveryCodeIsUsed finds codes that nothing sends any more.
func TestEveryCodeIsUsed(t *testing.T) {
	generated, err := os.ReadFile("constructors.gen.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	call := regexp.MustCompile(`\bmessage\.([A-Z]\w*)\b`)
	own := regexp.MustCompile(`\breturn ([A-Z]\w*)\(`)
	for _, root := range []string{"..", "../../controllers", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range call.FindAllSubmatch(text, -1) {
				used[string(m[1])] = true
			}
			if filepath.Base(filepath.Dir(path)) == "message" && !strings.HasSuffix(path, ".gen.go") { // NamesOf calls some of them
				for _, m := range own.FindAllSubmatch(text, -1) {
					used[string(m[1])] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^func (\w+)\(`).FindAllSubmatch(generated, -1) {
		if !used[string(m[1])] {
			t.Errorf("no program uses %s: remove its entry from catalogue.json", m[1])
		}
	}
}

// TestGeneratedIsFresh checks that the generator was run after the last change of the catalogue.
func TestGeneratedIsFresh(t *testing.T) {
	files := []string{
		"catalogue.json",
		"constructors.gen.go",
		"../../docs/messages.md",
		"../../web/src/i18n/messages.en.gen.ts",
		"../../web/src/i18n/messages.zh.gen.ts",
	}
	before := make([][]byte, len(files))
	for i, f := range files {
		var err error
		if before[i], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "run", "./generate").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, f := range files {
		after, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(before[i], after) {
			t.Errorf("%s was not fresh; it is now: commit it", f)
		}
	}
}

// TestRender reads the cases that the web UI's renderer is tested with, too.
func TestRender(t *testing.T) {
	data, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Reason  string
		Message Message
		En, Zh  string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if got := c.Message.Render(English); got != c.En {
			t.Errorf("%s: English is %q, want %q", c.Reason, got, c.En)
		}
		if got := c.Message.Render(Chinese); got != c.Zh {
			t.Errorf("%s: Chinese is %q, want %q", c.Reason, got, c.Zh)
		}
	}
}

// TestTimes checks that times are rendered in the zone of the reader, also in nested messages, and stay instants on the wire.
func TestTimes(t *testing.T) {
	zone := time.FixedZone("CST", 8*60*60)
	m := Sentence(NotificationEffectiveBodyUntil(time.Date(2026, 3, 2, 18, 0, 0, 0, zone)))
	if !strings.Contains(m.Params, `"until":"2026-03-02T10:00:00Z"`) {
		t.Errorf("the parameters %s do not have the instant in RFC 3339", m.Params)
	}
	for _, tc := range []struct {
		reason string
		reader Reader
		want   string
	}{
		{"no zone", Reader{Language: English}, "until 2026-03-02 10:00 UTC."},
		{"a zone in English", Reader{Language: English, Zone: zone}, "until 2026-03-02 18:00 CST."},
		{"a zone in Chinese", Reader{Language: Chinese, Zone: zone}, "截止 2026-03-02 18:00 CST。"},
	} {
		if got := Decode(m.Encode()).RenderFor(tc.reader); !strings.Contains(got, tc.want) {
			t.Errorf("%s: the text is %q, want %q in it", tc.reason, got, tc.want)
		}
	}
	older := Message{Code: "call.login-first", Params: `{}`, Text: "The text of an earlier version."}
	if got := Sentence(older).RenderFor(Reader{Language: English, Zone: zone}); got != older.Text+"." {
		t.Errorf("a message without times became %q", got)
	}
	short := NotificationDowngradeBody(strings.Repeat("x", 600), time.Time{}).Shorten(250)
	if got := short.RenderFor(Reader{Language: English, Zone: zone}); got == "" || len(short.Text) > 250 {
		t.Errorf("the shortened message is %q", got)
	}
}

func TestMessagesSurviveTheWire(t *testing.T) {
	want := Sentence(SpecTooLarge(9, 8))
	if want.Text != "It has 9 bytes, and may have 8." || want.Render(Chinese) != "它有 9 字节，最多允许 8 字节。" {
		t.Fatalf("the texts are %q and %q", want.Text, want.Render(Chinese))
	}
	if got := Decode(want.Encode()); got != want {
		t.Errorf("Decode(Encode()) = %+v, want %+v", got, want)
	}
	if got := Decode("a text of an older program"); got != Verbatim("a text of an older program") {
		t.Errorf("a text that is no message became %+v", got)
	}
	if got := Decode(`"quoted"`); got != Verbatim(`"quoted"`) {
		t.Errorf("a quoted text became %+v", got)
	}
	var got Message
	if err := json.Unmarshal([]byte(`"a text of an older server"`), &got); err != nil || got != Verbatim("a text of an older server") {
		t.Errorf("the text of an older server became %+v, %v", got, err)
	}
	if (Message{}).Encode() != "" || !Decode("").IsZero() {
		t.Error("the zero message did not stay zero")
	}
}

// TestSame checks that a text that an earlier version stored counts as the message that has the same text.
func TestSame(t *testing.T) {
	m := SpecTooLarge(9, 8)
	for _, tc := range []struct {
		reason string
		other  Message
		want   bool
	}{
		{"an equal message", SpecTooLarge(9, 8), true},
		{"the text that an earlier version stored", Verbatim(m.Text), true},
		{"another text", Verbatim("it has 9 bytes"), false},
		{"other parameters", SpecTooLarge(10, 8), false},
		{"nothing", Message{}, false},
	} {
		if m.Same(tc.other) != tc.want || tc.other.Same(m) != tc.want {
			t.Errorf("%s: the same is %t, want %t", tc.reason, m.Same(tc.other), tc.want)
		}
	}
}

// TestStored checks that a message in a stored document is a string, which earlier versions can read, and that their texts are read.
func TestStored(t *testing.T) {
	type document struct {
		Reason Stored `json:"reason"`
	}
	want := document{Stored{SpecTooLarge(9, 8)}}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var old struct {
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(data, &old); err != nil {
		t.Errorf("an earlier version cannot read %s: %v", data, err)
	}
	var got document
	if err := json.Unmarshal(data, &got); err != nil || got != want {
		t.Errorf("%s is read as %+v, %v", data, got, err)
	}
	for text, want := range map[string]Message{`{"reason":"an old text"}`: Verbatim("an old text"), `{"reason":""}`: {}, `{}`: {}} {
		var got document
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Reason.Message != want {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
	var wrong document
	if err := json.Unmarshal([]byte(`{"reason":7}`), &wrong); err == nil {
		t.Error("a number was read as a message")
	}
}

func TestErrors(t *testing.T) {
	kind := errors.New("kind")
	err := SpecTrailing().Wrap(kind)
	if !errors.Is(err, kind) || Of(err) != SpecTrailing() || err.Error() != SpecTrailing().Text+": kind" {
		t.Errorf("the error %v lost its kind or its message", err)
	}
	if got := Of(kind); got != Verbatim("kind") {
		t.Errorf("Of(an error without a message) = %+v", got)
	}
	if LanguageOf("zh_CN.UTF-8") != Chinese || LanguageOf("C") != English || LanguageOf("") != English {
		t.Error("a locale has the wrong language")
	}
}
