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

// patience is how often an API server that does not answer is tried.
const patience = 500 * time.Millisecond

// Patient is an HTTP client for informers. Their own back-off grows to half a minute while the API server is away, and
// that is how much longer a revocation would then wait; this client waits for the server inside the request instead,
// and goes on within half a second. Only reads whose connection was not made are tried again, until their context ends:
// informers' requests have no other end, so it is not for requests that somebody waits for. report, which may be nil,
// is told once when the server stops answering (the error) and once when it is back (nil).
func Patient(config *rest.Config, report func(error)) (*http.Client, error) {
	c := rest.CopyConfig(config)
	away := new(atomic.Bool)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &patient{next: next, away: away, report: report}
	})
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make an HTTP client for the host cluster: %w", err)
	}
	return client, nil
}

type patient struct {
	next   http.RoundTripper
	away   *atomic.Bool
	report func(error)
}

func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		res, err := p.next.RoundTrip(r)
		if err == nil {
			p.tell(false, nil)
			return res, nil
		}
		if r.Method != http.MethodGet || !unconnected(err) {
			return nil, err
		}
		p.tell(true, err)
		select {
		case <-r.Context().Done():
			return nil, err
		case <-time.After(patience):
		}
	}
}

func (p *patient) tell(away bool, err error) {
	if p.away.CompareAndSwap(!away, away) && p.report != nil {
		p.report(err)
	}
}

// unconnected tells that the server never saw the request.
func unconnected(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
