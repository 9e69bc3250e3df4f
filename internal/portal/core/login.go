package core

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/gin-gonic/gin"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/acp-io/acp/internal/credential"
)

// Codes of failures that the login page explains.
const (
	// LoginDenied means that the provider reported that the login was denied.
	LoginDenied = "denied"
	// LoginExpired means that the login took too long, or was not begun in this browser.
	LoginExpired = "expired"
	// LoginInvalid means that the provider's answer is not valid.
	LoginInvalid = "invalid"
	// LoginUnknown means that the catalog does not contain the person.
	LoginUnknown = "unknown-person"
	// LoginUnavailable means that the provider does not answer.
	LoginUnavailable = "provider-unavailable"
	// LoginUnset means that the portal is configured without a provider.
	LoginUnset = "provider-unset"
	// LoginNotFresh means that a new login was required, and that the provider's answer does not prove one.
	LoginNotFresh = "not-fresh"
	// LoginSignedOut means that the person has signed out.
	LoginSignedOut = "signed-out"
)

// NoIssuer is the value of the issuer for a portal without a provider, in which nobody can log in.
const NoIssuer = "none"

const (
	loginMinutes = 10 * time.Minute
	providerWait = 5 * time.Second
	// MaxIDTokenHint is the maximum length of the ID token that is stored to end the session at the provider. Longer ones do not fit into a URL.
	MaxIDTokenHint = 8 << 10

	// clockSkew is the tolerated difference between the clocks of the portal and of the provider.
	clockSkew = time.Minute

	sessState, sessNonce, sessVerifier, sessReturn, sessStarted = "state", "nonce", "verifier", "returnTo", "started"
	// sessFresh is set while a login is under way that has to be a new one.
	sessFresh = "fresh"
)

// login contains the configuration of the OIDC provider. It is discovered at the first login, so that the portal starts, and serves
// existing sessions, while the provider is unavailable.
type login struct {
	config    Config
	client    *http.Client
	discovery singleflight.Group
	found     atomic.Pointer[oidc.Provider]
}

func newLogin(c Config) *login {
	return &login{config: c, client: &http.Client{Timeout: providerWait}}
}

// provider returns the discovered configuration of the provider. Callers that need it at the same time share one discovery, so that a provider
// that does not answer delays each login by at most providerWait. The end of a caller's context does not cancel the discovery for the others.
func (l *login) provider(ctx context.Context) (*oidc.Provider, error) {
	if p := l.found.Load(); p != nil {
		return p, nil
	}
	discovering := oidc.ClientContext(context.WithoutCancel(ctx), l.client)
	discovered := l.discovery.DoChan(l.config.Issuer, func() (any, error) {
		if p := l.found.Load(); p != nil { // by a discovery that ended meanwhile
			return p, nil
		}
		p, err := oidc.NewProvider(discovering, l.config.Issuer)
		if err != nil {
			return nil, err
		}
		l.found.Store(p)
		return p, nil
	})
	select {
	case r := <-discovered:
		p, _ := r.Val.(*oidc.Provider)
		return p, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *login) oauth(p *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{ClientID: l.config.ClientID, Endpoint: p.Endpoint(),
		RedirectURL: strings.TrimSuffix(l.config.PublicURL.String(), "/") + "/auth/callback",
		Scopes:      []string{oidc.ScopeOpenID, "profile", "email", "groups"}}
}

// startLogin redirects the browser to the provider. With the parameter fresh=true, the provider has to authenticate the person again, also if
// they are logged in there; the session that the person has stays until then.
func (s *Server) startLogin(c *gin.Context) {
	if s.redirectToPublicURL(c) || !s.chargeOrFail(c, BudgetLogins, s.ClientAddress(c)) {
		return
	}
	ctx := c.Request.Context()
	if s.Issuer == NoIssuer {
		s.loginFailed(c, LoginUnset, c.Query("returnTo"))
		return
	}
	p, err := s.login.provider(ctx)
	if err != nil {
		s.Log.Warn("the login provider cannot be reached", "issuer", s.Issuer, "error", err)
		s.loginFailed(c, LoginUnavailable, c.Query("returnTo"))
		return
	}
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	for k, v := range map[string]string{sessState: state, sessNonce: nonce, sessVerifier: verifier, sessReturn: localPath(c.Query("returnTo"))} {
		s.sessions.Put(ctx, k, v)
	}
	s.sessions.Put(ctx, sessStarted, s.Now().Unix())
	options := []oauth2.AuthCodeOption{oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)}
	fresh := c.Query("fresh") == "true"
	s.sessions.Put(ctx, sessFresh, fresh)
	if fresh {
		// Either parameter requires a new authentication. With max_age, the provider has to report its time in auth_time.
		options = append(options, oauth2.SetAuthURLParam("max_age", "0"), oauth2.SetAuthURLParam("prompt", "login"))
	}
	if caller(c) == nil {
		s.sessions.SetDeadline(ctx, s.Now().Add(loginMinutes))
	}
	storing := ctx
	if s.sessions.GetString(ctx, sessPerson) != "" {
		// The session of a person may have ended since it was loaded, for example by a logout. It stays ended, and the
		// callback then reports that the login was not begun in this browser.
		storing = credential.WithUpdateOnly(ctx)
	}
	if err := s.storeSession(storing, c); err != nil {
		s.fail(c, err)
		return
	}
	c.Redirect(http.StatusFound, s.login.oauth(p).AuthCodeURL(state, options...))
}

