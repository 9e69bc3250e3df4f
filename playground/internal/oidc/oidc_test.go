package oidc

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"

	"github.com/acp-io/acp/playground/internal/demo"
)

const (
	portalURL = "http://127.0.0.1:1"
	secret    = "the-secret"
	verifier  = "a-verifier-that-is-long-enough-for-the-specification"
)

type provider struct {
	*httptest.Server
	client *http.Client
	now    time.Time
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{now: time.Now()}
	var handler http.Handler
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(p.Close)
	handler, err = NewHandler(Config{
		Issuer: p.URL, PortalURL: portalURL, ClientID: "acp-portal", ClientSecret: secret, Key: key, People: demo.People(),
		Remembered: []string{"bob"},
		Now:        func() time.Time { return p.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.client = &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), portalURL) { // no portal runs; the tests check its URL
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return p
}

func (p *provider) relyingParty(t *testing.T, secret string) rp.RelyingParty {
	t.Helper()
	party, err := rp.NewRelyingPartyOIDC(t.Context(), p.URL, "acp-portal", secret, portalURL+"/auth/callback",
		[]string{"openid", "profile", "email", "groups"}, rp.WithSigningAlgsFromDiscovery(),
		rp.WithVerifierOpts(rp.WithNonce(func(context.Context) string { return "the-nonce" })))
	if err != nil {
		t.Fatalf("discovery: %v", err)
	}
	return party
}

func (p *provider) do(t *testing.T, method, target string, form url.Values) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// begin opens the login page and returns the id of the request.
func (p *provider) begin(t *testing.T, party rp.RelyingParty) string {
	t.Helper()
	challenge := oidc.NewSHACodeChallenge(verifier)
	res, body := p.do(
		t,
		http.MethodGet,
		rp.AuthURL("the-state", party, rp.WithCodeChallenge(challenge), rp.AuthURLOpt(rp.WithURLParam("nonce", "the-nonce"))),
		nil,
	)
	id := regexp.MustCompile(`name="request" value="([^"]+)"`).FindStringSubmatch(body)
	if res.StatusCode != http.StatusOK || id == nil {
		t.Fatalf("login page: %s\n%s", res.Status, body)
	}
	for _, want := range []string{`id="username"`, `id="password"`, "<label for=", "alice"} {
		if !strings.Contains(body, want) {
			t.Errorf("the login page lacks %s", want)
		}
	}
	return id[1]
}

func (p *provider) login(t *testing.T, request, username, password string) (*http.Response, string) {
	t.Helper()
	return p.do(t, http.MethodPost, p.URL+"/login", url.Values{"request": {request}, "username": {username}, "password": {password}})
}

func (p *provider) code(t *testing.T, party rp.RelyingParty) string {
	t.Helper()
	res, body := p.login(t, p.begin(t, party), "alice", demo.Password)
	back, err := url.Parse(res.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(back.String(), portalURL+"/auth/callback?") || back.Query().Get("state") != "the-state" {
		t.Fatalf("after the login: %s to %v\n%s", res.Status, back, body)
	}
	return back.Query().Get("code")
}

func TestLogin(t *testing.T) {
	p := newProvider(t)
	party := p.relyingParty(t, secret)
	code := p.code(t, party)
	tokens, err := rp.CodeExchange[*oidc.IDTokenClaims](t.Context(), code, party, rp.WithCodeVerifier(verifier))
	if err != nil {
		t.Fatalf("exchange the code: %v", err)
	}
	type claims struct {
		Subject  string   `json:"sub"`
		Username string   `json:"preferred_username"`
		Name     string   `json:"name"`
		Email    string   `json:"email"`
		Groups   []string `json:"groups"`
		Nonce    string   `json:"nonce"`
	}
	want := claims{"alice", "alice", "Alice Moreau", "alice@trip.example", []string{"payments"}, "the-nonce"}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(tokens.IDToken, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var got claims
	if err := json.Unmarshal(payload, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims: -want +got\n%s", diff)
	}
	info, err := rp.Userinfo[*oidc.UserInfo](t.Context(), tokens.AccessToken, "Bearer", "alice", party)
	if err != nil || info.PreferredUsername != "alice" {
		t.Errorf("userinfo: %+v, %v", info, err)
	}
	if _, err := rp.CodeExchange[*oidc.IDTokenClaims](t.Context(), code, party, rp.WithCodeVerifier(verifier)); err == nil {
		t.Error("a code must count once")
	}
}

// TestRememberedLogins checks that the login of a person who is remembered is old, unless the client asks for a new one.
func TestRememberedLogins(t *testing.T) {
	p := newProvider(t)
	party := p.relyingParty(t, secret)
	for name, tc := range map[string]struct {
		who    string
		prompt bool
		want   time.Duration
	}{
		"Others":     {"alice", false, 0},
		"Remembered": {"bob", false, rememberedSince},
		"Again":      {"bob", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			options := []rp.AuthURLOpt{rp.WithCodeChallenge(oidc.NewSHACodeChallenge(verifier)), rp.AuthURLOpt(rp.WithURLParam("nonce", "the-nonce"))}
			if tc.prompt {
				options = append(options, rp.AuthURLOpt(rp.WithURLParam("prompt", "login")))
			}
			_, body := p.do(t, http.MethodGet, rp.AuthURL("the-state", party, options...), nil)
			id := regexp.MustCompile(`name="request" value="([^"]+)"`).FindStringSubmatch(body)
			if id == nil {
				t.Fatalf("the login page is %s", body)
			}
			res, _ := p.login(t, id[1], tc.who, demo.Password)
			back, err := url.Parse(res.Header.Get("Location"))
			if err != nil {
				t.Fatal(err)
			}
			tokens, err := rp.CodeExchange[*oidc.IDTokenClaims](t.Context(), back.Query().Get("code"), party, rp.WithCodeVerifier(verifier))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.now.Truncate(time.Second).Sub(tokens.IDTokenClaims.GetAuthTime().Truncate(time.Second)); got != tc.want {
				t.Errorf("the login is %v old, want %v", got, tc.want)
			}
		})
	}
}

func TestExchangeRefusals(t *testing.T) {
	cases := map[string]struct {
		reason, secret, verifier string
	}{
		"WrongVerifier": {"a stolen code is worth nothing without the verifier", secret, "another-verifier-that-is-long-enough-as-well-for-it"},
		"NoVerifier":    {"PKCE cannot be left out once it was begun", secret, ""},
		"WrongSecret":   {"the portal is a confidential client", "guess", verifier},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			code := p.code(t, p.relyingParty(t, secret))
			var opts []rp.CodeExchangeOpt
			if tc.verifier != "" {
				opts = append(opts, rp.WithCodeVerifier(tc.verifier))
			}
			if _, err := rp.CodeExchange[*oidc.IDTokenClaims](t.Context(), code, p.relyingParty(t, tc.secret), opts...); err == nil {
				t.Error(tc.reason)
			}
		})
	}
}

func TestWrongPassword(t *testing.T) {
	for name, who := range map[string][2]string{"Password": {"alice", "wrong"}, "Person": {"mallory", demo.Password}, "Nobody": {"", ""}} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			party := p.relyingParty(t, secret)
			id := p.begin(t, party)
			res, body := p.login(t, id, who[0], who[1])
			if res.StatusCode != http.StatusUnauthorized || !strings.Contains(body, `role="alert"`) || !strings.Contains(body, "do not belong together") {
				t.Fatalf("%s\n%s", res.Status, body)
			}
			// The page can be submitted again.
			if res, _ := p.login(t, id, "alice", demo.Password); !strings.HasPrefix(res.Header.Get("Location"), portalURL) {
				t.Errorf("the second try: %s", res.Status)
			}
		})
	}
}

