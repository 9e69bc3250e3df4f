package hostcluster

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// clockTolerance is what cannot be told apart: dates of answers have whole seconds.
	clockTolerance = 3 * time.Second
	// clockWindow is how long all answers have to say that the program's own clock is right again.
	clockWindow = 30 * time.Second
)

// Clock is a program's clock that is not behind the host's API server. A clock that is behind would let grants last that
// have ended, and bring back those that were taken away already; so of the two the later counts. It learns from the answers
// that the program gets anyway, see Wrap.
type Clock struct {
	clock.WithTicker // the program's own
	// Told is called when the clock turns out to be behind, by how much, and with 0 when it is right again.
	Told func(behind time.Duration)

	mu     sync.Mutex
	behind time.Duration
	// most is the most that an answer showed since the window began.
	most   time.Duration
	window time.Time
}

// Now is the later of the two.
func (c *Clock) Now() time.Time { return c.WithTicker.Now().Add(c.Behind()) }

// Since measures with Now.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Behind is how far the program's own clock is behind.
func (c *Clock) Behind() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.behind
}

// Wrap reads the date of each answer.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return dated{next, c} }

type dated struct {
	next  http.RoundTripper
	clock *Clock
}

func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := d.next.RoundTrip(r)
	if err == nil {
		if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
			d.clock.saw(date)
		}
	}
	return res, err
}

// saw takes in that an answer of that date arrived now. The server's clock shows at least that, so an answer that was long
// under way makes the own clock look less behind than it is, and never more.
func (c *Clock) saw(date time.Time) {
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
	if c.Told != nil && (differs.Abs() >= clockTolerance) {
		c.Told(behind)
	}
}
