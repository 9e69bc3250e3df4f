package oidc

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/acp-io/acp/playground/internal/demo"
)

// Config configures the provider.
type Config struct {
	// Issuer is the URL of the provider, and PortalURL that of its only client.
	Issuer, PortalURL      string
	ClientID, ClientSecret string
	Key                    *rsa.PrivateKey
	// People are listed on the login page; Others can log in as well.
	People, Others []demo.Person
	// Remembered are the usernames of people whose login continues one of hours before, as with a provider that has a session of its own,
	// unless the client asks for a new authentication.
	Remembered []string
	Now        func() time.Time
}

// NewHandler returns the HTTP handler of the provider.
func NewHandler(c Config) (http.Handler, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := newStorage(client{id: c.ClientID, portalURL: c.PortalURL}, c.ClientSecret, c.Key, slices.Concat(c.People, c.Others), c.Now)
	s.remembered = c.Remembered
	// Opaque tokens are encrypted with this key, which is derived from the signing key, so that it survives restarts.
	crypto := sha256.Sum256(x509.MarshalPKCS1PrivateKey(c.Key))
	provider, err := op.NewProvider(&op.Config{
		CryptoKey:                crypto,
		DefaultLogoutRedirectURI: c.PortalURL,
		CodeMethodS256:           true,
		SupportedScopes:          []string{"openid", "profile", "email", "groups"},
		SupportedClaims:          []string{"sub", "preferred_username", "name", "email", "email_verified", "groups"},
	}, s, op.StaticIssuer(c.Issuer), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		return nil, fmt.Errorf("make the OIDC provider: %w", err)
	}
	mux := http.NewServeMux()
	page := &loginPage{storage: s, people: c.People, others: len(c.Others), callback: op.AuthCallbackURL(provider)}
	mux.HandleFunc("GET /login", page.show)
	// op passes the issuer in the context to the function that builds the callback URL.
	mux.Handle("POST /login", op.NewIssuerInterceptor(provider.IssuerFromRequest).HandlerFunc(page.submit))
	mux.HandleFunc("GET /login.css", serveCSS)
	mux.Handle("/", provider)
	return secured(mux), nil
}

// secured adds the headers that prevent framing of the page and loading from other origins.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// There is no form-action directive, because browsers also apply it to redirects after a form, and these lead to the
		// portal.
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		next.ServeHTTP(w, r)
	})
}

// LoadKey loads the signing key and creates it when it is absent.
func LoadKey(path string) (*rsa.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the signing key: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("the signing key %s is damaged; remove it, and a new one is made", path)
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the signing key %s is damaged; remove it, and a new one is made: %w", path, err)
	}
	return key, nil
}

func makeKey(path string) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	temp := path + ".new"
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return nil, fmt.Errorf("write the signing key: %w", err)
	}
	return key, os.Rename(temp, path)
}