func TestUnknownAndOldLogins(t *testing.T) {
	p := newProvider(t)
	party := p.relyingParty(t, secret)
	if res, body := p.login(t, "no-such-request", "alice", demo.Password); res.StatusCode != http.StatusBadRequest || !strings.Contains(body, portalURL) {
		t.Errorf("an unknown login must lead back to the portal: %s", res.Status)
	}
	if res, _ := p.do(t, http.MethodGet, p.URL+"/login?request=none", nil); res.StatusCode != http.StatusBadRequest {
		t.Errorf("an unknown login page: %s", res.Status)
	}
	id := p.begin(t, party)
	p.now = p.now.Add(loginLifetime + time.Second)
	if res, _ := p.do(t, http.MethodGet, p.URL+"/login?request="+id, nil); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a login page after %s: %s", loginLifetime, res.Status)
	}
}

func TestForeignRedirectIsRefused(t *testing.T) {
	p := newProvider(t)
	q := url.Values{
		"client_id": {"acp-portal"}, "response_type": {"code"}, "scope": {"openid"}, "state": {"s"},
		"redirect_uri": {"http://evil.example/auth/callback"},
	}
	res, body := p.do(t, http.MethodGet, p.URL+"/authorize?"+q.Encode(), nil)
	if res.StatusCode != http.StatusBadRequest || strings.Contains(body, `name="request"`) {
		t.Errorf("a redirect to elsewhere: %s\n%s", res.Status, body)
	}
}

func TestEndSession(t *testing.T) {
	p := newProvider(t)
	party := p.relyingParty(t, secret)
	tokens, err := rp.CodeExchange[*oidc.IDTokenClaims](t.Context(), p.code(t, party), party, rp.WithCodeVerifier(verifier))
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"Login": portalURL + "/login", "Reason": portalURL + "/login?error=signed-out"} {
		t.Run(name, func(t *testing.T) {
			q := url.Values{"id_token_hint": {tokens.IDToken}, "post_logout_redirect_uri": {target}}
			res, body := p.do(t, http.MethodGet, party.GetEndSessionEndpoint()+"?"+q.Encode(), nil)
			if got := res.Header.Get("Location"); got != target {
				t.Errorf("after the logout: %s to %q\n%s", res.Status, got, body)
			}
		})
	}
	if _, err := rp.Userinfo[*oidc.UserInfo](t.Context(), tokens.AccessToken, "Bearer", "alice", party); err == nil {
		t.Error("the access token must end with the session")
	}
}

// A restart of the provider must not make the portal's configuration or its tokens invalid.
func TestKeySurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	first, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadKey(path)
	if err != nil || !first.Equal(second) {
		t.Errorf("the key changed: %v", err)
	}
}
