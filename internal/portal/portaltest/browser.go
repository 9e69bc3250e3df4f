package portaltest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
)

// Browser is an HTTP client that keeps cookies and does not follow redirects.
type Browser struct {
	T      testing.TB
	Base   string
	Client *http.Client
}

// NewBrowser returns a browser without a session.
func NewBrowser(t testing.TB, base string) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Browser{
		T:      t,
		Base:   base,
		Client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// Login logs a user in through the provider, and returns the address to which the portal redirects afterwards.
func (b *Browser) Login(p *Provider, returnTo, user string, groups ...string) string {
	b.T.Helper()
	start := b.Get("/auth/login?returnTo=" + returnTo)
	if start.Status != http.StatusFound {
		b.T.Fatalf("login answered %d: %s", start.Status, start.Body)
	}
	back := b.do(http.MethodGet, p.Login(b.T, start.Header.Get("Location"), user, groups...), nil, nil)
	if back.Status != http.StatusFound {
		b.T.Fatalf("callback answered %d: %s", back.Status, back.Body)
	}
	return back.Header.Get("Location")
}

// Answer is a response of the portal.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Into decodes the body from JSON.
func (a Answer) Into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("%v in %d %s", err, a.Status, a.Body)
	}
}

// Get requests a path.
func (b *Browser) Get(path string) Answer {
	b.T.Helper()
	return b.do(http.MethodGet, b.Base+path, nil, nil)
}

// Post posts JSON with the headers that the portal's own pages send.
func (b *Browser) Post(path string, body any) Answer {
	b.T.Helper()
	return b.PostWith(path, body, http.Header{"X-Acp-Request": {"1"}, "Origin": {b.Base}, "Sec-Fetch-Site": {"same-origin"}})
}

// PostWith posts JSON with other headers.
func (b *Browser) PostWith(path string, body any, h http.Header) Answer {
	b.T.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		b.T.Fatal(err)
	}
	return b.do(http.MethodPost, b.Base+path, data, h)
}

// Delete deletes a path with the headers that the portal's own pages send.
func (b *Browser) Delete(path string) Answer {
	b.T.Helper()
	return b.do(http.MethodDelete, b.Base+path, nil, http.Header{"X-Acp-Request": {"1"}, "Origin": {b.Base}, "Sec-Fetch-Site": {"same-origin"}})
}

// Call sends a request with any method and headers. It sends no body if body is nil.
func (b *Browser) Call(method, path string, body any, h http.Header) Answer {
	b.T.Helper()
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			b.T.Fatal(err)
		}
	}
	return b.do(method, b.Base+path, data, h)
}

func (b *Browser) do(method, address string, body []byte, h http.Header) Answer {
	b.T.Helper()
	if body == nil {
		return b.raw(method, address, nil, h)
	}
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", "application/json")
	return b.raw(method, address, bytes.NewReader(body), h)
}

// Begin sends a request and reads only the status and the code of a problem, so that it also works for streams. Requests that
// write send an empty JSON object.
func (b *Browser) Begin(ctx context.Context, method, path string, h http.Header) (status int, code string) {
	b.T.Helper()
	var body io.Reader
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	if method != http.MethodGet && method != http.MethodDelete {
		body = strings.NewReader("{}")
		h.Set("Content-Type", "application/json")
	}
	req, err := http.NewRequestWithContext(ctx, method, b.Base+path, body)
	if err != nil {
		b.T.Fatal(err)
	}
	req.Header = h
	res, err := b.Client.Do(req)
	if err != nil {
		b.T.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // the rest is not read
	if res.Header.Get("Content-Type") == "application/problem+json" {
		var p struct{ Code string }
		if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
			b.T.Fatal(err)
		}
		code = p.Code
	}
	return res.StatusCode, code
}

// Raw sends a request with a body that need not be JSON.
func (b *Browser) Raw(method, path string, body io.Reader, h http.Header) Answer {
	b.T.Helper()
	return b.raw(method, b.Base+path, body, h)
}

func (b *Browser) raw(method, address string, body io.Reader, h http.Header) Answer {
	b.T.Helper()
	req, err := http.NewRequestWithContext(b.T.Context(), method, address, body)
	if err != nil {
		b.T.Fatal(err)
	}
	for k, v := range h {
		req.Header[k] = v
	}
	res, err := b.Client.Do(req)
	if err != nil {
		b.T.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // read to its end below
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.T.Fatal(err)
	}
	return Answer{Status: res.StatusCode, Header: res.Header, Body: data}
}
