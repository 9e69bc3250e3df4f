package hubble

import "time"

const (
	// settle is the time in which a connection's verdict and the trace of its opening packet follow each other.
	settle = 5 * time.Second
	// idle is how long a connection without traffic is remembered, at least.
	idle = time.Hour
	// maxConnections bounds what is remembered; beyond it the longest idle are forgotten early.
	maxConnections = 1 << 20
)

// connections remembers which connections were counted, in two generations: what is used moves to the young one, and
// the old one is dropped as a whole. It reads the time of the events, not a clock. A connection is known by a number made of
// its ends; its value is the second of its verdict, 0 without one.
type connections struct {
	young, old map[uint64]uint32
	rotated    time.Time
	limit      int
	// quietUntil: before this time, a connection that is not remembered may have been counted, by the run of the program
	// before this one or before it was forgotten early. So its traffic is only remembered.
	quietUntil time.Time
}

func newConnections(resumed time.Time, limit int) *connections {
	c := &connections{young: map[uint64]uint32{}, limit: limit}
	if !resumed.IsZero() {
		c.quietUntil = resumed.Add(idle)
	}
	return c
}

// take remembers the connection of the event, and says why it does not count when it is not the first sign of it.
func (c *connections) take(cl class, connection uint64, at time.Time) skip {
	c.rotate(at)
	if cl == classVerdict { // counts always
		c.young[connection] = uint32(at.Unix())
		return skipNone
	}
	verdict, young := c.young[connection]
	known := young
	if !young {
		verdict, known = c.old[connection]
	}
	if !young {
		c.young[connection] = verdict
	}
	switch {
	case cl == classOpened:
		// The ports may be those of a connection that ended: only a verdict right beside it is of the same one.
		if verdict != 0 && time.Duration(at.Unix()-int64(verdict)).Abs() <= settle/time.Second {
			return skipKnown
		}
	case known:
		return skipKnown
	case at.Before(c.quietUntil):
		return skipForgotten
	}
	return skipNone
}

func (c *connections) rotate(now time.Time) {
	if c.rotated.IsZero() {
		c.rotated = now
	}
	full := len(c.young) >= c.limit/2
	if !full && now.Sub(c.rotated) < idle {
		return
	}
	if full && len(c.old) > 0 && now.Sub(c.rotated) < idle {
		c.quietUntil = now.Add(idle)
	}
	c.old, c.young, c.rotated = c.young, make(map[uint64]uint32, min(len(c.young), c.limit/2)), now
}
