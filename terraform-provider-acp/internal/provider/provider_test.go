package provider

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portalclient"
)

const secret = "acp_7c9e6679f7425d2dbe1f"

func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{envAddress, envToken, envCAFile} {
		t.Setenv(name, "")
	}
}

func TestConfiguration(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		config      values
		environment map[string]string
		want        string // "" if it is accepted
	}{
		"all":              {config: values{"address": "https://acp.example.com", "token": secret, "request_timeout": "5s", "max_retries": 2}},
		"environment":      {environment: map[string]string{envAddress: "https://acp.example.com", envToken: secret}},
		"local":            {config: values{"address": "http://127.0.0.1:8080", "token": secret}},
		"nothing":          {want: envAddress},
		"no token":         {config: values{"address": "https://acp.example.com"}, want: envToken},
		"plain HTTP":       {config: values{"address": "http://acp.example.com", "token": secret}, want: "only over https"},
		"a password in it": {config: values{"address": "https://u:p@acp.example.com", "token": secret}, want: "not an address"},
		"line break":       {config: values{"address": "https://acp.example.com", "token": secret + "\n"}, want: "without spaces"},
		"no CA file":       {config: values{"address": "https://acp.example.com", "token": secret, "ca_file": "/does/not/exist"}, want: "no such file"},
		"no certificate":   {config: values{"address": "https://acp.example.com", "token": secret, "ca_file": empty}, want: "no certificate in PEM"},
		"CA is a folder":   {config: values{"address": "https://acp.example.com", "token": secret, "ca_file": t.TempDir()}, want: "is not a file"},
		"too many retries": {config: values{"address": "https://acp.example.com", "token": secret, "max_retries": 1000}, want: "from 0 to 10"},
		"no time":          {config: values{"address": "https://acp.example.com", "token": secret, "request_timeout": "soon"}, want: "not a time"},
		"CA by environment": {config: values{"address": "https://acp.example.com", "token": secret},
			environment: map[string]string{envCAFile: empty}, want: "no certificate in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnvironment(t)
			for k, v := range tc.environment {
				t.Setenv(k, v)
			}
			_, s := configuredCore(t, tc.config)
			if s.failed != (tc.want != "") || !strings.Contains(s.text, tc.want) {
				t.Errorf("got %q, want %q", s.text, tc.want)
			}
			if strings.Contains(s.text, secret) {
				t.Errorf("the token is in a message: %q", s.text)
			}
		})
	}
}

// answers is a portal that gives prepared answers, and the last of them again.
type answers struct {
	*httptest.Server
	calls atomic.Int64
	last  atomic.Pointer[http.Request]
	keys  []string
}

func newAnswers(t *testing.T, tls bool, of ...func(http.ResponseWriter)) *answers {
	t.Helper()
	a := &answers{}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(a.calls.Add(1))
		a.last.Store(r)
		a.keys = append(a.keys, r.Header.Get("Idempotency-Key"))
		_, _ = io.Copy(io.Discard, r.Body) // a handler that does not read the body may answer before it is sent
		of[min(n, len(of))-1](w)
	})
	if tls {
		a.Server = httptest.NewTLSServer(h)
	} else {
		a.Server = httptest.NewServer(h)
	}
	t.Cleanup(a.Close)
	return a
}

func refuse(status int, code, after string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/problem+json")
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).
			Encode(portalclient.Problem{Code: code, Status: status, Title: code, Message: message.Message{Text: "Problem " + code}})
		// the test reads what arrives
	}
}

func accept(body any) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body) // the test reads what arrives
	}
}

