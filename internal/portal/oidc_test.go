package portal

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// TestForgedLogins checks that forged logins are refused without a session.
func TestForgedLogins(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(name string, v any) func(*portaltest.Provider) {
		return func(p *portaltest.Provider) { p.Claims = func(c map[string]any) { c[name] = v } }
	}
	sign := func(f func(p *portaltest.Provider, claims []byte) string) func(*portaltest.Provider) {
		return func(p *portaltest.Provider) { p.Sign = func(claims []byte) string { return f(p, claims) } }
	}
	x := newSite(t)
	for name, tc := range map[string]struct {
		reason string
		forge  func(*portaltest.Provider)
	}{
		"issuer":         {"a token of another provider", claim("iss", "https://evil.example")},
		"audience":       {"a token for another program", claim("aud", "other")},
		"nonce":          {"a token of another login", claim("nonce", "other")},
		"no nonce":       {"a token of no login", claim("nonce", nil)},
		"expired":        {"too late", claim("exp", time.Now().Add(-time.Hour).Unix())},
		"no expiry":      {"valid for ever", claim("exp", nil)},
		"not yet":        {"valid tomorrow", claim("nbf", time.Now().Add(24*time.Hour).Unix())},
		"no user":        {"the claim is empty", claim("preferred_username", "")},
		"user is a list": {"of another type", claim("preferred_username", []string{"alice"})},
		"groups is text": {"of another type", claim("groups", "security")},
		"text as time":   {"of another type", claim("auth_time", "now")},
		"login to come":  {"a login that would stay recent", claim("auth_time", time.Now().Add(time.Hour).Unix())},
		"no time":        {"not after 1970", claim("auth_time", -1)},
		"other key": {
			"signed with another key under the provider's key id",
			sign(func(_ *portaltest.Provider, c []byte) string { return portaltest.Signed(jose.RS256, other, "k", c) }),
		},
		"unknown key": {
			"signed with another key under its own key id",
			sign(func(_ *portaltest.Provider, c []byte) string { return portaltest.Signed(jose.RS256, other, "mine", c) }),
		},
		"HS256": {"the public key as a shared secret", sign(func(p *portaltest.Provider, c []byte) string {
			return portaltest.Signed(jose.HS256, p.PublicKey(), "k", c)
		})},
		"none": {"no signature at all", sign(func(_ *portaltest.Provider, c []byte) string {
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k"}`)) + "." + base64.RawURLEncoding.EncodeToString(c) + "."
		})},
		"changed": {"signed, and changed after that", sign(func(p *portaltest.Provider, c []byte) string {
			parts := strings.Split(portaltest.Signed(jose.RS256, other, "k", c), ".")
			var m map[string]any
			if err := json.Unmarshal(c, &m); err != nil {
				t.Error(err)
			}
			m["preferred_username"] = "dave"
			changed, err := json.Marshal(m)
			if err != nil {
				t.Error(err)
			}
			return parts[0] + "." + base64.RawURLEncoding.EncodeToString(changed) + "." + parts[2]
		})},
		"no token": {"an answer without one", sign(func(*portaltest.Provider, []byte) string { return "" })},
		"nonsense": {"not a token", sign(func(*portaltest.Provider, []byte) string { return "a.b.c" })},
	} {
		t.Run(name, func(t *testing.T) {
			claims, signed := x.provider.Claims, x.provider.Sign
			defer func() { x.provider.Claims, x.provider.Sign = claims, signed }()
			tc.forge(x.provider)
			b := x.as("")
			a := callback(x, b, "alice")
			to, _ := url.Parse(a.Header.Get("Location"))
			if a.Status != http.StatusFound || to.Path != "/login" || to.Query().Get("error") != core.LoginInvalid {
				t.Errorf("%s: %d %s", tc.reason, a.Status, to)
			}
			if me := b.Get("/api/v1/me"); me.Status != http.StatusUnauthorized {
				t.Errorf("%s: there is a session: %s", tc.reason, me.Body)
			}
		})
	}
}

