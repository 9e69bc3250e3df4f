package hubble

import (
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// overlap is how long before its position a source is resumed. The events of nodes reach a relay out of order, and an agent's
// ring holds back its newest event until the next one arrives.
const overlap = 10 * time.Second

// maxSeen bounds the remembered events. If there are more, the overlap is shortened.
const maxSeen = 1 << 21

// seenEvents holds the identities of the events within the overlap, by the second in which they occurred.
type seenEvents struct {
	limit, n int
	seconds  map[int64]*idSet
	// byID holds events that are not stored under the second of their event: those of a node with a clock ahead, and those of the
	// previous run.
	byID map[uint64]int64
	// last is the set that was used last. It is kept because events arrive nearly in order.
	last       *idSet
	lastSecond int64
	// position is the newest time of an event, bounded by the collector's own clock: one node with a clock ahead must not make
	// the events of other nodes look old.
	position time.Time
	// floor is the beginning of the overlap after it was shortened; sweptUntil is the time before which all events were removed.
	floor, sweptUntil time.Time
}

func newSeenEvents(r audit.Resume, limit int) *seenEvents {
	s := &seenEvents{limit: limit, seconds: map[int64]*idSet{}, byID: make(map[uint64]int64, len(r.Seen)), position: r.Position}
	for _, e := range r.Seen {
		s.byID[e.ID] = e.Time.Unix()
	}
	return s
}

// has reports whether the event is known, whatever its time.
func (s *seenEvents) has(id uint64) bool {
	for _, set := range s.seconds {
		if set.has(id) {
			return true
		}
	}
	_, stray := s.byID[id]
	return stray
}

// observe reports whether the event is new, and advances the position. An event in the future is treated as one of the present.
func (s *seenEvents) observe(id uint64, at, now time.Time) bool {
	if len(s.byID) > 0 {
		if _, known := s.byID[id]; known {
			return false
		}
	}
	if at.After(now) {
		if s.has(id) {
			return false
		}
		s.advance(now)
		if len(s.byID) >= s.limit {
			clear(s.byID)
		}
		s.byID[id] = now.Unix()
		return true
	}
	s.advance(at)
	if at.Before(s.sweptUntil) {
		return true // it is not requested again
	}
	return s.add(id, at.Unix())
}

// advance moves the position forward. It is called on its own for events whose identity need not be remembered.
func (s *seenEvents) advance(at time.Time) {
	if !at.After(s.position) {
		return
	}
	s.position = at
	if f := s.overlapStart(); f.After(s.sweptUntil) {
		s.sweep(f)
	}
}

func (s *seenEvents) add(id uint64, second int64) bool {
	set := s.set(second)
	if set.has(id) {
		return false
	}
	if s.n >= s.limit {
		s.shortenOverlap()
		set = s.set(second)
	}
	set.add(id)
	s.n++
	return true
}

func (s *seenEvents) set(second int64) *idSet {
	if s.last == nil || second != s.lastSecond {
		set := s.seconds[second]
		if set == nil {
			set = &idSet{}
			s.seconds[second] = set
		}
		s.last, s.lastSecond = set, second
	}
	return s.last
}

// shortenOverlap drops the oldest second of the overlap. The second of the position itself is always requested again; if it is
// the only one left, some of its events may be counted twice after a reconnection.
func (s *seenEvents) shortenOverlap() {
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
	s.sweep(s.overlapStart())
}

func (s *seenEvents) sweep(forget time.Time) {
	s.sweptUntil, s.last = forget, nil
	for second, set := range s.seconds {
		if second < forget.Unix() {
			s.n -= set.n
			delete(s.seconds, second)
		}
	}
	for id, second := range s.byID {
		if second < forget.Unix() {
			delete(s.byID, id)
		}
	}
}

// overlapStart returns the time, in whole seconds, before which no event is requested again; zero if there is no position.
func (s *seenEvents) overlapStart() time.Time {
	if s.position.IsZero() {
		return time.Time{}
	}
	f := s.position.Add(-overlap).Truncate(time.Second)
	if s.floor.After(f) {
		return s.floor
	}
	return f
}

// idSet is a hash set of numbers in one allocation, because there may be millions of them.
type idSet struct {
	slots []uint64 // 0 marks an empty slot
	n     int
}

func (s *idSet) slot(id uint64) int {
	mask := len(s.slots) - 1
	i := int(id) & mask
	for s.slots[i] != 0 && s.slots[i] != id {
		i = (i + 1) & mask
	}
	return i
}

func (s *idSet) has(id uint64) bool {
	return s.n > 0 && s.slots[s.slot(max(id, 1))] != 0
}

// add inserts a number that is not in the set.
func (s *idSet) add(id uint64) {
	id = max(id, 1)
	if 4*(s.n+1) > 3*len(s.slots) {
		s.grow()
	}
	s.slots[s.slot(id)] = id
	s.n++
}

func (s *idSet) grow() {
	const smallest = 64
	old := s.slots
	s.slots = make([]uint64, max(smallest, 2*len(old)))
	for _, id := range old {
		if id != 0 {
			s.slots[s.slot(id)] = id
		}
	}
}
