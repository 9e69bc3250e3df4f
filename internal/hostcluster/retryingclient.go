package hostcluster

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// retryInterval is the time between two attempts to reach an API server.
const retryInterval = 500 * time.Millisecond

// NewRetryingClient returns an HTTP client for informers. The backoff of informers grows to 30 seconds while the API
// server is unavailable, and a revocation would be delayed by as much afterwards; this client retries inside the
// request instead, and continues within half a second. It retries only reads whose connection could not be established,
// until their context ends: requests of informers have no timeout, so the client is not suitable for requests for which
// a person waits. report, which may be nil, is called once when the server becomes unreachable (with the error) and
// once when it is reachable again (with nil).
func NewRetryingClient(config *rest.Config, report func(error)) (*http.Client, error) {
	c := rest.CopyConfig(config)
	away := new(atomic.Bool)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &retryingTransport{next: next, away: away, report: report}
	})
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make an HTTP client for the host cluster: %w", err)
	}
	return client, nil
}

type retryingTransport struct {
	next   http.RoundTripper
	away   *atomic.Bool
	report func(error)
}

func (p *retryingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		res, err := p.next.RoundTrip(r)
		if err == nil {
			p.tell(false, nil)
			return res, nil
		}
		if r.Method != http.MethodGet || !notConnected(err) {
			return nil, err
		}
		p.tell(true, err)
		select {
		case <-r.Context().Done():
			return nil, err
		case <-time.After(retryInterval):
		}
	}
}

func (p *retryingTransport) tell(away bool, err error) {
	if p.away.CompareAndSwap(!away, away) && p.report != nil {
		p.report(err)
	}
}

// notConnected reports whether the connection could not be established, so that the server has not received the
// request.
func notConnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