// finishLogin handles the redirect from the provider. The stored state of the login is used once, whatever the result.
func (s *Server) finishLogin(c *gin.Context) {
	ctx := c.Request.Context()
	state, nonce := s.sessions.PopString(ctx, sessState), s.sessions.PopString(ctx, sessNonce)
	verifier, returnTo := s.sessions.PopString(ctx, sessVerifier), localPath(s.sessions.PopString(ctx, sessReturn))
	started := time.Unix(s.sessions.GetInt64(ctx, sessStarted), 0)
	s.sessions.Remove(ctx, sessStarted)
	fresh := s.sessions.PopBool(ctx, sessFresh)
	if state != "" {
		// A session with a state was loaded from the store. If it has ended since, it stays ended.
		if err := s.storeSession(credential.WithUpdateOnly(ctx), c); err != nil {
			s.fail(c, err)
			return
		}
	}
	who, code := identity{}, ""
	switch {
	case state == "" || s.Now().Sub(started) > loginMinutes:
		code = LoginExpired
	case c.Query("state") != state:
		code = LoginInvalid
	case c.Query("error") == "access_denied":
		code = LoginDenied
	case c.Query("error") != "" || c.Query("code") == "":
		s.Log.Warn("the login provider refused", "error", c.Query("error"))
		code = LoginInvalid
	default:
		who, code = s.identify(ctx, c.Query("code"), verifier, nonce)
	}
	if code == "" && fresh && (who.loggedIn.IsZero() || who.loggedIn.Before(started.Add(-clockSkew))) {
		s.Log.Warn("the login provider did not prove a new login: its tokens need the claim auth_time, and it has to respect prompt=login or max_age",
			"person", who.person, "authTime", who.loggedIn)
		code = LoginNotFresh
	}
	if code == "" {
		if _, ok := s.Catalog().Person(who.person); !ok {
			s.Log.Warn("a person logged in who is not in the catalog", "person", who.person)
			code = LoginUnknown
		}
	}
	if code != "" {
		s.loginFailed(c, code, returnTo)
		return
	}
	// The session gets a new token, so that the one from before the login, which others may know, is invalid.
	if err := s.sessions.RenewToken(ctx); err != nil {
		s.fail(c, err)
		return
	}
	s.sessions.SetDeadline(ctx, s.Now().Add(sessionLifetime))
	s.sessions.Put(ctx, sessPerson, who.person)
	s.sessions.Put(ctx, sessGroups, who.groups)
	s.sessions.Put(ctx, sessIDToken, who.idToken)
	loggedIn := int64(0)
	if !who.loggedIn.IsZero() {
		loggedIn = who.loggedIn.Unix()
	}
	s.sessions.Put(ctx, sessLoggedIn, loggedIn)
	s.sessions.Put(ctx, sessTouched, s.Now().Unix())
	s.sessions.Put(ctx, sessCreated, s.Now().Unix())
	s.sessions.Put(ctx, sessAgent, credential.Printable(c.Request.UserAgent(), credential.MaxAgent))
	if err := s.storeSession(ctx, c); err != nil {
		s.fail(c, err)
		return
	}
	s.Log.Info("login", "person", who.person)
	c.Redirect(http.StatusFound, returnTo)
}

