package hostcluster

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// clockTolerance is the largest difference that is ignored: the dates of responses have a resolution of one second.
	clockTolerance = 3 * time.Second
	// clockWindow is the time in which all responses must agree that the program's own clock is right again.
	clockWindow = 30 * time.Second
)

// Clock is a clock that is never behind the clock of the host's API server. A clock that is behind would prolong grants
// that have ended, and would restore grants that were removed; so the later of the two times counts. The difference
// is measured from the responses that the program receives anyway; see Wrap.
type Clock struct {
	clock.WithTicker // the program's own clock
	// OnChange is called when the clock is found to be behind, with the difference, and with 0 when it is right again.
	OnChange func(behind time.Duration)

	mu     sync.Mutex
	behind time.Duration
	// most is the largest difference that a response showed since the window began.
	most   time.Duration
	window time.Time
}

// Now returns the later of the program's time and the API server's.
func (c *Clock) Now() time.Time { return c.WithTicker.Now().Add(c.Behind()) }

// Since returns the time since t, measured with Now.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Behind returns how far the program's own clock is behind.
func (c *Clock) Behind() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.behind
}

// Wrap returns a transport that reads the Date header of each response.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return dateReader{next, c} }

type dateReader struct {
	next  http.RoundTripper
	clock *Clock
}

func (d dateReader) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := d.next.RoundTrip(r)
	if err == nil {
		if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
			d.clock.observe(date)
		}
	}
	return res, err
}

// observe records that a response with this date arrived now. The server's clock shows at least this date, so a
// response that took long makes the program's clock look less behind than it is, and never more.
func (c *Clock) observe(date time.Time) {
	c.mu.Lock()
	now, before := c.WithTicker.Now(), c.behind
	shown := date.Sub(now)
	if shown < clockTolerance {
		shown = 0
	}
	switch c.most = max(c.most, shown); {
	case c.most > c.behind:
		c.behind, c.window = c.most, now
	case now.Sub(c.window) >= clockWindow:
		c.behind, c.most, c.window = c.most, 0, now
	}
	differs := c.behind - before
	behind := c.behind
	c.mu.Unlock()
	if c.OnChange != nil && (differs.Abs() >= clockTolerance) {
		c.OnChange(behind)
	}
}
