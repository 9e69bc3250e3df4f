package core

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/message"
)

const (
	// CookieName is the name of the session's cookie.
	CookieName = "acp_session"
	// sessionLifetime is the maximum duration of a session.
	sessionLifetime = 24 * time.Hour
	// touchEvery is the minimum interval between writes of a session that only extend its idle timeout.
	touchEvery = time.Minute

	keyCaller, keyToken = "caller", "token"

	sessPerson, sessGroups, sessIDToken, sessTouched = credential.SessionPerson, "groups", "idToken", "touched"
	sessAgent, sessCreated                           = credential.SessionAgent, credential.SessionCreated
	// sessLoggedIn is when the person authenticated at the provider, in seconds since 1970; 0 if that is not known.
	sessLoggedIn = "loggedIn"
)

func newSessions(c Config) *scs.SessionManager {
	m := scs.New()
	m.Store = c.Sessions
	m.Codec = newCodec()
	m.HashTokenInStore = true
	m.Lifetime = sessionLifetime
	m.IdleTimeout = c.SessionIdle
	m.Cookie.Name = CookieName
	if c.PublicURL.Scheme == "https" {
		// Browsers accept a cookie with this prefix only from this host, so that other hosts of the domain cannot set a session.
		m.Cookie.Name = "__Host-" + CookieName
	}
	m.Cookie.HttpOnly = true
	m.Cookie.SameSite = http.SameSiteLaxMode // the redirect from the provider must carry it
	m.Cookie.Secure = c.PublicURL.Scheme == "https"
	return m
}

// authenticate determines the caller. If there is a bearer token, the cookie does not count: pages of other sites cannot send tokens,
// so a call with a token is not a cross-site request.
func (s *Server) authenticate(c *gin.Context) {
	if h := c.GetHeader("Authorization"); h != "" {
		s.bearer(c, h)
		return
	}
	s.session(c)
}

// bearer loads the owner of a token with their current roles. Tokens of people who left are invalid, and claims of the login
// provider, which may have changed since a login, give a token no roles.
func (s *Server) bearer(c *gin.Context, header string) {
	ctx, err := s.sessions.Load(c.Request.Context(), "") // handlers may read the session, and there is none
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Request = c.Request.WithContext(ctx)
	secret := bearerSecret(header)
	if secret == "" {
		s.unauthorized(c, message.CallBearerNeeded())
		return
	}
	t, a, err := s.ownerOf(ctx, secret)
	if errors.Is(err, credential.ErrUnknown) {
		if s.chargeOrFail(c, BudgetWrongTokens, s.ClientAddress(c)) {
			s.unauthorized(c, message.CallTokenUnknown())
		}
		return
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Set(keyToken, &t)
	a.Token = true
	SetCaller(c, a)
}

// bearerSecret returns the token of an Authorization header, or an empty string if it has another scheme.
func bearerSecret(header string) string {
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// ownerOf returns the owner of a token. It returns ErrUnknown also if the catalog does not contain them any more.
func (s *Server) ownerOf(ctx context.Context, secret string) (credential.Token, approval.Actor, error) {
	t, err := s.Credentials.Authenticate(ctx, secret)
	if err != nil {
		return t, approval.Actor{}, err
	}
	cat := s.Catalog()
	if _, ok := cat.Person(t.Person); !ok {
		return t, approval.Actor{}, credential.ErrUnknown
	}
	return t, actorOf(cat, t.Person, nil), nil
}

func (s *Server) unauthorized(c *gin.Context, m message.Message) {
	c.Header("WWW-Authenticate", `Bearer realm="acp"`)
	s.fail(c, NewProblem(http.StatusUnauthorized, "unauthenticated", m))
}

// actorOf returns a person as an actor, with the roles from the catalog and the login provider.
func actorOf(c *catalog.Catalog, id string, claimed []string) approval.Actor {
	return approval.Actor{ID: id,
		Security: c.InGroup(id, catalog.GroupSecurity) || slices.Contains(claimed, catalog.GroupSecurity),
		Auditor:  c.InGroup(id, catalog.GroupAuditors) || slices.Contains(claimed, catalog.GroupAuditors)}
}

// ActorWithoutSession returns a person as an actor with the roles from the catalog only, as a token gives them.
func ActorWithoutSession(c *catalog.Catalog, id string) approval.Actor { return actorOf(c, id, nil) }

// session loads the session of the caller, if there is one and its person is still in the catalog.
func (s *Server) session(c *gin.Context) {
	token, err := c.Cookie(s.sessions.Cookie.Name)
	if err != nil {
		token = ""
	}
	ctx, err := s.sessions.Load(c.Request.Context(), token)
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Request = c.Request.WithContext(ctx)
	id := s.sessions.GetString(ctx, sessPerson)
	if id == "" {
		return
	}
	cat := s.Catalog()
	if _, ok := cat.Person(id); !ok {
		return
	}
	groups, _ := s.sessions.Get(ctx, sessGroups).([]string)
	a := actorOf(cat, id, groups)
	if at := s.sessions.GetInt64(ctx, sessLoggedIn); at > 0 {
		a.LoggedIn = time.Unix(at, 0)
	}
	SetCaller(c, a)
	if now := s.Now(); now.Sub(time.Unix(s.sessions.GetInt64(ctx, sessTouched), 0)) > touchEvery {
		s.sessions.Put(ctx, sessTouched, now.Unix())
		if err := s.storeSession(credential.WithUpdateOnly(ctx), c); err != nil {
			// The session is still valid, and reading must work while the store cannot be written.
			s.Log.Warn("a session could not be extended", "error", err)
		}
	}
}

// SessionToken returns the token of the session of a request, or an empty string if it has none.
func (s *Server) SessionToken(ctx context.Context) string { return s.sessions.Token(ctx) }

// SessionDeadline returns the time at which the session of a request ends whatever its caller does.
func (s *Server) SessionDeadline(ctx context.Context) time.Time { return s.sessions.Deadline(ctx) }

// storeSession stores the session and sets its cookie.
func (s *Server) storeSession(ctx context.Context, c *gin.Context) error {
	token, expiry, err := s.sessions.Commit(ctx)
	if err != nil {
		return err
	}
	s.sessions.WriteSessionCookie(ctx, c.Writer, token, expiry)
	return nil
}

// caller returns the logged-in person, or nil if there is none.
func caller(c *gin.Context) *approval.Actor {
	v, _ := c.Get(keyCaller)
	a, _ := v.(*approval.Actor)
	return a
}

// Token returns the token of the call, or nil if it has a session or no login.
func Token(c *gin.Context) *credential.Token {
	v, _ := c.Get(keyToken)
	t, _ := v.(*credential.Token)
	return t
}
