package portal

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

func TestLoginFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		do     func(x *site, b *portaltest.Browser) portaltest.Answer
		want   string
	}{
		"denied": {"the person said no at the provider", func(_ *site, b *portaltest.Browser) portaltest.Answer {
			u, _ := url.Parse(b.Get("/auth/login").Header.Get("Location"))
			return b.Get("/auth/callback?error=access_denied&state=" + u.Query().Get("state"))
		}, core.LoginDenied},
		"no login begun": {"a link from somebody else, or a login that waited too long", func(_ *site, b *portaltest.Browser) portaltest.Answer {
			return b.Get("/auth/callback?code=x&state=y")
		}, core.LoginExpired},
		"other state": {"a callback of another login", func(_ *site, b *portaltest.Browser) portaltest.Answer {
			b.Get("/auth/login")
			return b.Get("/auth/callback?code=x&state=y")
		}, core.LoginInvalid},
		"bad code": {"the provider rejects it", func(_ *site, b *portaltest.Browser) portaltest.Answer {
			u, _ := url.Parse(b.Get("/auth/login").Header.Get("Location"))
			return b.Get("/auth/callback?code=x&state=" + u.Query().Get("state"))
		}, core.LoginInvalid},
		"bad nonce": {"a token of another login", func(x *site, b *portaltest.Browser) portaltest.Answer {
			x.provider.Claims = func(c map[string]any) { c["nonce"] = "other" }
			return callback(x, b, "alice")
		}, core.LoginInvalid},
		"other audience": {"a token for another program", func(x *site, b *portaltest.Browser) portaltest.Answer {
			x.provider.Claims = func(c map[string]any) { c["aud"] = "other" }
			return callback(x, b, "alice")
		}, core.LoginInvalid},
		"expired token": {"too late", func(x *site, b *portaltest.Browser) portaltest.Answer {
			x.provider.Claims = func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() }
			return callback(x, b, "alice")
		}, core.LoginInvalid},
		"unknown person": {"the person is not in the catalog", func(x *site, b *portaltest.Browser) portaltest.Answer {
			return callback(x, b, "mallory")
		}, core.LoginUnknown},
		"provider away": {"the provider does not answer", func(x *site, b *portaltest.Browser) portaltest.Answer {
			x.provider.Close()
			return b.Get("/auth/login?returnTo=/x")
		}, core.LoginUnavailable},
		"no provider": {"none is configured yet", func(x *site, b *portaltest.Browser) portaltest.Answer {
			x.Issuer = core.NoIssuer
			return b.Get("/auth/login?returnTo=/x")
		}, core.LoginUnset},
	} {
		t.Run(name, func(t *testing.T) {
			x := newSite(t)
			b := x.as("")
			a := tc.do(x, b)
			to, _ := url.Parse(a.Header.Get("Location"))
			if a.Status != http.StatusFound || to.Path != "/login" || to.Query().Get("error") != tc.want {
				t.Errorf("%s: want %s, got %d %s", tc.reason, tc.want, a.Status, to)
			}
			if me := b.Get("/api/v1/me"); me.Status != http.StatusUnauthorized {
				t.Errorf("there is a session after %s: %d", name, me.Status)
			}
		})
	}
}

func callback(x *site, b *portaltest.Browser, who string) portaltest.Answer {
	back, _ := url.Parse(x.provider.Login(x.t, b.Get("/auth/login").Header.Get("Location"), who))
	return b.Get(back.RequestURI())
}

func TestSessionLifecycle(t *testing.T) {
	x := newSite(t)
	b := x.as("")
	start := b.Get("/auth/login")
	before := cookie(t, start)
	back, _ := url.Parse(x.provider.Login(t, start.Header.Get("Location"), "alice"))
	done := b.Get(back.RequestURI())
	after := cookie(t, done)
	if before.Value == after.Value {
		t.Error("the token from before the login is that of the session")
	}
	if !after.HttpOnly || after.SameSite != http.SameSiteLaxMode {
		t.Errorf("cookie: %+v", after)
	}
	if again := b.Get(back.RequestURI()); !strings.Contains(again.Header.Get("Location"), core.LoginExpired) {
		t.Errorf("a callback was accepted twice: %s", again.Header.Get("Location"))
	}
	var me struct {
		Person struct{ ID, DisplayName string }
		Roles  []string
		Leader struct{ ID string }
	}
	if b.Get("/api/v1/me").
		Into(t, &me); me.Person.DisplayName != "Alice" || me.Leader.ID != "carol" ||
		strings.Join(me.Roles, " ") != "requester application-owner" {
		t.Errorf("me: %+v", me)
	}
	stolen := portaltest.NewBrowser(t, x.base)
	u, _ := url.Parse(x.base)
	stolen.Client.Jar.SetCookies(u, []*http.Cookie{{Name: after.Name, Value: after.Value}})
	out := b.Post("/auth/logout", nil)
	var to struct{ Redirect string }
	if out.Into(t, &to); !strings.HasPrefix(to.Redirect, x.provider.URL+"/end?") || !strings.Contains(to.Redirect, "id_token_hint=") {
		t.Errorf("the logout does not end at the provider: %s", to.Redirect)
	}
	if got := stolen.Get("/api/v1/me").Status; got != http.StatusUnauthorized {
		t.Errorf("the token after the logout: %d", got)
	}
	claims := x.as("")
	if claims.Login(x.provider, "/", "erin", "auditors"); claims.Post("/api/v1/tickets", newTicket("app-889", "bobs-cluster")).Status != http.StatusForbidden {
		t.Error("the role of the claim is missing")
	}
}

