package clickhouse

import (
	"context"
	"net/http"
	"sync"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// passwordHeader is how the driver authenticates over HTTPS; without TLS it does so by basic authentication.
const passwordHeader = "X-Clickhouse-Key" //nolint:gosec // the name of a header

// Follow asks for the password again for each new connection, and for each request over HTTP, so that it can be replaced while the
// program runs. When it cannot be read, because it is just being replaced, the last one counts.
func (o *Options) Follow(read func() (string, error)) {
	p := &password{read: read, last: o.driver.Auth.Password}
	o.driver.DialStrategy = func(ctx context.Context, id int, options *driver.Options, dial driver.Dial) (driver.DialResult, error) {
		now := *options
		now.Auth.Password = p.now()
		return driver.DefaultDialStrategy(ctx, id, &now, dial)
	}
	o.driver.TransportFunc = func(t *http.Transport) (http.RoundTripper, error) { return authenticated{t, p}, nil }
}

// password is safe for concurrent use.
type password struct {
	read func() (string, error)

	mu   sync.Mutex
	last string
}

func (p *password) now() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, err := p.read(); err == nil && s != "" {
		p.last = s
	}
	return p.last
}

// authenticated puts the password of now where the driver put that of its connection, which may be an hour old.
type authenticated struct {
	next     http.RoundTripper
	password *password
}

// RoundTrip implements http.RoundTripper.
func (a authenticated) RoundTrip(r *http.Request) (*http.Response, error) {
	user, _, basic := r.BasicAuth()
	r = r.Clone(r.Context()) // a transport may not change the request
	switch {
	case r.Header.Get(passwordHeader) != "":
		r.Header.Set(passwordHeader, a.password.now())
	case basic:
		r.SetBasicAuth(user, a.password.now())
	}
	return a.next.RoundTrip(r)
}
