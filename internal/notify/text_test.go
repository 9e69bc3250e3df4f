package notify

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

func writer(t testing.TB) *Renderer {
	t.Helper()
	u, err := url.Parse("https://acp.example.com/base")
	if err != nil {
		t.Fatal(err)
	}
	return &Renderer{Portal: u}
}

func facts(event string) Facts {
	return Facts{Event: event, Actor: "Li Na", ActorFor: "Zhao", Requester: "Wang Lei", For: "Bob", Step: "owner", Reason: "because", Comment: "hm",
		Items: []About{{Application: "orders", Resource: "cache", Actions: []string{"redis:connect"}}}, Until: start, Begin: start}
}

// TestEveryKindHasMessages renders every kind in every language, for every event that causes it, with and without optional facts.
func TestEveryKindHasMessages(t *testing.T) {
	unknown := ContentOf(Message{Kind: "gossip", Ticket: 7}).Title.Code
	if unknown != message.NotificationUnknownTitle("").Code {
		t.Errorf("a notification of an unknown kind has the title %s", unknown)
	}
	listed := map[Kind][]string{}
	for _, k := range kindsAndEvents {
		listed[k.kind] = k.events
	}
	for _, kind := range Kinds() {
		if len(listed[kind]) == 0 {
			t.Errorf("kindsAndEvents does not have %s", kind)
		}
		for event := range messagesByKind[kind] {
			if event != "" && !slices.Contains(listed[kind], event) {
				t.Errorf("kindsAndEvents does not have %s/%s", kind, event)
			}
		}
		for _, event := range listed[kind] {
			for _, f := range []Facts{facts(event), {Event: event}} {
				m := Message{Kind: kind, Ticket: 7, Facts: f}
				if event != "other" && ContentOf(m).Title.Code == unknown {
					t.Errorf("%s/%s has no messages", kind, event)
				}
				en, zh := writer(t).Render(m, Preferences{Language: English}), writer(t).Render(m, Preferences{Language: Chinese})
				if en.Title == "" || en.Body == "" || en.Title == zh.Title || en.Body == zh.Body {
					t.Errorf("%s/%s: a text is empty or not translated: %+v, %+v", kind, event, en, zh)
				}
			}
		}
	}
}

// TestEveryEventIsListed checks that kindsAndEvents has the kinds that people get for each event of tickets, resources and access reviews.
func TestEveryEventIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, k := range kindsAndEvents {
		for _, event := range k.events {
			listed[string(k.kind)+"/"+event] = true
		}
	}
	for _, event := range constants(t, "../approval/event.go") {
		for _, breakGlass := range []bool{false, true} {
			x := ticket("cache")
			x.BreakGlass, x.Items[0].Adopt = breakGlass, true
			x.Events = append(x.Events, approval.Event{Kind: approval.EventKind(event), Actor: "leader", Step: "owner", At: start})
			for _, m := range MessagesForTicket(x, len(x.Events)-1, len(x.Events), company{}) {
				if key := string(m.Kind) + "/" + m.Facts.Event; m.Person != "" && !listed[key] {
					t.Errorf("people get %s, which kindsAndEvents does not have", key)
				}
			}
		}
	}
	for _, event := range constants(t, "resourceevent.go") {
		if !listed[string(KindRollout)+"/"+event] && !listed[string(KindAccessReview)+"/"+event] {
			t.Errorf("kindsAndEvents does not have the event %s", event)
		}
	}
}

// constants returns the values of the constants of a file whose names begin with Event.
func constants(t *testing.T, path string) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Event") {
			return true
		}
		value, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		text, err := strconv.Unquote(value.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
		return true
	})
	if len(out) == 0 {
		t.Fatalf("%s has no constant of an event", path)
	}
	return out
}

