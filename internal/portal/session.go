package portal

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
	cookieName = "acp_session"
	// sessionLifetime is the absolute end of a session, however busy it is.
	sessionLifetime = 24 * time.Hour
	// touchEvery limits how often a busy session is stored only to move its idle end.
	touchEvery = time.Minute

	keyCaller, keyToken = "caller", "token"

	sessPerson, sessGroups, sessIDToken, sessTouched = credential.SessionPerson, "groups", "idToken", "touched"
	sessAgent, sessCreated                           = credential.SessionAgent, credential.SessionCreated
)

func newSessions(c Config) *scs.SessionManager {
	m := scs.New()
	m.Store = c.Sessions
	m.Codec = newCodec()
	m.HashTokenInStore = true
	m.Lifetime = sessionLifetime
	m.IdleTimeout = c.SessionIdle
	m.Cookie.Name = cookieName
	if c.PublicURL.Scheme == "https" {
		// Browsers take such a cookie from this host only: a neighbour on the same domain cannot plant a session.
		m.Cookie.Name = "__Host-" + cookieName
	}
	m.Cookie.HttpOnly = true
	m.Cookie.SameSite = http.SameSiteLaxMode // the provider's redirect back has to carry it
	m.Cookie.Secure = c.PublicURL.Scheme == "https"
	return m
}

// recognise finds out who calls. Where there is a bearer token the cookie does not count: a page cannot send one, so
// that a call with a token is never somebody else's page.
func (s *Server) recognise(c *gin.Context) {
	if h := c.GetHeader("Authorization"); h != "" {
		s.bearer(c, h)
		return
	}
	s.session(c)
}

// bearer loads the token's owner. His roles are looked up each time: the token of somebody who left is worth nothing,
// and a claim of the login provider, which was true at some login, gives a token nothing.
func (s *Server) bearer(c *gin.Context, header string) {
	ctx, err := s.sessions.Load(c.Request.Context(), "") // handlers may look at the session; there is none
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
		if s.spend(c, budgetWrongTokens, s.address(c)) {
			s.unauthorized(c, message.CallTokenUnknown())
		}
		return
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	c.Set(keyToken, &t)
	c.Set(keyCaller, &a)
}

// bearerSecret of an Authorization header; empty: it is of another scheme.
func bearerSecret(header string) string {
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// ownerOf a token; ErrUnknown also if the catalog does not know him any more.
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
	s.fail(c, newProblem(http.StatusUnauthorized, "unauthenticated", m))
}

// actorOf a person, with the roles that the catalog or the login provider gives him.
func actorOf(c *catalog.Catalog, id string, claimed []string) approval.Actor {
	return approval.Actor{ID: id,
		Security: c.InGroup(id, catalog.GroupSecurity) || slices.Contains(claimed, catalog.GroupSecurity),
		Auditor:  c.InGroup(id, catalog.GroupAuditors) || slices.Contains(claimed, catalog.GroupAuditors)}
}

// session loads the caller's session, if there is one and its person is still in the catalog.
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
	c.Set(keyCaller, &a)
	if now := s.Now(); now.Sub(time.Unix(s.sessions.GetInt64(ctx, sessTouched), 0)) > touchEvery {
		s.sessions.Put(ctx, sessTouched, now.Unix())
		if err := s.storeSession(credential.WithUpdateOnly(ctx), c); err != nil {
			// The session is still good; reading must go on while the store cannot be written.
			s.Log.Warn("a session could not be extended", "error", err)
		}
	}
}

// storeSession stores the session and sets its cookie.
func (s *Server) storeSession(ctx context.Context, c *gin.Context) error {
	token, expiry, err := s.sessions.Commit(ctx)
	if err != nil {
		return err
	}
	s.sessions.WriteSessionCookie(ctx, c.Writer, token, expiry)
	return nil
}

// caller is who is logged in; nil: nobody.
func caller(c *gin.Context) *approval.Actor {
	v, _ := c.Get(keyCaller)
	a, _ := v.(*approval.Actor)
	return a
}

// tokenOf the call; nil: it came with a session, or nobody is logged in.
func tokenOf(c *gin.Context) *credential.Token {
	v, _ := c.Get(keyToken)
	t, _ := v.(*credential.Token)
	return t
}
