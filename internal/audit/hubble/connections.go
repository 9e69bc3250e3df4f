package hubble

import (
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
)

const (
	// verdictTraceWindow is the longest time between a connection's verdict and the trace of its first packet.
	verdictTraceWindow = 5 * time.Second
	// idleTimeout is the least time for which a connection without traffic is remembered.
	idleTimeout = time.Hour
	// maxConnections bounds the number of remembered connections. Beyond it those that were idle longest are dropped early.
	maxConnections = 1 << 20
)

// connections records which connections were counted, in two generations: an entry that is used moves to the young generation,
// and the old generation is dropped as a whole. Time is the time of the events, not a clock. A connection is identified by a hash
// of its two ends.
type connections struct {
	young, old map[uint64]connection
	rotated    time.Time
	limit      int
	// uncertainUntil is the time before which an unknown connection may have been counted already: by an earlier run of the
	// process, or before its entry was dropped early. Until then traffic of unknown connections is remembered and not counted.
	uncertainUntil time.Time
}

// connection is the state of one connection. It is small, because there may be a million of them.
type connection struct {
	// decided is the Unix second of the connection's verdict; 0 if there was none.
	decided uint32
	// lastHour is the hour in which the connection was last counted or reported as still open, modulo 2^16. Differences are
	// correct for years.
	lastHour uint16
	// verdict is the verdict with which the connection was counted.
	verdict uint8
}

// hourOf returns the number of hours since 1970.
func hourOf(at time.Time) int64 { return at.Unix() / int64(time.Hour/time.Second) }

func newConnections(resumed time.Time, limit int) *connections {
	c := &connections{young: map[uint64]connection{}, limit: limit}
	if !resumed.IsZero() {
		c.uncertainUntil = resumed.Add(idleTimeout)
	}
	return c
}

// observe records the connection of an event. It returns why the event does not count (skipNone if it does). If open is true, the
// event is traffic of a connection that was not reported as open in this hour yet, and counted is the verdict with which it was
// counted.
func (c *connections) observe(cl class, id uint64, verdict flowpb.Verdict, at time.Time) (why skip, open bool, counted flowpb.Verdict) {
	c.rotate(at)
	hour := uint16(hourOf(at))
	if cl == classVerdict { // a verdict always counts
		c.young[id] = connection{decided: uint32(at.Unix()), lastHour: hour, verdict: uint8(verdict)}
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
		// The ports may be those of a connection that has ended. Only a verdict within verdictTraceWindow belongs to the same
		// connection.
		if was.decided != 0 && time.Duration(at.Unix()-int64(was.decided)).Abs() <= verdictTraceWindow/time.Second {
			why = skipKnown
		} else {
			is.lastHour, is.verdict = hour, uint8(verdict)
		}
	case known:
		why, open = skipKnown, int16(hour-was.lastHour) > 0
	case at.Before(c.uncertainUntil):
		why, open = skipForgotten, true
	default:
		is.lastHour, is.verdict = hour, uint8(verdict)
	}
	if open {
		is.lastHour = hour
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
	if !full && now.Sub(c.rotated) < idleTimeout {
		return
	}
	if full && len(c.old) > 0 && now.Sub(c.rotated) < idleTimeout {
		c.uncertainUntil = now.Add(idleTimeout)
	}
	c.old, c.young, c.rotated = c.young, make(map[uint64]connection, min(len(c.young), c.limit/2)), now
}
