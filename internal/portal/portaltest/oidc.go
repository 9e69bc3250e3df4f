// Package portaltest provides the surroundings for tests of the portal: an OIDC provider, the demo people, and a browser.
package portaltest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// ClientID and ClientSecret are the credentials of the portal at the provider.
const (
	ClientID     = "acp-portal"
	ClientSecret = "s3cret"
)

// Provider is an OIDC provider that supports only the authorization code flow with PKCE.
type Provider struct {
	*httptest.Server
	key   *rsa.PrivateKey
	mu    sync.Mutex
	codes map[string]login
	// Claims may change the ID token's claims before it is signed.
	Claims func(map[string]any)
	// Sign signs the claims of an ID token. Tests replace it by the forgeries of an attacker.
	Sign func(claims []byte) string
	// secret is the client secret that ReplaceSecret set; nil if it was not called.
	secret atomic.Pointer[string]
}

// ReplaceSecret changes the client secret of the portal.
func (p *Provider) ReplaceSecret(secret string) { p.secret.Store(&secret) }

type login struct {
	user, nonce, challenge, redirect string
	groups                           []string
}

// NewProvider starts a provider that stops with the test.
func NewProvider(t testing.TB) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{key: key, codes: map[string]login{}, Claims: func(map[string]any) {}}
	p.Sign = func(claims []byte) string { return Signed(jose.RS256, p.key, "k", claims) }
	p.ReplaceSecret(ClientSecret)
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("/keys", p.keys)
	mux.HandleFunc("/token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// Login performs the login that a person makes on the provider's page, and returns the address to which the browser is
// redirected.
func (p *Provider) Login(t testing.TB, authURL, user string, groups ...string) string {
	t.Helper()
	u, err := url.Parse(authURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" || q.Get("nonce") == "" {
		t.Fatalf("the portal must use code flow, PKCE, state and nonce: %s", authURL)
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = login{user: user, nonce: q.Get("nonce"), challenge: q.Get("code_challenge"), redirect: q.Get("redirect_uri"), groups: groups}
	p.mu.Unlock()
	return q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"jwks_uri": p.URL + "/keys", "end_session_endpoint": p.URL + "/end", "id_token_signing_alg_values_supported": []string{"RS256"}})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "k", Algorithm: "RS256", Use: "sig"}}})
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	p.mu.Lock()
	l, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || id != ClientID || secret != *p.secret.Load() || base64.RawURLEncoding.EncodeToString(sum[:]) != l.challenge ||
		r.FormValue("redirect_uri") != l.redirect {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": ClientID, "sub": "sub-" + l.user, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"nonce": l.nonce, "preferred_username": l.user, "groups": l.groups, "auth_time": time.Now().Unix()}
	p.Claims(claims)
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "id_token": p.Sign(body)})
}

// PublicKey returns the public key of the provider.
func (p *Provider) PublicKey() []byte {
	der, err := x509.MarshalPKIXPublicKey(p.key.Public())
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// Signed signs claims with any algorithm and key.
func Signed(alg jose.SignatureAlgorithm, key any, id string, claims []byte) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		panic(err)
	}
	raw, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return raw
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}
