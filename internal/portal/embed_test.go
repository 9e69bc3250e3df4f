package portal

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestFraming checks for every kind of response whose pages may frame it: those of the configured origins, and only the page of one
// application or resource with embed=1. Such a page contains a mark of that, because what it shows in a frame is read only.
func TestFraming(t *testing.T) {
	x := newSite(t)
	embedding := x.config
	embedding.EmbedOrigins = []string{"https://backstage.example.com", "http://localhost:3000"}
	for name, tc := range map[string]struct {
		config Config
		framed bool
	}{"without the setting": {x.config, false}, "with the setting": {embedding, true}} {
		tc.config.Metrics = prometheus.NewRegistry()
		server, err := New(t.Context(), tc.config)
		if err != nil {
			t.Fatal(err)
		}
		get := func(method, path, accept string) *http.Response {
			r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
			r.Host, r.RemoteAddr = x.config.PublicURL.Host, "127.0.0.1:1"
			r.Header.Set("Accept", accept)
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			return w.Result()
		}
		check := func(method, path, accept string, framed bool) {
			t.Helper()
			answer := get(method, path, accept)
			defer func() { _ = answer.Body.Close() }()
			ancestors, deny := "frame-ancestors 'none'", []string{"DENY"}
			if framed {
				ancestors, deny = "frame-ancestors https://backstage.example.com http://localhost:3000", nil
			}
			policy := answer.Header.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'self'; ") || !strings.HasSuffix(policy, "; "+ancestors) ||
				strings.Count(policy, "frame-ancestors") != 1 || !slices.Equal(answer.Header["X-Frame-Options"], deny) ||
				answer.Header.Get("Cross-Origin-Opener-Policy") != "same-origin" {
				t.Errorf("%s: %s %s: %v", name, method, path, answer.Header)
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			if told := strings.Contains(string(body), `content="true"`); told != framed {
				t.Errorf("%s: %s %s: the page was told: %v", name, method, path, told)
			}
		}
		const page = "text/html,*/*"
		for _, path := range []string{"/applications/app-888?embed=1", "/resources/bobs-cluster?embed=1", "/resources/none?quiet=30&embed=1",
			"/resources/a%2Fb?embed=1"} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				check(method, path, page, tc.framed)
			}
			check(http.MethodGet, path, "application/json", false)
			check(http.MethodPost, path, page, false)
		}
		for _, path := range []string{
			"/", "/?embed=1", "/index.html?embed=1", "/login", "/login?embed=1", "/login?returnTo=/applications/app-888?embed=1",
			"/applications?embed=1", "/applications/?embed=1", "/resources?embed=1", "/tickets/T-1?embed=1", "/approvals?embed=1", "/fleet/m1?embed=1",
			"/applications/app-888", "/resources/bobs-cluster", "/applications/app-888?embed=", "/applications/app-888?embed=0",
			"/applications/app-888?embed=true", "/applications/app-888?embed=1&embed=1", "/applications/app-888?embed=0&embed=1",
			"/applications/app-888?Embed=1", "/applications/app-888?embed=1;x=2", "/applications/app-888?x=embed=1", "/applications/app-888/?embed=1",
			"/applications/app-888/access?embed=1", "//applications/app-888?embed=1", "/Applications/app-888?embed=1",
			"/api/v1/applications/app-888?embed=1", "/api/v1/me?embed=1", "/api/v1/none?embed=1", "/auth/login?embed=1", "/auth/callback?embed=1",
			"/assets/app-1a2b.js?embed=1", "/favicon.svg?embed=1", "/none.js?embed=1", "/healthz?embed=1", "/readyz?embed=1",
		} {
			check(http.MethodGet, path, page, false)
		}
	}
}
