package portal

import (
	"net/http"
	"slices"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

const (
	cookieName = "acp_session"
	// sessionLifetime is the absolute end of a session, however busy it is.
	sessionLifetime = 24 * time.Hour
	// touchEvery limits how often a busy session is stored only to move its idle end.
	touchEvery = time.Minute

	keyCaller = "caller"

	sessPerson, sessGroups, sessIDToken, sessTouched = "person", "groups", "idToken", "touched"
)

func newSessions(c Config) *scs.SessionManager {
	m := scs.New()
	m.Store = c.Sessions
	m.HashTokenInStore = true
	m.Lifetime = sessionLifetime
	m.IdleTimeout = c.SessionIdle
	m.Cookie.Name = cookieName
	m.Cookie.HttpOnly = true
	m.Cookie.SameSite = http.SameSiteLaxMode // the provider's redirect back has to carry it
	m.Cookie.Secure = c.PublicURL.Scheme == "https"
	return m
}

// session loads the caller's session, if there is one and its person is still in the catalog.
func (s *Server) session(c *gin.Context) {
	token, err := c.Cookie(cookieName)
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
	c.Set(keyCaller, &approval.Actor{ID: id,
		Security: cat.InGroup(id, catalog.GroupSecurity) || slices.Contains(groups, catalog.GroupSecurity),
		Auditor:  cat.InGroup(id, catalog.GroupAuditors) || slices.Contains(groups, catalog.GroupAuditors)})
	if now := s.Now(); now.Sub(time.Unix(s.sessions.GetInt64(ctx, sessTouched), 0)) > touchEvery {
		s.sessions.Put(ctx, sessTouched, now.Unix())
		if err := s.storeSession(c); err != nil {
			// The session is still good; reading must go on while the store cannot be written.
			s.Log.Warn("a session could not be extended", "error", err)
		}
	}
}

// storeSession stores the session and sets its cookie.
func (s *Server) storeSession(c *gin.Context) error {
	token, expiry, err := s.sessions.Commit(c.Request.Context())
	if err != nil {
		return err
	}
	s.sessions.WriteSessionCookie(c.Request.Context(), c.Writer, token, expiry)
	return nil
}

// caller is who is logged in; nil: nobody.
func caller(c *gin.Context) *approval.Actor {
	v, _ := c.Get(keyCaller)
	a, _ := v.(*approval.Actor)
	return a
}