func TestRetries(t *testing.T) {
	application := accept(portalclient.Application{Id: "a", Name: "n", Title: "A"})
	for name, tc := range map[string]struct {
		of    []func(http.ResponseWriter)
		calls int64
		want  string
	}{
		"busy":         {[]func(http.ResponseWriter){refuse(429, "rate-limited", "0"), refuse(503, "unavailable", ""), application}, 3, ""},
		"always busy":  {[]func(http.ResponseWriter){refuse(429, "rate-limited", "0")}, 3, "Problem rate-limited"},
		"forbidden":    {[]func(http.ResponseWriter){refuse(403, "forbidden", "")}, 1, "Problem forbidden"},
		"bad token":    {[]func(http.ResponseWriter){refuse(401, "unauthenticated", "")}, 1, "create a new one on the page Profile"},
		"scope":        {[]func(http.ResponseWriter){refuse(403, "scope", "")}, 1, "Create a token with this scope"},
		"not a portal": {[]func(http.ResponseWriter){func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) }}, 1, "not what an ACP portal says"},
		"another place": {
			[]func(http.ResponseWriter){func(w http.ResponseWriter) { w.Header().Set("Location", "/elsewhere"); w.WriteHeader(http.StatusFound) }},
			1,
			"not what an ACP portal says",
		},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnvironment(t)
			a := newAnswers(t, false, tc.of...)
			c := newCore(t, values{"address": a.URL, "token": secret, "max_retries": 2})
			got, s := c.data("acp_application", values{"id": "a b/c"})
			if s.failed != (tc.want != "") || !strings.Contains(s.text, tc.want) || a.calls.Load() != tc.calls {
				t.Errorf("%d calls, %q %v", a.calls.Load(), s.text, got)
			}
			r := a.last.Load()
			if r.Header.Get("Authorization") != "Bearer "+secret || r.Header.Get("User-Agent") != "terraform-provider-acp/test" ||
				r.URL.EscapedPath() != "/api/v1/applications/a%20b%2Fc" {
				t.Errorf("sent %v to %s", r.Header, r.URL.EscapedPath())
			}
			if strings.Contains(s.text, secret) {
				t.Errorf("the token is in a message: %q", s.text)
			}
		})
	}
}

// TestRequestIsSubmittedOnce: an answer that is lost must not make a second ticket.
func TestRequestIsSubmittedOnce(t *testing.T) {
	clearEnvironment(t)
	a := newAnswers(t, false, refuse(500, "outcome-unknown", ""), accept(portalclient.Ticket{Id: "T-7", State: portalclient.TicketStatePending}))
	c := newCore(t, values{"address": a.URL, "token": secret})
	r := c.resource("acp_access_request")
	if s := r.apply(values{"application": "a", "resource": "r", "actions": []string{"x:y"}, "reason": "needed"}); s.failed {
		t.Fatal(s.text)
	}
	if len(a.keys) != 2 || len(a.keys[0]) < 8 || a.keys[0] != a.keys[1] {
		t.Errorf("the idempotency keys of two attempts: %q", a.keys)
	}
}

// TestWithdrawalIsNotRepeatedBlindly: a call without an idempotency key is repeated only if the portal changed nothing.
func TestWithdrawalIsNotRepeatedBlindly(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		repeatable bool
		want       bool
	}{
		"rate-limited":            {429, false, true},
		"unavailable":             {503, false, true},
		"internal":                {500, false, false},
		"gateway":                 {504, false, false},
		"internal, repeatable":    {500, true, true},
		"refused, repeatable":     {409, true, false},
		"not allowed, repeatable": {403, true, false},
	} {
		if got := retries(tc.repeatable, &http.Response{StatusCode: tc.status}, nil); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if retries(false, nil, io.ErrUnexpectedEOF) || !retries(true, nil, io.ErrUnexpectedEOF) {
		t.Error("after a lost connection only what can be repeated is repeated")
	}
}

