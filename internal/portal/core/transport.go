package core

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/message"
)

// probePaths are the paths that load balancers may request from any address. Their responses contain no data.
var probePaths = map[string]bool{"/healthz": true, "/readyz": true}

// transport refuses requests that crossed a network in plain text: those over plain HTTP from another machine that is not a trusted
// proxy, and those that a trusted proxy itself received over plain HTTP. Pages are redirected to the public URL.
func (s *Server) transport(c *gin.Context) {
	if c.Request.TLS != nil || probePaths[c.Request.URL.Path] {
		return
	}
	peer, err := netip.ParseAddr(c.RemoteIP())
	if err != nil {
		peer = netip.Addr{}
	}
	peer = peer.Unmap().WithZone("")
	switch {
	case s.trusted(peer) && s.PublicURL.Scheme == "https" && receivedPlain(c.Request.Header.Values("X-Forwarded-Proto")):
		if (c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead) && strings.Contains(c.GetHeader("Accept"), "text/html") {
			c.Redirect(http.StatusPermanentRedirect, s.Origin()+c.Request.URL.RequestURI())
			c.Abort()
			return
		}
		s.fail(c, NewProblem(http.StatusForbidden, "forbidden", message.CallPlainHTTP(s.Origin())))
	case !s.trusted(peer) && !peer.IsLoopback():
		s.fail(c, NewProblem(http.StatusForbidden, "forbidden", message.CallPlainHTTPNotProxied(s.Origin())))
	}
}

// receivedPlain reports whether a proxy states that it received the request over plain HTTP. Of several proxies, the outermost one
// counts.
func receivedPlain(forwarded []string) bool {
	values := strings.Split(strings.Join(forwarded, ","), ",")
	found := false
	for _, v := range values {
		switch v = strings.TrimSpace(v); {
		case strings.EqualFold(v, "https"):
			return false
		case v != "":
			found = true
		}
	}
	return found
}
