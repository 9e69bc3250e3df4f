package hostcluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/testenv"
)

// TestRetryingClientWaitsForTheServer checks that a request of an informer survives an outage without being sent again
// by the informer.
func TestRetryingClientWaitsForTheServer(t *testing.T) {
	address := testenv.FreeAddress(t)
	reports := make(chan error, 8)
	client, err := NewRetryingClient(&rest.Config{Host: "http://" + address}, func(err error) { reports <- err })
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan error, 1)
	go func() {
		res, err := client.Get("http://" + address + "/healthz")
		if err == nil {
			err = res.Body.Close()
		}
		answers <- err
	}()
	if err := <-reports; err == nil {
		t.Fatal("report was called without an error, want the connection error")
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.NotFoundHandler()}}
	server.Start()
	defer server.Close()
	if err := <-answers; err != nil {
		t.Errorf("the request failed though the server is reachable again: %v", err)
	}
	if err := <-reports; err != nil {
		t.Errorf("report was called with %v, want nil because the server is back", err)
	}
}

func TestRetryingClientGivesUp(t *testing.T) {
	refused := errors.New("refused")
	dial := &net.OpError{Op: "dial", Err: refused}
	cases := map[string]struct {
		method string
		err    error
		ended  bool
		reason string
	}{
		"a write":            {http.MethodPost, dial, false, "whoever waits for it decides what to do"},
		"a broken read":      {http.MethodGet, &net.OpError{Op: "read", Err: refused}, false, "the server saw it, and the informer begins anew"},
		"the program stops":  {http.MethodGet, dial, true, "nobody waits any more"},
		"another difficulty": {http.MethodGet, refused, false, "waiting would not help"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if c.ended {
				cancel()
			}
			defer cancel()
			tries := 0
			p := &retryingTransport{away: new(atomic.Bool), next: roundTripper(func(*http.Request) (*http.Response, error) {
				tries++
				return nil, c.err
			})}
			r, err := http.NewRequestWithContext(ctx, c.method, "http://host.invalid", strings.NewReader(""))
			if err != nil {
				t.Fatal(err)
			}
			res, err := p.RoundTrip(r)
			if err == nil {
				_ = res.Body.Close()
			}
			if !errors.Is(err, refused) || tries != 1 {
				t.Errorf("%s: %v after %d tries", c.reason, err, tries)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
