package hubble

import (
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// overlap is how far before its position a source is resumed: nodes' events reach a relay out of order, and an agent's
// ring holds back its newest event until another comes.
const overlap = 10 * time.Second

// maxSeen bounds the events of the overlap, which gets shorter when there are more.
const maxSeen = 1 << 21

// seen knows the events of the overlap, by the second in which they happened.
type seen struct {
	limit, n int
	seconds  map[int64]*ids
	// strays are known under another second than that of their event: those of a clock ahead, and all of the run before.
	strays map[uint64]int64
	// last is the set that was used last, because events come nearly in order.
	last       *ids
	lastSecond int64
	// position is the newest time of an event, never later than the collector's own clock: one node with a clock ahead
	// must not make the others' events look old.
	position time.Time
	// floor is where the overlap begins when there was no room for all of it; forgotten is up to where it was swept.
	floor, forgotten time.Time
}

func newSeen(r audit.Resume, limit int) *seen {
	s := &seen{limit: limit, seconds: map[int64]*ids{}, strays: make(map[uint64]int64, len(r.Seen)), position: r.Position}
	for _, e := range r.Seen {
		s.strays[e.ID] = e.Time.Unix()
	}
	return s
}

// has reports whether the event is known, at whatever time.
func (s *seen) has(id uint64) bool {
	for _, set := range s.seconds {
		if set.has(id) {
			return true
		}
	}
	_, stray := s.strays[id]
	return stray
}

// take reports whether the event is new, and moves the position. An event at an instant that is still to come is taken as
// one of now.
func (s *seen) take(id uint64, at, now time.Time) bool {
	if len(s.strays) > 0 {
		if _, known := s.strays[id]; known {
			return false
		}
	}
	if at.After(now) {
		if s.has(id) {
			return false
		}
		s.advance(now)
		if len(s.strays) >= s.limit {
			clear(s.strays)
		}
		s.strays[id] = now.Unix()
		return true
	}
	s.advance(at)
	if at.Before(s.forgotten) {
		return true // it is not asked for again
	}
	return s.add(id, at.Unix())
}

// advance moves the position, for events that need not be known again too.
func (s *seen) advance(at time.Time) {
	if !at.After(s.position) {
		return
	}
	s.position = at
	if f := s.forget(); f.After(s.forgotten) {
		s.sweep(f)
	}
}

func (s *seen) add(id uint64, second int64) bool {
	set := s.set(second)
	if set.has(id) {
		return false
	}
	if s.n >= s.limit {
		s.shorten()
		set = s.set(second)
	}
	set.add(id)
	s.n++
	return true
}

func (s *seen) set(second int64) *ids {
	if s.last == nil || second != s.lastSecond {
		set := s.seconds[second]
		if set == nil {
			set = &ids{}
			s.seconds[second] = set
		}
		s.last, s.lastSecond = set, second
	}
	return s.last
}

// shorten gives up the oldest second of the overlap. That of the position itself is asked for in any case: were it ever the
// only one, some of its events may be counted twice after a reconnection.
func (s *seen) shorten() {
	oldest := s.lastSecond
	for second := range s.seconds {
		oldest = min(oldest, second)
	}
	if oldest >= s.position.Unix() {
		clear(s.seconds)
		s.n, s.last = 0, nil
		return
	}
	s.floor = time.Unix(oldest+1, 0).UTC()
	s.sweep(s.forget())
}

func (s *seen) sweep(forget time.Time) {
	s.forgotten, s.last = forget, nil
	for second, set := range s.seconds {
		if second < forget.Unix() {
			s.n -= set.n
			delete(s.seconds, second)
		}
	}
	for id, second := range s.strays {
		if second < forget.Unix() {
			delete(s.strays, id)
		}
	}
}

// forget is the time, a whole second, before which no event is asked for again.
func (s *seen) forget() time.Time {
	if s.position.IsZero() {
		return time.Time{}
	}
	f := s.position.Add(-overlap).Truncate(time.Second)
	if s.floor.After(f) {
		return s.floor
	}
	return f
}

// ids is a set of numbers in one piece of memory: there may be millions of them.
type ids struct {
	slots []uint64 // 0: empty
	n     int
}

func (s *ids) slot(id uint64) int {
	mask := len(s.slots) - 1
	i := int(id) & mask
	for s.slots[i] != 0 && s.slots[i] != id {
		i = (i + 1) & mask
	}
	return i
}

func (s *ids) has(id uint64) bool {
	return s.n > 0 && s.slots[s.slot(max(id, 1))] != 0
}

// add puts in a number that is not there.
func (s *ids) add(id uint64) {
	id = max(id, 1)
	if 4*(s.n+1) > 3*len(s.slots) {
		s.grow()
	}
	s.slots[s.slot(id)] = id
	s.n++
}

func (s *ids) grow() {
	const smallest = 64
	old := s.slots
	s.slots = make([]uint64, max(smallest, 2*len(old)))
	for _, id := range old {
		if id != 0 {
			s.slots[s.slot(id)] = id
		}
	}
}