func cookie(t *testing.T, a portaltest.Answer) *http.Cookie {
	t.Helper()
	res := http.Response{Header: a.Header}
	all := res.Cookies()
	if len(all) == 0 {
		t.Fatalf("no cookie in %d %v", a.Status, a.Header)
	}
	return all[len(all)-1]
}

func TestCrossSiteWritesAreRefused(t *testing.T) {
	x := newSite(t)
	b := x.as("alice")
	for name, tc := range map[string]struct {
		reason string
		header http.Header
		want   int
	}{
		"own page":     {"as the web application does", http.Header{"X-Acp-Request": {"1"}, "Origin": {x.base}, "Sec-Fetch-Site": {"same-origin"}}, 422},
		"program":      {"a program sends neither", http.Header{"X-Acp-Request": {"1"}}, 422},
		"form":         {"a form cannot set the header", http.Header{"Origin": {x.base}}, 403},
		"other origin": {"another site", http.Header{"X-Acp-Request": {"1"}, "Origin": {"https://evil.example"}}, 403},
		"null origin":  {"a sandboxed page", http.Header{"X-Acp-Request": {"1"}, "Origin": {"null"}}, 403},
		"same site":    {"a neighbour on the same domain is not the portal", http.Header{"X-Acp-Request": {"1"}, "Sec-Fetch-Site": {"same-site"}}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			if got := b.PostWith("/api/v1/tickets", newTicket("app-888", "nothing"), tc.header).Status; got != tc.want {
				t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	x := newSite(t)
	b := x.as("alice")
	big := newTicket("app-888", "bobs-cluster")
	big["reason"] = strings.Repeat("x", 70<<10)
	a := b.Post("/api/v1/tickets", big)
	var p problemBody
	if a.Into(t, &p); a.Status != http.StatusRequestEntityTooLarge || p.Code != "too-large" || p.RequestID == "" {
		t.Errorf("a large body: %d %s", a.Status, a.Body)
	}
}

func TestWeb(t *testing.T) {
	x := newSite(t)
	b := x.as("")
	page := func(path, accept string) *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, x.base+path, nil)
		req.Header.Set("Accept", accept)
		res, err := b.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() }) // bodies are small
		return res
	}
	res := page("/tickets/T-1", "text/html")
	line, _ := bufio.NewReader(res.Body).ReadString('>')
	nonce := strings.TrimSuffix(strings.TrimPrefix(line, `<meta name="csp-nonce" content="`), `">`)
	csp := res.Header.Get("Content-Security-Policy")
	if res.StatusCode != http.StatusOK || len(nonce) < 20 || !strings.Contains(csp, "style-src 'self' 'nonce-"+nonce+"'") || strings.Contains(csp, "unsafe") {
		t.Errorf("the page lacks the nonce of its policy: %q, %s", line, csp)
	}
	if got := page("/assets/app-1a2b.js", "*/*").Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("hashed assets are not cached: %s", got)
	}
	for path, want := range map[string]int{"/assets/old-3c4d.js": 404, "/favicon.svg": 200, "/api/v1/nothing": 404, "/.gitkeep": 404, "/../routes.go": 404} {
		if got := page(path, "*/*").StatusCode; got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	if got := page("/api/v1/nothing", "text/html").Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("an unknown API address gives a page: %s", got)
	}
	if got := b.PostWith("/api/v1/me", nil, http.Header{"X-Acp-Request": {"1"}}).Status; got != http.StatusMethodNotAllowed {
		t.Errorf("another method: %d", got)
	}
}

// TestLoopbackNamesRedirectToThePublicURL checks that other names of the machine redirect to the host of the public URL, to which the cookies belong.
func TestLoopbackNamesRedirectToThePublicURL(t *testing.T) {
	x := newSite(t)
	public := x.PublicURL.Host
	port := x.PublicURL.Port()
	for host, tc := range map[string]struct {
		path, want string
		reason     string
	}{
		public: {"/tickets/T-1?tab=statement", "", "the public URL is not redirected"},
		"localhost:" + port: {
			"/tickets/T-1?tab=statement", x.base + "/tickets/T-1?tab=statement",
			"people type localhost, and the login ends at 127.0.0.1, which has other cookies",
		},
		"LOCALHOST:" + port:         {"/auth/login?returnTo=/x", x.base + "/auth/login?returnTo=/x", "a login must begin at the host where it ends"},
		"[::1]:" + port:             {"//evil.example/x", x.base + "//evil.example/x", "no path leads to another host"},
		"localhost:1":               {"/", "", "another port is a tunnel or another program"},
		"acp-portal.acp-system.svc": {"/", "", "a proxy that sends its own name must not be redirected in a loop"},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+public+"/", nil)
		u, err := url.ParseRequestURI(tc.path)
		if err != nil {
			t.Fatal(err)
		}
		req.URL, req.Host, req.RemoteAddr = u, host, "127.0.0.1:1"
		req.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		x.ServeHTTP(w, req)
		if got := w.Header().Get("Location"); got != tc.want {
			t.Errorf("%s%s: %s; redirected to %q, want %q", host, tc.path, tc.reason, got, tc.want)
		}
	}
	x.PublicURL, _ = url.Parse("https://acp.example.com")
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
	req.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	if x.ServeHTTP(w, req); w.Code != http.StatusOK {
		t.Errorf("a request through a proxy on the same machine was redirected: %d", w.Code)
	}
}
