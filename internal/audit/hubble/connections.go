package hubble

import (
	"net/netip"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
)

const (
	// settle is the time in which a connection's verdict and the trace of its opening packet follow each other.
	settle = 5 * time.Second
	// idle is how long a connection without traffic is remembered, at least.
	idle = time.Hour
	// maxConnections bounds what is remembered; beyond it the longest idle are forgotten early.
	maxConnections = 200_000
)

type connection struct {
	source, destination netip.AddrPort
	protocol            v1alpha1.Protocol
}

type marks struct{ verdict time.Time }

// connections remembers which connections were counted, in two generations: what is used moves to the young one, and
// the old one is dropped as a whole. It reads the time of the events, not a clock.
type connections struct {
	young, old map[connection]marks
	rotated    time.Time
	limit      int
	// quietUntil: before this time, a connection that is not remembered may have been counted by the run of the program
	// before this one, so its traffic is only remembered.
	quietUntil time.Time
}

func newConnections(resumed time.Time) *connections {
	c := &connections{young: map[connection]marks{}, limit: maxConnections}
	if !resumed.IsZero() {
		c.quietUntil = resumed.Add(idle)
	}
	return c
}

// counts reports whether the event is the first sign of its connection, and remembers it.
func (c *connections) counts(cl class, o *audit.Observation) bool {
	c.rotate(o.Time)
	key := connection{
		source:      netip.AddrPortFrom(o.Source.Address, o.Source.Port),
		destination: netip.AddrPortFrom(o.Destination.Address, o.Destination.Port),
		protocol:    o.Protocol,
	}
	m, known := c.young[key]
	if !known {
		m, known = c.old[key]
	}
	var first bool
	switch cl {
	case classVerdict:
		first = true
		m.verdict = o.Time
	case classOpened:
		// The ports may be those of a connection that ended: only a verdict right beside it is of the same one.
		first = m.verdict.IsZero() || o.Time.Sub(m.verdict).Abs() > settle
	case classTraffic:
		first = !known && !o.Time.Before(c.quietUntil)
	}
	c.young[key] = m
	return first
}

func (c *connections) rotate(now time.Time) {
	if c.rotated.IsZero() {
		c.rotated = now
	}
	if len(c.young) >= c.limit/2 || now.Sub(c.rotated) >= idle {
		c.old, c.young, c.rotated = c.young, map[connection]marks{}, now
	}
}
