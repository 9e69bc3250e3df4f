package clickhouse

import (
	"context"
	"net/http"
	"sync"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// passwordHeader is the header with which the driver authenticates over HTTPS; without TLS it uses basic authentication.
const passwordHeader = "X-Clickhouse-Key" //nolint:gosec // the name of a header

// FollowPassword makes the driver read the password again for each new connection, and for each request over HTTP, so that it can
// be replaced while the program runs. If it cannot be read, for example in the middle of a replacement, the last one is used.
func (o *Options) FollowPassword(read func() (string, error)) {
	p := &password{read: read, last: o.driver.Auth.Password}
	o.driver.DialStrategy = func(ctx context.Context, id int, options *driver.Options, dial driver.Dial) (driver.DialResult, error) {
		now := *options
		now.Auth.Password = p.now()
		return driver.DefaultDialStrategy(ctx, id, &now, dial)
	}
	o.driver.TransportFunc = func(t *http.Transport) (http.RoundTripper, error) { return authenticated{t, p}, nil }
}

// password is the last password that was read. It is safe for concurrent use.
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

// authenticated is a RoundTripper that replaces the driver's password, which may be an hour old, by the current one.
type authenticated struct {
	next     http.RoundTripper
	password *password
}

// RoundTrip implements http.RoundTripper.
func (a authenticated) RoundTrip(r *http.Request) (*http.Response, error) {
	user, _, basic := r.BasicAuth()
	r = r.Clone(r.Context()) // a RoundTripper must not change the request
	switch {
	case r.Header.Get(passwordHeader) != "":
		r.Header.Set(passwordHeader, a.password.now())
	case basic:
		r.SetBasicAuth(user, a.password.now())
	}
	return a.next.RoundTrip(r)
}
