package core

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/message"
)

const keyRequestID = "requestId"

func (s *Server) requestID(c *gin.Context) {
	id := rand.Text()
	c.Set(keyRequestID, id)
	c.Header("X-Request-Id", id)
}

// accessLog logs the route and not the URL, because queries may contain codes and search terms.
func (s *Server) accessLog(c *gin.Context) {
	start := time.Now()
	c.Next()
	path := c.FullPath()
	if path == "" {
		path = "(web)"
	}
	who := ""
	if a := caller(c); a != nil {
		who = a.ID
	}
	level := slog.LevelInfo
	if c.Request.Method == http.MethodGet && c.Writer.Status() < http.StatusBadRequest {
		level = slog.LevelDebug // pages poll often
	}
	s.Log.Log(c.Request.Context(), level, "request", "method", c.Request.Method, "route", path, "status", c.Writer.Status(), "person", who,
		"peer", s.ClientAddress(c), "duration", time.Since(start), "requestId", c.GetString(keyRequestID))
}

func (s *Server) recovery(c *gin.Context) {
	defer func() {
		v := recover()
		if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(v) // the server breaks the connection
		}
		if v != nil {
			s.Log.Error("a handler panicked", "panic", v, "requestId", c.GetString(keyRequestID), "stack", string(debug.Stack()))
			if !c.Writer.Written() {
				s.fail(c, NewProblem(http.StatusInternalServerError, "internal", message.CallInternalPanic()))
			}
			c.Abort()
		}
	}()
	c.Next()
}

func (s *Server) securityHeaders(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", contentPolicy("", nobody))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	if s.PublicURL.Scheme == "https" {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// nobody is the value of frame-ancestors with which no page may be framed.
const nobody = "'none'"

// contentPolicy allows content of the portal itself. Styles that are created at run time need the nonce of the page. ancestors are the origins
// whose pages may frame it.
func contentPolicy(nonce, ancestors string) string {
	style := "'self'"
	if nonce != "" {
		style += " 'nonce-" + nonce + "'"
	}
	return "default-src 'self'; script-src 'self'; style-src " + style + "; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
		"object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors " + ancestors
}

// sameOrigin refuses writes that a page of another site could have sent. Browsers set Sec-Fetch-Site and Origin, which pages cannot
// forge, and the custom header needs a preflight across origins, which is never granted. Calls for which no cookie counts are not
// checked: those with a token, and the two by which a command line gets one.
func (s *Server) sameOrigin(c *gin.Context) {
	switch c.Request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return
	}
	site, origin := c.GetHeader("Sec-Fetch-Site"), c.GetHeader("Origin")
	r, _ := s.routeOf(c)
	cookies := Token(c) == nil && !r.Programs
	if site != "" && site != "same-origin" || origin != "" && origin != s.Origin() || cookies && c.GetHeader("X-ACP-Request") == "" {
		s.fail(c, NewProblem(http.StatusForbidden, "forbidden", message.CallForeignPage()))
	}
}

// Origin returns the scheme and the host of the portal's address.
func (s *Server) Origin() string { return s.PublicURL.Scheme + "://" + s.PublicURL.Host }
