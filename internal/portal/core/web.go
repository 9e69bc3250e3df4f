package core

import (
	"crypto/rand"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/loopback"
	"github.com/acp-io/acp/internal/message"
)

const noncePlaceholder = "__CSP_NONCE__"

const notBuiltPage = `<!doctype html><html lang="en"><meta charset="utf-8"><title>ACP</title>
<h1>The web application is not built</h1><p>Run <code>make web</code> and build the portal again. The API is served.</p></html>
`

// web serves the built application. Paths without a file are pages of the application, so they get index.html, but only for
// navigations of a browser: the response for a missing script must not be a page.
func (s *Server) web(c *gin.Context) {
	p := path.Clean("/" + c.Request.URL.Path)
	if p == "/api" || strings.HasPrefix(p, "/api/") || strings.HasPrefix(p, "/auth/") {
		s.fail(c, NewProblem(http.StatusNotFound, "not-found", message.CallNoAddress()))
		return
	}
	if c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead {
		s.fail(c, NewProblem(http.StatusMethodNotAllowed, "invalid", message.CallMethodNotAllowed()))
		return
	}
	name := strings.TrimPrefix(p, "/")
	if name != "" && name != "index.html" && !strings.HasPrefix(path.Base(name), ".") {
		if data, err := fs.ReadFile(s.Web, name); err == nil {
			s.file(c, name, data)
			return
		}
	}
	if name != "" && !strings.Contains(c.GetHeader("Accept"), "text/html") {
		s.fail(c, NewProblem(http.StatusNotFound, "not-found", message.CallNoFile()))
		return
	}
	if s.redirectToPublicURL(c) {
		return
	}
	s.index(c)
}

// redirectToPublicURL redirects requests under another name of this machine, such as localhost for 127.0.0.1, to the public URL. Browsers store
// cookies by host name, so that a login that begins under one name could not end under the other, and writes would be refused. Only
// names of this machine are redirected, because a proxy may set another Host, which would cause a redirect loop.
func (s *Server) redirectToPublicURL(c *gin.Context) bool {
	here, public := c.Request.Host, s.PublicURL
	if strings.EqualFold(here, public.Host) {
		return false
	}
	u := url.URL{Scheme: public.Scheme, Host: here}
	if u.Port() != public.Port() || !loopback.Is(u.Hostname()) || !loopback.Is(public.Hostname()) {
		return false
	}
	// The URL is built from the path and the query only, so that they cannot name another host.
	to := url.URL{Scheme: public.Scheme, Host: public.Host, Path: c.Request.URL.Path, RawPath: c.Request.URL.RawPath, RawQuery: c.Request.URL.RawQuery}
	c.Redirect(http.StatusTemporaryRedirect, to.String())
	return true
}

func (s *Server) file(c *gin.Context, name string, data []byte) {
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" {
		kind = "application/octet-stream"
	}
	if strings.HasPrefix(name, "assets/") { // their names contain the hash of their content
		c.Header("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		c.Header("Cache-Control", "no-cache")
	}
	c.Data(http.StatusOK, kind, data)
}

// index returns the page for each response, because it contains the nonce that allows the application's styles.
func (s *Server) index(c *gin.Context) {
	data, err := fs.ReadFile(s.Web, "index.html")
	if err != nil {
		c.Data(http.StatusOK, "text/html; charset=utf-8", []byte(notBuiltPage))
		return
	}
	nonce, ancestors, embedded := rand.Text(), nobody, s.embeds(c.Request)
	if embedded {
		ancestors = strings.Join(s.EmbedOrigins, " ")
		c.Writer.Header().Del("X-Frame-Options") // it cannot name origins
	}
	c.Header("Content-Security-Policy", contentPolicy(nonce, ancestors))
	c.Header("Cache-Control", "no-store")
	page := strings.NewReplacer(noncePlaceholder, nonce, embeddedPlaceholder, strconv.FormatBool(embedded)).Replace(string(data))
	c.Data(http.StatusOK, "text/html; charset=utf-8", []byte(page))
}