// identity is what an ID token says about the person who logged in.
type identity struct {
	person string
	// groups are the roles that the token gives.
	groups []string
	// idToken is the token itself, which ends the session at the provider; empty if it is too long.
	idToken string
	// loggedIn is when the person authenticated at the provider, which may be long before this login; zero if the token does not say it.
	loggedIn time.Time
}

// identify exchanges the code and verifies the ID token. failure is one of the login codes.
func (s *Server) identify(ctx context.Context, code, verifier, nonce string) (who identity, failure string) {
	p, err := s.login.provider(ctx)
	if err != nil {
		s.Log.Warn("the login provider cannot be reached", "issuer", s.Issuer, "error", err)
		return who, LoginUnavailable
	}
	ctx = oidc.ClientContext(ctx, s.login.client)
	exchange := s.login.oauth(p)
	if s.ClientSecret != nil {
		if exchange.ClientSecret, err = s.ClientSecret(); err != nil {
			s.Log.Error("the secret of the portal at the login provider cannot be read", "error", err)
			return who, LoginUnavailable
		}
	}
	token, err := exchange.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		s.Log.Warn("the login's code was not accepted", "error", err)
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError {
			return who, LoginInvalid
		}
		return who, LoginUnavailable
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := p.VerifierContext(ctx, &oidc.Config{ClientID: s.ClientID, Now: s.Now}).Verify(ctx, raw)
	if err != nil || id.Nonce != nonce {
		s.Log.Warn("the login's token is not valid", "error", err)
		return who, LoginInvalid
	}
	var claims map[string]any
	err = id.Claims(&claims)
	names := s.Claims.withDefaults()
	person := names.person(claims)
	roles, readable := names.roles(claims)
	loggedIn, sound := authTime(claims, s.Now())
	if err != nil || person == "" || !readable {
		s.Log.Warn("the login's token lacks the person's name, or its groups are not a list of names", "claims", []string{names.Username, names.Groups},
			"error", err)
		return who, LoginInvalid
	}
	if !sound {
		s.Log.Warn("the login's token has a claim auth_time that is not a time in the past", "person", person)
		return who, LoginInvalid
	}
	if len(raw) > MaxIDTokenHint {
		raw = ""
	}
	return identity{person: person, groups: roles, idToken: raw, loggedIn: loggedIn}, ""
}

func (s *Server) loginFailed(c *gin.Context, code, returnTo string) {
	q := url.Values{"error": {code}}
	if to := localPath(returnTo); to != "/" {
		q.Set("returnTo", to)
	}
	c.Redirect(http.StatusFound, "/login?"+q.Encode())
}

// logout ends the session in the portal, and returns the URL that ends it at the provider.
func (s *Server) logout(c *gin.Context) {
	ctx := c.Request.Context()
	idToken := s.sessions.GetString(ctx, sessIDToken)
	if err := s.sessions.Destroy(ctx); err != nil {
		s.fail(c, err)
		return
	}
	s.sessions.WriteSessionCookie(ctx, c.Writer, "", time.Time{})
	c.JSON(http.StatusOK, gin.H{"redirect": s.endSession(ctx, idToken)})
}

func (s *Server) endSession(ctx context.Context, idToken string) string {
	local := "/login?error=" + LoginSignedOut
	if idToken == "" {
		return local
	}
	p, err := s.login.provider(ctx)
	if err != nil {
		return local
	}
	var meta struct {
		EndSession string `json:"end_session_endpoint"`
	}
	if err := p.Claims(&meta); err != nil || meta.EndSession == "" {
		return local
	}
	u, err := url.Parse(meta.EndSession)
	if err != nil {
		return local
	}
	q := u.Query()
	q.Set("id_token_hint", idToken)
	q.Set("client_id", s.ClientID)
	q.Set("post_logout_redirect_uri", s.Origin()+"/login")
	u.RawQuery = q.Encode()
	return u.String()
}

// localPath returns a path of this portal, and "/" for everything else. Browsers read "\" as "/" and drop tabs and newlines, so
// that "/\evil" or "/<tab>/evil" would lead to another host.
func localPath(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsFunc(to, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }) {
		return "/"
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, "/auth/") {
		return "/"
	}
	return to
}
