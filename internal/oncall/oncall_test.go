package oncall

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

var monday = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)

func company() *catalog.Catalog {
	return catalog.Build([]catalog.Record{
		{Kind: catalog.KindPerson, ID: "ann", Email: "Ann@Example.com"},
		{Kind: catalog.KindPerson, ID: "bob", Email: "bob@example.com"},
		{Kind: catalog.KindPerson, ID: "cem", Email: "cem@example.com"},
		{Kind: catalog.KindPerson, ID: "twin1", Email: "twin@example.com"},
		{Kind: catalog.KindPerson, ID: "twin2", Email: "TWIN@example.com"},
		{Kind: catalog.KindPerson, ID: "nomail"},
	})
}

// desk is a Service with a clock, and a configuration file that can be replaced.
type desk struct {
	*Service
	t   *testing.T
	now time.Time
	dir string
	log strings.Builder
}

func open(t *testing.T, config string) *desk {
	t.Helper()
	d := &desk{t: t, now: monday, dir: t.TempDir()}
	d.write("token", "s3cret\n")
	d.write("on-call.yaml", config)
	c := company()
	s, err := New(Config{File: filepath.Join(d.dir, "on-call.yaml"), Catalog: func() *catalog.Catalog { return c }, Now: func() time.Time { return d.now },
		Log: slog.New(slog.NewTextHandler(&d.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	d.Service = s
	return d
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(strings.ReplaceAll(text, "DIR", d.dir)), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// says is an answer in one line.
func says(d approval.Duty) string {
	if !d.Known {
		return "? " + d.Reason.Code
	}
	return strings.TrimSpace(fmt.Sprintf("%s +%d", strings.Join(d.People, " "), d.Unlisted))
}

const fromFile = `
schedules:
  shop:
    tiers:
    - rotation: {people: [ann@example.com, bob@example.com], start: "2026-01-05T09:00", timeZone: Europe/Berlin, days: 7}
      intervals:
      - {people: [cem@example.com], from: 2026-12-24T08:00:00Z, to: 2026-12-26T08:00:00Z}
      - {people: [" BOB@example.com", stranger@example.com], from: 2026-12-25T08:00:00Z, to: 2026-12-27T08:00:00Z}
    - intervals:
      - {people: [twin@example.com, ""], from: 2026-01-01T00:00:00Z, to: 2027-01-01T00:00:00Z}
`

func TestFile(t *testing.T) {
	d := open(t, fromFile)
	for _, tc := range []struct {
		reason, schedule string
		tier             int
		at               string
		want             string
	}{
		{"before the rotation", "shop", 1, "2026-01-05T07:59:59Z", "+0"},
		{"its start, in Berlin", "shop", 1, "2026-01-05T08:00:00Z", "ann +0"},
		{"the last second", "shop", 1, "2026-01-12T07:59:59Z", "ann +0"},
		{"the next person", "shop", 1, "2026-01-12T08:00:00Z", "bob +0"},
		{"the first one again", "shop", 1, "2026-01-19T08:00:00Z", "ann +0"},
		{"summer time: 9 in Berlin is 7 in UTC", "shop", 1, "2026-03-30T06:59:59Z", "bob +0"},
		{"summer time, after the change", "shop", 1, "2026-03-30T07:00:00Z", "ann +0"},
		{"an interval in place of the rotation", "shop", 1, "2026-12-24T08:00:00Z", "cem +0"},
		{"two intervals, and somebody whom the catalog does not have", "shop", 1, "2026-12-25T12:00:00Z", "bob cem +1"},
		{"the end is exclusive", "shop", 1, "2026-12-26T08:00:00Z", "bob +1"},
		{"an address of two people, or none, names nobody", "shop", 2, "2026-02-01T00:00:00Z", "+2"},
		{"no tier", "shop", 3, "2026-02-01T00:00:00Z", "? on-call.no-tier"},
		{"no tier of that number", "shop", 0, "2026-02-01T00:00:00Z", "? on-call.no-tier"},
		{"no schedule", "shops", 1, "2026-02-01T00:00:00Z", "? on-call.not-configured"},
	} {
		var err error
		if d.now, err = time.Parse(time.RFC3339, tc.at); err != nil {
			t.Fatal(err)
		}
		got := d.OnCall(tc.schedule, tc.tier)
		if says(got) != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, says(got), tc.want)
		}
		if got.Missing == got.Known {
			t.Errorf("%s: missing %v: nothing but a change of the file tells who is on call in what it does not have", tc.reason, got.Missing)
		}
	}
}

func TestReload(t *testing.T) {
	file := func(who string) string {
		return "schedules: {shop: {tiers: [{rotation: {people: [" + who + `], start: "2026-01-01T00:00", days: 1}}]}}`
	}
	d := open(t, file("ann@example.com"))
	is := func(want string) {
		t.Helper()
		d.Refresh(t.Context())
		if got := says(d.OnCall("shop", 1)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	is("ann +0")
	d.write("on-call.yaml", file("bob@example.com"))
	is("bob +0")
	d.write("on-call.yaml", "schedules: {shop: {}}")
	is("bob +0") // and says why
	is("bob +0")
	if n := strings.Count(d.log.String(), "cannot be used"); n != 1 {
		t.Errorf("the file is reported %d times:\n%s", n, d.log.String())
	}
	d.write("on-call.yaml", strings.Replace(file("bob@example.com"), "shop", "other", 1))
	is("? on-call.not-configured")
}

// standIn is PagerDuty or Opsgenie. It answers what the test says.
func standIn(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

const pagerDutyConfig = `
every: 1m
maxAge: 5m
schedules:
  shop: {pagerDuty: {escalationPolicy: PT20YPA, tokenFile: DIR/token, url: "URL"}}
`

// pagerDutyEntry is an entry of the shape in PagerDuty's documentation.
func pagerDutyEntry(policy string, level int, email, start, end string) map[string]any {
	at := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{
		"escalation_policy": map[string]any{
			"id":       policy,
			"type":     "escalation_policy_reference",
			"summary":  "Shop",
			"html_url": "https://example.pagerduty.com",
		},
		"escalation_level": level,
		"schedule":         map[string]any{"id": "PI7DH85", "type": "schedule_reference", "summary": "Daily"},
		"user":             map[string]any{"id": "PT23IWX", "type": "user", "name": "Somebody", "email": email},
		"start":            at(start),
		"end":              at(end),
	}
}

func TestPagerDuty(t *testing.T) {
	url := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.Method != http.MethodGet || r.URL.Path != "/oncalls" || r.Header.Get("Authorization") != "Token token=s3cret" ||
			r.Header.Get("Accept") != "application/vnd.pagerduty+json;version=2" || q.Get("escalation_policy_ids[]") != "PT20YPA" ||
			q.Get("include[]") != "users" || q.Get("limit") != "100" {
			t.Errorf("request %s %s %v", r.Method, r.URL, r.Header)
		}
		page := map[string]any{"limit": 100, "offset": 0, "more": true, "total": nil, "oncalls": []any{
			pagerDutyEntry("PT20YPA", 1, "ANN@example.com", "2026-01-05T08:00:00Z", "2026-01-06T08:00:00Z"),
			pagerDutyEntry("PT20YPA", 2, "cem@example.com", "", ""),
			pagerDutyEntry("PT20YPA", 1, "ann@example.com", "", ""), // by another schedule, too
			pagerDutyEntry("PT20YPA", 99, "bob@example.com", "", ""),
			pagerDutyEntry("POTHER", 1, "bob@example.com", "", ""), // not asked for
			pagerDutyEntry("PT20YPA", 1, "bob@example.com", "2026-01-04T08:00:00Z", "2026-01-05T09:00:00Z"),
			pagerDutyEntry("PT20YPA", 1, "bob@example.com", "2026-01-05T09:00:01Z", ""),
		}}
		if q.Get("offset") == "100" {
			page = map[string]any{"more": false, "oncalls": []any{
				pagerDutyEntry("PT20YPA", 1, "stranger@example.com", "", ""),
				map[string]any{"escalation_policy": map[string]any{"id": "PT20YPA"}, "escalation_level": 1, "user": map[string]any{"type": "user_reference"}},
			}}
		}
		_ = json.NewEncoder(w).Encode(page)
	})
	d := open(t, strings.Replace(pagerDutyConfig, "URL", url, 1))
	if got := d.OnCall("shop", 1); says(got) != "? on-call.no-answer" || got.Missing {
		t.Errorf("before the first answer: %+v", got)
	}
	d.Refresh(t.Context())
	for tier, want := range map[int]string{1: "ann +2", 2: "cem +0", 3: "? on-call.no-tier"} {
		if got := d.OnCall("shop", tier); says(got) != want || got.Missing { // the source may name people of every tier later
			t.Errorf("tier %d: got %+v, want %q\n%s", tier, got, want, d.log.String())
		}
	}
}

func TestOpsgenie(t *testing.T) {
	url := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "GenieKey s3cret" || q.Get("flat") != "true" ||
			q.Get("scheduleIdentifierType") != "name" {
			t.Errorf("request %s %s %v", r.Method, r.URL, r.Header)
		}
		switch r.URL.EscapedPath() {
		case "/v2/schedules/Shop%20first/on-calls":
			_, _ = io.WriteString(
				w,
				`{"data":{"_parent":{"id":"d875-e4c3","name":"Shop first","enabled":true},"onCallRecipients":["bob@example.com","x@example.com"]},
				"took":0.101,"requestId":"ff"}`,
			)
		case "/v2/schedules/Shop%20second/on-calls":
			_, _ = io.WriteString(w, `{"data":{"_parent":{"id":"d875-e4c4","name":"Shop second","enabled":false},"onCallRecipients":["ann@example.com"]}}`)
		default:
			t.Errorf("path %s", r.URL.EscapedPath())
		}
	})
	d := open(t, "schedules: {shop: {opsgenie: {schedules: [Shop first, Shop second], tokenFile: DIR/token, url: \""+url+"\"}}}")
	d.Refresh(t.Context())
	for tier, want := range map[int]string{1: "bob +1", 2: "+0", 3: "? on-call.no-tier"} {
		if got := says(d.OnCall("shop", tier)); got != want {
			t.Errorf("tier %d: got %q, want %q\n%s", tier, got, want, d.log.String())
		}
	}
}

// TestAnswersThatDoNotCount: nobody is known to be on call by an answer that is late, forged or too large.
func TestAnswersThatDoNotCount(t *testing.T) {
	const genie = `schedules: {shop: {opsgenie: {schedules: [Shop], tokenFile: DIR/token, url: "URL"}}}`
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	many, err := json.Marshal(
		map[string]any{"data": map[string]any{"_parent": map[string]any{"name": "Shop"}, "onCallRecipients": make([]string, maxPeople+1)}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		config string
		answer http.HandlerFunc
		log    string
	}{
		"error":         {genie, text(500, "s3cret"), "answered 500"},
		"not permitted": {pagerDutyConfig, text(401, `{"error":{"message":"s3cret"}}`), "answered 401"},
		"too many":      {genie, text(429, ""), "answered 429"},
		"no JSON":       {genie, text(200, "<html>s3cret"), "not the JSON"},
		"other JSON":    {pagerDutyConfig, text(200, `{"oncalls":"s3cret"}`), "not the JSON"},
		"no data":       {genie, text(200, `{}`), "no data"},
		"another one":   {genie, text(200, `{"data":{"_parent":{"id":"x","name":"Other"},"onCallRecipients":["ann@example.com"]}}`), "another schedule"},
		"too large":     {genie, text(200, `{"data":{"onCallRecipients":["`+strings.Repeat("x", maxBody)+`"]}}`), "more than"},
		"many people":   {genie, text(200, string(many)), "more than 100 people"},
		"no end":        {pagerDutyConfig, text(200, `{"more":true,"oncalls":[]}`), "more than 1000 entries"},
		"elsewhere":     {genie, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/stolen", http.StatusFound) }, "redirects"},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, strings.Replace(tc.config, "URL", standIn(t, tc.answer), 1))
			d.Refresh(t.Context())
			if got := says(d.OnCall("shop", 1)); got != "? on-call.no-answer" {
				t.Errorf("got %q", got)
			}
			if log := d.log.String(); !strings.Contains(log, tc.log) || strings.Contains(log, "s3cret") {
				t.Errorf("the log does not say %q, or says too much: %s", tc.log, log)
			}
		})
	}
}

// TestAge: an answer stays in use while its source does not answer, until it is too old.
func TestAge(t *testing.T) {
	var away atomic.Bool
	var requests atomic.Int32
	url := standIn(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"oncalls": []any{pagerDutyEntry("PT20YPA", 1, "ann@example.com", "", "")}})
	})
	d := open(t, strings.Replace(pagerDutyConfig, "URL", url, 1))
	is := func(want string) {
		t.Helper()
		d.Refresh(t.Context())
		if got := says(d.OnCall("shop", 1)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	is("ann +0")
	d.now = d.now.Add(30 * time.Second)
	is("ann +0")
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests in half a minute", n)
	}
	away.Store(true)
	for range 4 {
		d.now = d.now.Add(time.Minute)
		is("ann +0")
	}
	d.now = d.now.Add(time.Minute)
	is("? on-call.no-answer")
	if n := strings.Count(d.log.String(), "could not be read"); n != 1 {
		t.Errorf("reported %d times", n)
	}
	away.Store(false)
	d.now = d.now.Add(time.Minute)
	is("ann +0")
	if !strings.Contains(d.log.String(), "can be read again") {
		t.Error("the log does not say that it can be read again")
	}
	// The answer of a source that the file does not name any more does not count.
	d.write("on-call.yaml", `schedules: {shop: {pagerDuty: {escalationPolicy: POTHER, tokenFile: DIR/token, url: "`+url+`"}}}`)
	is("? on-call.no-tier")
}

