package nodetest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acp-io/acp/playground/internal/demo"
)

// browsers reach the hosts of a cluster through ports of this machine.
type browsers struct {
	portal string
	roots  *x509.CertPool
	mu     sync.Mutex
	ways   map[string]string // HOST:PORT in URLs to HOST:PORT of this machine
}

// via makes an address the way to a host and port.
func (b *browsers) via(host, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ways[host] = address
}

func (b *browsers) dial(ctx context.Context, network, address string) (net.Conn, error) {
	b.mu.Lock()
	to, ok := b.ways[address]
	b.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("there is no way to %s", address)
	}
	return new(net.Dialer).DialContext(ctx, network, to)
}

// person has a session in the portal.
type person struct {
	name   string
	portal string
	http   *http.Client
}

var loginRequest = regexp.MustCompile(`name="request" value="([^"]+)"`)

// login goes the browser's way: portal, provider's form, back to the portal.
func (b *browsers) login(t *testing.T, name string) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: b.dial, TLSClientConfig: &tls.Config{RootCAs: b.roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	p := &person{name: name, portal: b.portal, http: &http.Client{Jar: jar, Timeout: time.Minute, Transport: transport}}
	page, at := p.page(t, http.MethodGet, b.portal+"/auth/login", nil)
	found := loginRequest.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("log in as %s: %s shows no login form: %s", name, at, page)
	}
	form := url.Values{"request": {found[1]}, "username": {name}, "password": {demo.Password}}
	p.page(t, http.MethodPost, at.ResolveReference(&url.URL{Path: "/login"}).String(), form)
	p.must(t, http.MethodGet, "/me", nil, nil)
	return p
}

func (p *person) page(t *testing.T, method, target string, form url.Values) (string, *url.URL) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := p.http.Do(req)
	if err != nil {
		t.Fatalf("log in as %s: %v", p.name, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 400 {
		t.Fatalf("log in as %s: %s %s: %s, %v: %s", p.name, method, res.Request.URL, res.Status, err, body)
	}
	return string(body), res.Request.URL
}

// call does one request of the API; in and out may be nil.
func (p *person) call(ctx context.Context, method, path string, in, out any) error {
	var content io.Reader
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return err
		}
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.portal+"/api/v1"+path, content)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("X-ACP-Request", "1")
	res, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 400 {
		return fmt.Errorf("%s %s as %s: %s: %s", method, path, p.name, res.Status, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

func (p *person) must(t *testing.T, method, path string, in, out any) {
	t.Helper()
	if err := p.call(t.Context(), method, path, in, out); err != nil {
		t.Fatal(err)
	}
}

// ticket is what this test reads of a ticket.
type ticket struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	State   string `json:"state"`
}

// request asks for access.
func (p *person) request(t *testing.T, application, resource string) ticket {
	t.Helper()
	var out ticket
	p.must(t, http.MethodPost, "/tickets", map[string]any{
		"items":  []any{map[string]any{"application": application, "resource": resource, "actions": []string{"redis:connect"}}},
		"reason": "the test of an installation",
	}, &out)
	return out
}

func (p *person) approve(t *testing.T, of ticket) ticket {
	t.Helper()
	p.must(t, http.MethodPost, "/tickets/"+of.ID+"/decision", map[string]any{"decision": "approve", "version": of.Version}, &of)
	return of
}

func (p *person) revoke(t *testing.T, of ticket) {
	t.Helper()
	p.must(t, http.MethodPost, "/tickets/"+of.ID+"/revoke", map[string]any{"reason": "the test of an installation"}, nil)
}

// is returns a check that a ticket has a state.
func (p *person) is(of ticket, state string) func(context.Context) error {
	return func(ctx context.Context) error {
		var now ticket
		if err := p.call(ctx, http.MethodGet, "/tickets/"+of.ID, nil, &now); err != nil {
			return err
		}
		if now.State != state {
			return fmt.Errorf("ticket %s is %s", of.ID, now.State)
		}
		return nil
	}
}
