package oidc

import (
	"crypto/rsa"
	"net/url"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// authRequest is one pending login.
type authRequest struct {
	id       string
	created  time.Time
	in       oidc.AuthRequest
	subject  string
	authTime time.Time
	done     bool
}

func (r authRequest) GetID() string                      { return r.id }
func (r authRequest) GetACR() string                     { return "" }
func (r authRequest) GetAMR() []string                   { return []string{"pwd"} }
func (r authRequest) GetAudience() []string              { return []string{r.in.ClientID} }
func (r authRequest) GetAuthTime() time.Time             { return r.authTime }
func (r authRequest) GetClientID() string                { return r.in.ClientID }
func (r authRequest) GetNonce() string                   { return r.in.Nonce }
func (r authRequest) GetRedirectURI() string             { return r.in.RedirectURI }
func (r authRequest) GetResponseType() oidc.ResponseType { return r.in.ResponseType }
func (r authRequest) GetResponseMode() oidc.ResponseMode { return r.in.ResponseMode }
func (r authRequest) GetScopes() []string                { return r.in.Scopes }
func (r authRequest) GetState() string                   { return r.in.State }
func (r authRequest) GetSubject() string                 { return r.subject }
func (r authRequest) Done() bool                         { return r.done }

func (r authRequest) GetCodeChallenge() *oidc.CodeChallenge {
	if r.in.CodeChallenge == "" {
		return nil
	}
	return &oidc.CodeChallenge{Challenge: r.in.CodeChallenge, Method: r.in.CodeChallengeMethod}
}

// client is the portal, the only client of the provider.
type client struct {
	id, portalURL string
}

func (c client) GetID() string          { return c.id }
func (c client) RedirectURIs() []string { return []string{c.portalURL + "/auth/callback"} }
func (c client) PostLogoutRedirectURIs() []string {
	return []string{c.portalURL, c.portalURL + "/", c.portalURL + "/login"}
}

// RedirectURIGlobs implements op.HasRedirectGlobs: none for logins.
func (c client) RedirectURIGlobs() []string { return nil }

// PostLogoutRedirectURIGlobs allows the portal to show on its login page why the user was logged out.
func (c client) PostLogoutRedirectURIGlobs() []string {
	return []string{c.portalURL + `/login\?error=*`}
}

func (c client) ApplicationType() op.ApplicationType { return op.ApplicationTypeWeb }
func (c client) AuthMethod() oidc.AuthMethod         { return oidc.AuthMethodBasic }
func (c client) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}
func (c client) GrantTypes() []oidc.GrantType { return []oidc.GrantType{oidc.GrantTypeCode} }
func (c client) LoginURL(id string) string {
	return "/login?" + requestParam + "=" + url.QueryEscape(id)
}
func (c client) AccessTokenType() op.AccessTokenType {
	return op.AccessTokenTypeBearer
}
func (c client) IDTokenLifetime() time.Duration       { return tokenLifetime }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return true }
func (c client) ClockSkew() time.Duration             { return 0 }
func (c client) IsScopeAllowed(scope string) bool     { return scope == "groups" }

// DevMode allows a redirect to plain HTTP, which is the only scheme on this machine's own address.
func (c client) DevMode() bool { return true }

func (c client) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return func(scopes []string) []string { return scopes }
}

func (c client) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return func(scopes []string) []string { return scopes }
}

const keyID = "playground"

type signingKey struct{ key *rsa.PrivateKey }

func (k signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k signingKey) Key() any                                    { return k.key }
func (k signingKey) ID() string                                  { return keyID }

type publicKey struct{ signingKey }

func (k publicKey) Algorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k publicKey) Use() string                        { return "sig" }
func (k publicKey) Key() any                           { return &k.key.PublicKey }
