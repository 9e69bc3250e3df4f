package portal

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"
)

// TestTransport checks that requests are served only over TLS, of the portal or of a configured proxy, because they may contain passwords or cookies.
func TestTransport(t *testing.T) {
	x := newSite(t)
	x.PublicURL = &url.URL{Scheme: "https", Host: "acp.example.com"}
	x.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	for name, tc := range map[string]struct {
		reason, method, path, peer, accept string
		forwarded                          []string
		tls                                bool
		status                             int
		location                           string
	}{
		"TLS of its own": {reason: "the connection is encrypted", peer: "192.0.2.1:1", tls: true, status: http.StatusUnauthorized},
		"TLS, invented header": {
			reason: "headers of other addresses than the proxies' are ignored", peer: "192.0.2.1:1",
			tls: true, forwarded: []string{"http"}, status: http.StatusUnauthorized,
		},
		"this machine":            {reason: "a proxy beside the portal, or a forwarded port", peer: "127.0.0.1:1", status: http.StatusUnauthorized},
		"proxy":                   {reason: "it has TLS", peer: "10.0.0.5:1", forwarded: []string{"https"}, status: http.StatusUnauthorized},
		"proxy that says nothing": {reason: "it is trusted to have TLS", peer: "10.0.0.5:1", status: http.StatusUnauthorized},
		"proxy, mapped address":   {reason: "one address, two spellings", peer: "[::ffff:10.0.0.5]:1", status: http.StatusUnauthorized},
		"two proxies": {
			reason: "between them there is no TLS, in front there is", peer: "10.0.0.5:1",
			forwarded: []string{"https, http"}, status: http.StatusUnauthorized,
		},
		"past the proxy": {reason: "unencrypted through the network", peer: "192.0.2.1:1", status: http.StatusForbidden},
		"past the proxy, lying": {
			reason: "headers of other addresses than the proxies' are ignored", peer: "192.0.2.1:1", forwarded: []string{"https"}, status: http.StatusForbidden,
		},
		"no address":         {reason: "unknown is not trusted", peer: "@", status: http.StatusForbidden},
		"plain at the proxy": {reason: "unencrypted as far as the proxy", peer: "10.0.0.5:1", forwarded: []string{"http"}, status: http.StatusForbidden},
		"page at the proxy": {
			reason: "people type addresses without https", path: "/tickets?x=1", peer: "10.0.0.5:1", accept: "text/html",
			forwarded: []string{"http"}, status: http.StatusPermanentRedirect, location: "https://acp.example.com/tickets?x=1",
		},
		"double slash": {
			reason: "the redirect stays on the portal's host", path: "//evil.example/", peer: "10.0.0.5:1", accept: "text/html",
			forwarded: []string{"http"}, status: http.StatusPermanentRedirect, location: "https://acp.example.com//evil.example/",
		},
		"form at the proxy": {
			reason: "a redirect would make the browser send it again", method: http.MethodPost,
			peer: "10.0.0.5:1", accept: "text/html", forwarded: []string{"http"}, status: http.StatusForbidden,
		},
		"probe": {reason: "load balancers call it from any address; it contains no data", path: "/healthz", peer: "192.0.2.1:1", status: http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			method, path := tc.method, tc.path
			if method == "" {
				method = http.MethodGet
			}
			if path == "" {
				path = "/api/v1/me"
			}
			r := httptest.NewRequestWithContext(t.Context(), method, "http://acp.example.com/", nil)
			r.URL, r.RemoteAddr = &url.URL{Path: path}, tc.peer
			if u, err := url.ParseRequestURI(path); err == nil && tc.path != "//evil.example/" {
				r.URL = u
			}
			r.Header["X-Forwarded-Proto"] = tc.forwarded
			r.Header.Set("Accept", tc.accept)
			if tc.tls {
				r.TLS = &tls.ConnectionState{}
			}
			w := httptest.NewRecorder()
			x.ServeHTTP(w, r)
			if w.Code != tc.status || w.Header().Get("Location") != tc.location {
				t.Errorf("%s: %d to %q, want %d to %q: %s", tc.reason, w.Code, w.Header().Get("Location"), tc.status, tc.location, w.Body)
			}
			if got := w.Header().Get("Strict-Transport-Security"); got == "" {
				t.Error("the Strict-Transport-Security header is missing")
			}
		})
	}
}
