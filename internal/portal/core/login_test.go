package core

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestLoginsShareOneDiscovery checks that logins which begin while the provider does not answer cause one request to it, and that the others get
// its answer although the caller of the first login has gone away.
func TestLoginsShareOneDiscovery(t *testing.T) {
	var requests atomic.Int32
	asked, answer := make(chan struct{}), make(chan struct{})
	var provider *httptest.Server
	provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			close(asked)
			<-answer
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": provider.URL, "authorization_endpoint": provider.URL + "/auth",
			"token_endpoint": provider.URL + "/token", "jwks_uri": provider.URL + "/keys"})
	}))
	defer provider.Close()
	l := newLogin(Config{Issuer: provider.URL})
	first, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := l.provider(first)
		left <- err
	}()
	<-asked
	const others = 3
	results := make(chan error, others)
	for range others {
		go func() {
			p, err := l.provider(t.Context())
			if err == nil && p.Endpoint().AuthURL != provider.URL+"/auth" {
				err = errors.New("the provider has another endpoint: " + p.Endpoint().AuthURL)
			}
			results <- err
		}()
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that has gone away: %v", err)
	}
	close(answer)
	for range others {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests to the provider, want 1", n)
	}
}

// TestLoginDiscoversAgain checks that a failed discovery is repeated by the next login.
func TestLoginDiscoversAgain(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	var provider *httptest.Server
	provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": provider.URL})
	}))
	defer provider.Close()
	l := newLogin(Config{Issuer: provider.URL})
	if _, err := l.provider(t.Context()); err == nil {
		t.Error("a provider that is down was discovered")
	}
	down.Store(false)
	if p, err := l.provider(t.Context()); err != nil || p == nil {
		t.Errorf("a provider that answers again: %v", err)
	}
}

func TestLocalPath(t *testing.T) {
	for in, want := range map[string]string{
		"/tickets/T-1?x=1#y": "/tickets/T-1?x=1#y", "": "/", "https://evil.example": "/", "//evil.example": "/", `/\evil.example`: "/",
		"/\t/evil.example": "/", "javascript:alert(1)": "/", "/%2f/evil": "/", "/auth/logout": "/", "relative": "/", "/%zz": "/",
	} {
		if got := localPath(in); got != want {
			t.Errorf("localPath(%q) = %q, want %q", in, got, want)
		}
	}
}
