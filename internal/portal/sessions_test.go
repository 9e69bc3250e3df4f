package portal

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	credentialstore "github.com/acp-io/acp/internal/credential/gormstore"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

func loggedIn(b *portaltest.Browser) bool { return b.Get("/api/v1/me").Status == http.StatusOK }

// TestSessionsAreListedAndEnded checks that a person sees their sessions and can end the others.
func TestSessionsAreListedAndEnded(t *testing.T) {
	x := newSite(t)
	here, there, bob := x.as("alice"), x.as("alice"), x.as("bob")
	var list struct {
		Items []struct {
			Current              bool
			CreatedAt, ExpiresAt time.Time
			UserAgent            string
		}
	}
	here.Get("/api/v1/me/sessions").Into(t, &list)
	current := 0
	for _, s := range list.Items {
		if s.Current {
			current++
		}
		if s.UserAgent == "" || s.CreatedAt.IsZero() || !s.ExpiresAt.After(s.CreatedAt) {
			t.Errorf("%+v", s)
		}
	}
	if len(list.Items) != 2 || current != 1 {
		t.Errorf("the sessions of alice are %+v, want two, one of them current", list)
	}
	if a := here.Delete("/api/v1/me/sessions"); a.Status != http.StatusNoContent {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if !loggedIn(here) || loggedIn(there) || !loggedIn(bob) {
		t.Error("other sessions than the remaining ones of alice were ended")
	}
}

func TestSessionsEndByTime(t *testing.T) {
	x := newSite(t)
	idle := x.as("alice")
	// The session manager uses the machine's clock, so the test moves the stored times into the past.
	id := idle.Client.Jar.Cookies(mustParse(t, x.base))[0].Value
	if a := idle.Get("/api/v1/me"); a.Status != http.StatusOK {
		t.Fatal(a.Status)
	}
	data, _, err := x.sessionData(t, id)
	if err != nil {
		t.Fatal(err)
	}
	var me struct{ SessionExpiresAt time.Time }
	idle.Get("/api/v1/me").Into(t, &me)
	if left := time.Until(me.SessionExpiresAt); left <= 0 || left > x.SessionIdle {
		t.Errorf("an idle session ends in %s, not later than %s", left, x.SessionIdle)
	}
	for reason, at := range map[string]time.Time{"idle": time.Now().Add(-time.Second), "again": time.Now().Add(-time.Hour)} {
		if err := x.credentials.Manager().CommitCtx(t.Context(), sessionID(id), data, at); err != nil {
			t.Fatal(err)
		}
		if loggedIn(idle) {
			t.Errorf("%s: a session that has ended is accepted", reason)
		}
	}
}

// TestSessionFixation checks that a token from before the login is not that of the session.
func TestSessionFixation(t *testing.T) {
	x := newSite(t)
	planted := x.as("")
	start := planted.Get("/auth/login")
	known := cookie(t, start).Value
	victim := portaltest.NewBrowser(t, x.base)
	victim.Client.Jar.SetCookies(mustParse(t, x.base), []*http.Cookie{{Name: core.CookieName, Value: known}})
	if to := victim.Login(x.provider, "/", "alice"); to != "/" {
		t.Fatalf("the login redirected to %s", to)
	}
	if !loggedIn(victim) || loggedIn(planted) {
		t.Error("the token from before the login is accepted")
	}
	invented := portaltest.NewBrowser(t, x.base)
	invented.Client.Jar.SetCookies(mustParse(t, x.base), []*http.Cookie{{Name: core.CookieName, Value: strings.Repeat("A", 43)}})
	if got := cookie(t, invented.Get("/auth/login")).Value; got == strings.Repeat("A", 43) {
		t.Error("a token that the portal did not create is used")
	}
}

// endingSessions deletes sessions when they are about to be committed, as a logout does that happens between the find and
// the commit of another request.
type endingSessions struct {
	*credentialstore.Sessions
	ending atomic.Bool
}

func (s *endingSessions) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	if s.ending.Swap(false) {
		if err := s.DeleteCtx(ctx, token); err != nil {
			return err
		}
	}
	return s.Sessions.CommitCtx(ctx, token, data, expiry)
}

// TestLoginRestoresNoEndedSession checks that the begin and the callback of a login do not store a session again that was
// ended while they were in progress.
func TestLoginRestoresNoEndedSession(t *testing.T) {
	x := newSite(t)
	sessions := &endingSessions{Sessions: x.credentials.Manager()}
	config := x.config
	config.Sessions, config.Metrics = sessions, prometheus.NewRegistry()
	server, err := New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(server)
	t.Cleanup(front.Close)
	call := func(session, path string) portaltest.Answer {
		b := portaltest.NewBrowser(t, front.URL)
		b.Client.Jar.SetCookies(mustParse(t, front.URL), []*http.Cookie{{Name: core.CookieName, Value: session}})
		return b.Get(path)
	}
	for name, path := range map[string]string{
		"begin": "/auth/login", "begin again": "/auth/login?fresh=true", "callback": "/auth/callback?error=access_denied",
	} {
		t.Run(name, func(t *testing.T) {
			b := x.as("alice")
			if name == "callback" {
				b.Get("/auth/login?fresh=true")
			}
			session := b.Client.Jar.Cookies(mustParse(t, x.base))[0].Value
			if got := call(session, "/api/v1/me").Status; got != http.StatusOK {
				t.Fatalf("the session of alice: got status %d, want 200", got)
			}
			sessions.ending.Store(true)
			call(session, path)
			if sessions.ending.Load() {
				t.Fatal("the request stored no session")
			}
			if got := call(session, "/api/v1/me").Status; got != http.StatusUnauthorized {
				t.Errorf("a session that was ended meanwhile: got status %d, want 401", got)
			}
		})
	}
}

// TestDepartedPersonLosesAccess checks that sessions and tokens of a person who is not in the catalog any more are refused.
func TestDepartedPersonLosesAccess(t *testing.T) {
	x := newSite(t)
	b, secret := x.as("frank"), x.token("frank", "read")
	bearer := http.Header{"Authorization": {"Bearer " + secret}}
	if a := x.as("").Call(http.MethodGet, "/api/v1/me", nil, bearer); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	x.leave(t, "frank")
	if loggedIn(b) {
		t.Error("the session is accepted")
	}
	if a := x.as("").Call(http.MethodGet, "/api/v1/me", nil, bearer); a.Status != http.StatusUnauthorized {
		t.Errorf("the token is accepted: %d", a.Status)
	}
}