// TestGroupsClaim checks that a missing claim gives no role, and that a large one is not stored.
func TestGroupsClaim(t *testing.T) {
	x := newSite(t)
	huge := make([]string, 5000)
	for i := range huge {
		huge[i] = fmt.Sprintf("group-%d", i)
	}
	for name, tc := range map[string]struct {
		reason string
		claims func(map[string]any)
		status int
	}{
		"missing": {"no role", func(c map[string]any) { delete(c, "groups") }, http.StatusForbidden},
		"null":    {"no role", func(c map[string]any) { c["groups"] = nil }, http.StatusForbidden},
		"huge":    {"no role among them", func(c map[string]any) { c["groups"] = huge }, http.StatusForbidden},
		"role":    {"one among many", func(c map[string]any) { c["groups"] = append(huge, "security") }, http.StatusOK},
		"alike": {
			"a role by its whole name only",
			func(c map[string]any) { c["groups"] = []string{"Security", "security ", "x/security"} }, http.StatusForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			x.provider.Claims = tc.claims
			b := x.as("erin")
			if got := b.Get("/api/v1/ledger").Status; got != tc.status {
				t.Errorf("%s: %d, want %d", tc.reason, got, tc.status)
			}
			id := b.Client.Jar.Cookies(mustParse(t, x.base))[0].Value
			data, ok, err := x.sessionData(t, id)
			if err != nil || !ok || len(data) > 4*core.MaxIDTokenHint {
				t.Errorf("the session keeps %d bytes, %v %v", len(data), ok, err)
			}
		})
	}
}

// TestCodeOfAnotherLogin checks that a used or stolen code gives no session.
func TestCodeOfAnotherLogin(t *testing.T) {
	x := newSite(t)
	first := x.as("")
	back := mustParse(t, x.provider.Login(t, first.Get("/auth/login").Header.Get("Location"), "alice"))
	attacker := x.as("")
	begun := mustParse(t, attacker.Get("/auth/login").Header.Get("Location"))
	for reason, query := range map[string]url.Values{
		"the state of the victim":                 back.Query(),
		"the attacker's state, the victim's code": {"state": begun.Query()["state"], "code": back.Query()["code"]},
		"no state": {"code": back.Query()["code"]},
		"two states, the second is the attacker's": {"state": {back.Query().Get("state"), begun.Query().Get("state")}, "code": back.Query()["code"]},
	} {
		attacker.Get("/auth/callback?" + query.Encode())
		if me := attacker.Get("/api/v1/me"); me.Status != http.StatusUnauthorized {
			t.Errorf("%s: there is a session: %s", reason, me.Body)
		}
	}
}

// TestClientSecretIsReadAgain checks that the client secret can be replaced at the provider and in the portal's file in either order, without a
// restart.
func TestClientSecretIsReadAgain(t *testing.T) {
	x := newSite(t)
	login := func() int {
		b := x.as("")
		back := mustParse(t, x.provider.Login(t, b.Get("/auth/login").Header.Get("Location"), "alice"))
		b.Get("/auth/callback?" + back.RawQuery)
		return b.Get("/api/v1/me").Status
	}
	for _, step := range []struct {
		reason string
		do     func()
		want   int
	}{
		{"the first secret", func() {}, http.StatusOK},
		{"the provider has a new one, the portal not yet", func() { x.provider.ReplaceSecret("newer") }, http.StatusUnauthorized},
		{"the portal has it, too", func() { x.secret.Store(new("newer")) }, http.StatusOK},
		{"the file is gone", func() { x.secret.Store(nil) }, http.StatusUnauthorized},
		{"the file is back", func() { x.secret.Store(new("newer")) }, http.StatusOK},
	} {
		step.do()
		if got := login(); got != step.want {
			t.Errorf("%s: %d, want %d", step.reason, got, step.want)
		}
	}
}