func TestTextOfAMessage(t *testing.T) {
	w := writer(t)
	m := Message{Kind: KindNeeded, Ticket: 7, Facts: facts("submitted")}
	m.Facts.Comment, m.Facts.Actor, m.Facts.For = "", "", ""
	got := w.Render(m, Preferences{})
	want := Text{Title: "T-7: Wang Lei requests your decision: orders → cache (redis:connect)", Link: "https://acp.example.com/base/tickets/T-7",
		Body: "Wang Lei submitted this request. The step \"owner\" waits for you.\n\n- orders → cache (redis:connect)\n\nReason: because\n"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	m.Kind = KindExpires
	for zone, says := range map[string]string{"": "2026-03-02 10:00 UTC", "Asia/Shanghai": "2026-03-02 18:00 CST", "Nowhere/Else": "2026-03-02 10:00 UTC"} {
		if got := w.Render(m, Preferences{TimeZone: zone}); !strings.Contains(got.Title, says) {
			t.Errorf("%s: got %+v, want the person's time zone", zone, got)
		}
	}
	m.Facts.Items, m.Facts.More = append(m.Facts.Items, About{Object: "ProtectedResource/cache", From: "Audit", To: "Enforce"}), 3
	got = w.Render(m, Preferences{})
	if !strings.Contains(got.Title, "(redis:connect) and 4 more") ||
		!strings.Contains(got.Body, "- ProtectedResource/cache: Audit → Enforce\n- and 3 more\n") {
		t.Errorf("many items: got %+v", got)
	}
}

// TestUserTextIsNotInterpreted verifies that users' texts cannot begin a header or line, and that templates in them are not
// executed.
func TestUserTextIsNotInterpreted(t *testing.T) {
	w := writer(t)
	for _, evil := range []string{
		"a\r\nBcc: eve@example.com", "a\u2028b\u0085c", "{{.ID}}{{call .X}}",
		"\x00\x1b[31mred", "\u202eevil", "\xff\xfe", strings.Repeat("长", 5000),
	} {
		f := facts("comment")
		f.Actor, f.Requester, f.Comment, f.Reason, f.Step = evil, evil, evil, evil, evil
		f.Items = []About{{Application: evil, Resource: evil}}
		for _, k := range Kinds() {
			got := w.Render(Message{Kind: k, Ticket: 7, Facts: f}, Preferences{})
			if strings.ContainsAny(got.Title, "\r\n\x00\x1b\u0085\u2028\u202e") || len([]rune(got.Title)) > 200 || got.Title != Line(got.Title) {
				t.Errorf("got title %q, want one line", got.Title)
			}
			if strings.ContainsAny(got.Body, "\r\x00\x1b\u0085\u2028\u202e") || strings.Contains(got.Body, "\nBcc") || len([]rune(got.Body)) > 15000 {
				t.Errorf("got body %q, want no additional lines", got.Body)
			}
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\r\nb")
	f.Fuzz(func(t *testing.T, s string) {
		got := Line(s)
		if strings.ContainsAny(got, "\r\n\t\x00") || Line(got) != got {
			t.Errorf("Line(%q): got %q", s, got)
		}
	})
}

func TestDigest(t *testing.T) {
	w := writer(t)
	one := Text{Title: "one", Body: "1", Link: "l"}
	if d := cmp.Diff(one, w.Digest([]Text{one}, Preferences{})); d != "" {
		t.Errorf("a single text was changed: %s", d)
	}
	got := w.Digest([]Text{one, {Title: "two", Link: "m"}}, Preferences{})
	if d := cmp.Diff(Text{Title: "ACP: 2 news", Body: "* one\n  l\n\n* two\n  m\n", Link: "https://acp.example.com/base"}, got); d != "" {
		t.Error(d)
	}
}

func TestPreferences(t *testing.T) {
	p := Preferences{Choices: map[Channel]map[Kind]Timing{ChannelMail: {KindNeeded: Digest}, ChannelInbox: {KindNeeded: Off}}}
	for _, tc := range []struct {
		reason string
		c      Channel
		k      Kind
		want   Timing
	}{
		{"chosen", ChannelMail, KindNeeded, Digest},
		{"not chosen", ChannelMail, KindBreakGlass, Immediately},
		{"the inbox has everything", ChannelInbox, KindNeeded, Immediately},
		{"no such channel", "pigeon", KindNeeded, Off},
		{"a kind that is not known yet", ChannelMail, "gossip", Off},
	} {
		if got := p.Timing(tc.c, tc.k); got != tc.want {
			t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
		}
	}
	for c, kinds := range (Preferences{}).Table([]Channel{ChannelMail, ChannelSlack}) {
		if len(kinds) != len(Kinds()) || len(defaultChoices[c]) != len(Kinds()) {
			t.Errorf("%s has no default for some kind", c)
		}
	}
	for field, bad := range map[string]Preferences{
		"language": {Language: "fr"}, "timeZone": {TimeZone: "Mars/Olympus"}, "digestHour": {DigestHour: new(24)},
		"choices": {Choices: map[Channel]map[Kind]Timing{"pigeon": {}}},
	} {
		var invalid *InvalidError
		if err := bad.Validate(); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	for _, bad := range []Preferences{{TimeZone: "Local"}, {TimeZone: "../../etc/passwd"}, {TimeZone: strings.Repeat("x", 99)},
		{Choices: map[Channel]map[Kind]Timing{ChannelMail: {"gossip": Immediately}}},
		{Choices: map[Channel]map[Kind]Timing{ChannelMail: {KindNeeded: "soon"}}}} {
		if err := bad.Validate(); err == nil {
			t.Errorf("Validate accepted %+v", bad)
		}
	}
	fine := Preferences{Language: Chinese, TimeZone: "Asia/Shanghai", DigestHour: new(7), Choices: map[Channel]map[Kind]Timing{ChannelSlack: {KindNeeded: Off}}}
	if err := fine.Validate(); err != nil {
		t.Error(err)
	}
}

func TestNextDigest(t *testing.T) {
	at := func(s string) time.Time {
		x, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, tc := range []struct{ reason, zone, now, want string }{
		{"later today", "", "2026-03-02T08:59:59Z", "2026-03-02T09:00:00Z"},
		{"tomorrow", "", "2026-03-02T09:00:00Z", "2026-03-03T09:00:00Z"},
		{"the person's morning", "Asia/Shanghai", "2026-03-02T00:30:00Z", "2026-03-02T01:00:00Z"},
		{"over the end of a month", "", "2026-02-28T10:00:00Z", "2026-03-01T09:00:00Z"},
		{"midnight", "midnight", "2026-03-02T10:00:00Z", "2026-03-03T00:00:00Z"},
		{"a clock that is put forward", "Europe/Berlin", "2026-03-28T10:00:00Z", "2026-03-29T07:00:00Z"},
	} {
		p := Preferences{TimeZone: tc.zone}
		if tc.zone == "midnight" {
			p = Preferences{DigestHour: new(0)}
		}
		if got := p.NextDigest(at(tc.now)); !got.Equal(at(tc.want)) {
			t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
		}
	}
}

func TestUnnotifiedEventsIgnoreProgressInMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		events      []approval.Event
		first, last int
		ok          bool
	}{
		"stored": {"nothing new", []approval.Event{{Kind: approval.EventSubmitted, Saved: true}}, 1, 1, false},
		"new": {
			"from the first new one on",
			[]approval.Event{{Kind: approval.EventSubmitted, Saved: true}, {Kind: approval.EventStepApproved}, {Kind: approval.EventApproved}},
			1, 3, true,
		},
		"progress": {"members' progress is no news", []approval.Event{{Kind: approval.EventCompiled}, {Kind: approval.EventRealized}}, 0, 2, false},
		"both":     {"but what comes with it is", []approval.Event{{Kind: approval.EventRealized}, {Kind: approval.EventEffective}}, 0, 2, true},
	} {
		first, last, ok := UnnotifiedEvents(&approval.Ticket{Events: tc.events})
		if ok != tc.ok || ok && (first != tc.first || last != tc.last) {
			t.Errorf("%s: %s: %d %d %v", name, tc.reason, first, last, ok)
		}
	}
}

// TestReasonOfThePortal checks that why the portal did something is in the person's language, on one line.
func TestReasonOfThePortal(t *testing.T) {
	w := writer(t)
	m := Message{Kind: KindFailed, Ticket: 7, Facts: facts("failed")}
	m.Facts.Reason, m.Facts.Comment = "", ""
	m.Facts.Message = message.TicketHostRefusedChange(message.Verbatim("no\r\nBcc: eve@example.com"))
	for language, line := range map[string]string{
		English: "Comment: The host cluster refused the change: no Bcc: eve@example.com\n",
		Chinese: "备注：主集群拒绝了这项变更：no Bcc: eve@example.com\n",
	} {
		if got := w.Render(m, Preferences{Language: language}); !strings.HasSuffix(got.Body, "\n\n"+line) {
			t.Errorf("%s: %q; want the line %q", language, got.Body, line)
		}
	}
}