// TestReloadKeepsAnswers: a change of another part of the file does not make it unknown who is on call while a source is away.
func TestReloadKeepsAnswers(t *testing.T) {
	var away atomic.Bool
	url := standIn(t, func(w http.ResponseWriter, _ *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"oncalls": []any{pagerDutyEntry("PT20YPA", 1, "ann@example.com", "", "")}})
	})
	config := strings.Replace(pagerDutyConfig, "URL", url, 1)
	d := open(t, config)
	d.Refresh(t.Context())
	away.Store(true)
	for _, tc := range []struct{ reason, config, want string }{
		{"as it was", config, "ann +0"},
		{"a comment", config + "# a comment\n", "ann +0"},
		{"another schedule", config + "  other: {tiers: [{rotation: {people: [bob@example.com], start: \"2026-01-01T00:00\", days: 1}}]}\n", "ann +0"},
		{"another source", strings.Replace(config, "PT20YPA", "POTHER", 1), "? on-call.no-answer"},
		{"the first source again", config, "? on-call.no-answer"},
	} {
		d.write("on-call.yaml", tc.config)
		d.Refresh(t.Context())
		if got := says(d.OnCall("shop", 1)); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

func TestInvalidFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "on-call.yaml")
	for file, text := range map[string]string{"token": "t", "empty": "\n", "two": "a\nb"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tiers := func(t string) string { return "schedules: {shop: {tiers: [" + t + "]}}" }
	pager := func(t string) string { return "schedules: {shop: {pagerDuty: {" + t + "}}}" }
	for reason, tc := range map[string]struct{ text, want string }{
		"nothing":        {"", "schedules"},
		"a typing error": {"schedule: {}", "unknown field"},
		"no source":      {"schedules: {shop: {}}", "either tiers, pagerDuty or opsgenie"},
		"two sources":    {"schedules: {shop: {tiers: [{}], opsgenie: {}}}", "either tiers"},
		"a name":         {"schedules: {'a b': {tiers: [{}]}}", "its name"},
		"an empty tier":  {tiers("{}"), "give a rotation or intervals"},
		"no people":      {tiers(`{rotation: {people: [], start: "2026-01-01T00:00", days: 1}}`), "rotation.people"},
		"no days":        {tiers(`{rotation: {people: [a], start: "2026-01-01T00:00"}}`), "rotation.days"},
		"no start":       {tiers(`{rotation: {people: [a], start: "Monday", days: 1}}`), "rotation.start"},
		"no zone":        {tiers(`{rotation: {people: [a], start: "2026-01-01T00:00", days: 1, timeZone: Atlantis}}`), "Atlantis"},
		"local time":     {tiers(`{rotation: {people: [a], start: "2026-01-01T00:00", days: 1, timeZone: Local}}`), "Local"},
		"an end before":  {tiers(`{intervals: [{people: [a], from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z"}]}`), "after from"},
		"nobody":         {tiers(`{intervals: [{people: [], from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z"}]}`), "people"},
		"no policy":      {pager("tokenFile: DIR/token"), "escalationPolicy"},
		"no token":       {pager("escalationPolicy: P"), "tokenFile"},
		"a token gone":   {pager("escalationPolicy: P, tokenFile: DIR/gone"), "tokenFile"},
		"an empty token": {pager("escalationPolicy: P, tokenFile: DIR/empty"), "in one line"},
		"two lines":      {pager("escalationPolicy: P, tokenFile: DIR/two"), "in one line"},
		"in the clear":   {pager("escalationPolicy: P, tokenFile: DIR/token, url: 'http://example.com'"), "https"},
		"a user":         {pager("escalationPolicy: P, tokenFile: DIR/token, url: 'https://u:p@example.com'"), "https"},
		"identifier":     {"schedules: {shop: {opsgenie: {schedules: [a], identifier: slug, tokenFile: DIR/token}}}", "identifier"},
		"no schedules":   {"schedules: {shop: {opsgenie: {schedules: [], tokenFile: DIR/token}}}", "opsgenie.schedules"},
		"too often":      {"every: 1s\n" + tiers("{}"), "every"},
		"no age":         {"maxAge: 30s\n" + tiers("{}"), "maxAge"},
		"too old":        {"maxAge: 48h\n" + tiers("{}"), "maxAge"},
		"too large":      {strings.Repeat("#", maxFile+1), "more than"},
	} {
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(tc.text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Read(name); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", reason, err, tc.want)
		}
	}
	if _, _, err := Read(filepath.Join(dir, "gone.yaml")); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestDefaults(t *testing.T) {
	f, err := parse([]byte(fromFile))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]time.Duration{time.Minute, 15 * time.Minute}, []time.Duration{f.Every.Duration, f.MaxAge.Duration}); d != "" {
		t.Error(d)
	}
}
