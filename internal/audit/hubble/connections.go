package hubble

import (
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
)

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
// its ends.
type connections struct {
	young, old map[uint64]connection
	rotated    time.Time
	limit      int
	// quietUntil: before this time, a connection that is not remembered may have been counted, by the run of the program
	// before this one or before it was forgotten early. So its traffic is only remembered.
	quietUntil time.Time
}

// connection is small, because there may be a million.
type connection struct {
	// decided is the second of its verdict, 0 without one.
	decided uint32
	// shown is the hour in which it was last counted or shown to be open, in 16 bits: the difference of two is right for
	// years.
	shown uint16
	// verdict is what it was counted with, in 8 bits.
	verdict uint8
}

// hourOf numbers the hours since 1970.
func hourOf(at time.Time) int64 { return at.Unix() / int64(time.Hour/time.Second) }

func newConnections(resumed time.Time, limit int) *connections {
	c := &connections{young: map[uint64]connection{}, limit: limit}
	if !resumed.IsZero() {
		c.quietUntil = resumed.Add(idle)
	}
	return c
}

// take remembers the connection of the event, and says why it does not count when it is not the first sign of it. Then open
// tells that it is traffic of a connection that was not shown to be open in this hour, which was counted with the verdict.
func (c *connections) take(cl class, id uint64, verdict flowpb.Verdict, at time.Time) (why skip, open bool, counted flowpb.Verdict) {
	c.rotate(at)
	hour := uint16(hourOf(at))
	if cl == classVerdict { // counts always
		c.young[id] = connection{decided: uint32(at.Unix()), shown: hour, verdict: uint8(verdict)}
		return skipNone, false, verdict
	}
	was, young := c.young[id]
	known := young
	if !young {
		was, known = c.old[id]
	}
	is := was
	switch {
	case cl == classOpened:
		// The ports may be those of a connection that ended: only a verdict right beside it is of the same one.
		if was.decided != 0 && time.Duration(at.Unix()-int64(was.decided)).Abs() <= settle/time.Second {
			why = skipKnown
		} else {
			is.shown, is.verdict = hour, uint8(verdict)
		}
	case known:
		why, open = skipKnown, int16(hour-was.shown) > 0
	case at.Before(c.quietUntil):
		why, open = skipForgotten, true
	default:
		is.shown, is.verdict = hour, uint8(verdict)
	}
	if open {
		is.shown = hour
	}
	if !young || is != was {
		c.young[id] = is
	}
	return why, open, flowpb.Verdict(is.verdict)
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
	c.old, c.young, c.rotated = c.young, make(map[uint64]connection, min(len(c.young), c.limit/2)), now
}