func TestBackoffIsBounded(t *testing.T) {
	answer := func(after string) *http.Response { return &http.Response{Header: http.Header{"Retry-After": {after}}} }
	for name, tc := range map[string]struct {
		resp    *http.Response
		attempt int
		want    time.Duration
	}{
		"no answer":       {nil, 0, time.Second},
		"it grows":        {nil, 3, 8 * time.Second},
		"up to a limit":   {nil, 63, time.Minute},
		"as told":         {answer("7"), 0, 7 * time.Second},
		"told too long":   {answer("86400"), 0, time.Minute},
		"told too short":  {answer("0"), 0, time.Second},
		"told no number":  {answer("tomorrow"), 1, 2 * time.Second},
		"told a negative": {answer("-5"), 1, 2 * time.Second},
	} {
		if got := backoff(minRetryWait, maxRetryWait, tc.attempt, tc.resp); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestCertificateAuthorities(t *testing.T) {
	clearEnvironment(t)
	a := newAnswers(t, true, accept(portalclient.Application{Id: "a", Name: "n", Title: "A"}))
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, s := newCore(t, values{"address": a.URL, "token": secret, "ca_file": file}).data("acp_application", values{"id": "a"}); s.failed {
		t.Errorf("with the file: %s", s.text)
	}
	if _, s := newCore(t, values{"address": a.URL, "token": secret}).data("acp_application", values{"id": "a"}); !s.failed || a.calls.Load() != 1 {
		t.Errorf("an unknown authority must be refused at once: %s", s.text)
	}
}

// TestTextOfPeopleIsHarmless: a comment must not control the terminal of those who run Terraform.
func TestTextOfPeopleIsHarmless(t *testing.T) {
	clearEnvironment(t)
	comment, step := "no\x1b[2J\u202e way", "leader"
	a := newAnswers(
		t,
		false,
		accept(portalclient.Ticket{Id: "T-7", State: portalclient.TicketStateRejected, Events: []portalclient.Event{{Kind: portalclient.EventKindStepRejected,
			Actor: &portalclient.Person{Id: "carol", DisplayName: "Carol\x1b[1m"}, Step: &step, Comment: &comment}}}),
	)
	_, s := newCore(t, values{"address": a.URL, "token": secret}).data("acp_ticket", values{"id": "T-7", "wait_for": "approved"})
	if !s.failed || strings.ContainsAny(s.text, "\x1b\u202e") || !strings.Contains(s.text, "(carol)") || !strings.Contains(s.text, a.URL+"/tickets/T-7") {
		t.Errorf("%q", s.text)
	}
}

func TestWrongArguments(t *testing.T) {
	clearEnvironment(t)
	c := newCore(t, values{"address": "https://acp.example.com", "token": secret})
	base := values{"application": "a", "resource": "r", "actions": []string{"x:y"}, "reason": "needed"}
	for name, tc := range map[string]struct {
		change values
		want   string
	}{
		"state":    {values{"wait_for": "forever"}, "one of submitted, approved, realized"},
		"too long": {values{"duration": "400d"}, "5m0s to 366d"},
		"no time":  {values{"duration": "a while"}, "not a time"},
		"blank":    {values{"reason": "  "}, "1 to 2000 characters"},
		"timeout":  {values{"timeout": "1ms"}, "positive number of seconds"},
	} {
		config := values{}
		for k, v := range base {
			config[k] = v
		}
		for k, v := range tc.change {
			config[k] = v
		}
		if p := c.resource("acp_access_request").plan(config); !p.failed || !strings.Contains(p.text, tc.want) {
			t.Errorf("%s: %q", name, p.text)
		}
	}
	for _, id := range []string{"", "42", "T-0", "T-01", "T-1/../me", "T-9999999999999"} {
		if s := c.resource("acp_access_request").imports(id); !s.failed || !strings.Contains(s.text, "not the id of a ticket") {
			t.Errorf("%q: %q", id, s.text)
		}
	}
	for name, spec := range map[string]string{"a list": "[1]", "nothing": " ", "aliases": "a: &x [1]\nb: *x", "two": "a: 1\n---\nb: 1", "twice": "a: 1\na: 2",
		"large": "a: " + strings.Repeat("x", maxSpec)} {
		p := c.resource("acp_resource_class").plan(values{"name": "c", "spec": spec, "reason": "needed"})
		if !p.failed || !strings.Contains(p.text, "The spec cannot be used") {
			t.Errorf("%s: %q", name, p.text)
		}
	}
}

func FuzzSpan(f *testing.F) {
	for _, s := range []string{"", "8h", "30d", "12w", "-1h", "d", "1.5d", "99999999999999999d", "1ns"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := parseSpan(s)
		if err != nil {
			return
		}
		if d < time.Second || d%time.Second != 0 {
			t.Errorf("%q gives %s", s, d)
		}
		if again, err := parseSpan(formatSpan(d)); d < maxDuration && (err != nil || again != d) {
			t.Errorf("%q is %s and becomes %s: %v", s, d, again, err)
		}
	})
}

func FuzzSpec(f *testing.F) {
	for _, s := range []string{"", "a: 1", `{"a": [1, {"b": null}]}`, "a: &x 1\nb: *x", "? [a]\n: b", "1: 2", "a: !!binary x", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		data, err := specJSON(s)
		if err != nil {
			return
		}
		if again, err := specJSON(data); len(data) <= maxSpec && (err != nil || again != data) {
			t.Errorf("%q becomes %s, and that becomes %s: %v", s, data, again, err)
		}
	})
}

func FuzzTicketID(f *testing.F) {
	for _, s := range []string{"T-1", "T-0", "T-+1", "T-1/x", "t-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if checkTicketID(s) == nil && (len(s) > 14 || strings.Trim(s[2:], "0123456789") != "") {
			t.Errorf("%q is accepted", s)
		}
	})
}
