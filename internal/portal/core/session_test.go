package core

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestSessionTimeouts(t *testing.T) {
	m := newSessions(Config{PublicURL: &url.URL{Scheme: "https", Host: "acp.example.com"}, SessionIdle: time.Hour})
	if m.Lifetime != sessionLifetime || m.IdleTimeout != time.Hour {
		t.Errorf("absolute end after %s, idle end after %s", m.Lifetime, m.IdleTimeout)
	}
}

func TestCookieIsOfThisHostOnly(t *testing.T) {
	for address, want := range map[string]string{"https://acp.example.com": "__Host-acp_session", "http://127.0.0.1:8080": "acp_session"} {
		public, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		m := newSessions(Config{PublicURL: public, SessionIdle: time.Hour})
		if m.Cookie.Name != want || m.Cookie.Secure != strings.HasPrefix(address, "https") || !m.Cookie.HttpOnly || m.Cookie.Domain != "" ||
			m.Cookie.Path != "/" ||
			m.Cookie.SameSite != http.SameSiteLaxMode {
			t.Errorf("%s: %+v", address, m.Cookie)
		}
	}
}
