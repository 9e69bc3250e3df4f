package pace

import (
	"sync"
	"time"
)

// Kind orders work; the greater comes first. Revocations and downgrades never wait.
type Kind int

const (
	// Bulk: part of a change of very many, such as one of a class, or of a start.
	Bulk Kind = iota
	// Grant: somebody asked for just this, and it takes nothing away.
	Grant
	// Revocation: somebody may be refused who was let in.
	Revocation
	// Downgrade: what was closed is to be open.
	Downgrade
)

// String is the word in metrics.
func (k Kind) String() string {
	return [...]string{"bulk", "grant", "revocation", "downgrade"}[k]
}

// Limits of a Line.
type Limits struct {
	// Owed is how many objects KubeFed may owe the members before what is not urgent waits.
	Owed int
	// Patience is how long one of them counts. A member that is slow, or dead without anybody having noticed, delays the
	// others by that, and no more.
	Patience time.Duration
}

// DefaultLimits keep KubeFed, which writes 20 a second, busy also where the host answers slowly: about a second's work.
var DefaultLimits = Limits{Owed: 20, Patience: 5 * time.Second}

// share: one of so many turns is bulk's even while grants wait, so that neither starves.
const share = 8

// Turn is a unit that may be written now.
type Turn struct {
	Unit string
	Kind Kind
}

// Line is where units wait. It is safe for concurrent use.
type Line struct {
	limits Limits
	meter  meter
	wake   chan struct{}

	mu      sync.Mutex
	waiting map[string]place
	queues  [2][]queued // by Kind: Bulk, Grant
	last    uint64
	turns   uint64
	// admitted are the units that may be written and were not yet.
	admitted map[string]struct{}
	// owed are the objects that KubeFed owes, also those that count no more.
	owed map[string]struct{}
	// counted is what room is made of: admitted units and owed objects, since when. ages are the same, oldest first.
	counted map[mark]time.Time
	ages    []aged
}

type place struct {
	kind   Kind
	number uint64
}

type queued struct {
	unit   string
	number uint64
}

// mark is a unit or an object: their names may be equal.
type mark struct {
	object bool
	name   string
}

type aged struct {
	mark  mark
	since time.Time
}

// NewLine makes an empty line; of is what it is called in metrics.
func NewLine(of string, limits Limits) *Line {
	return &Line{limits: limits, meter: newMeter(of), wake: make(chan struct{}, 1), waiting: map[string]place{},
		admitted: map[string]struct{}{}, owed: map[string]struct{}{}, counted: map[mark]time.Time{}}
}

// Ask tells whether a unit may be written now. Whoever may must say Done, written or not. Whoever may not is told later
// by Next, and has then its place until Done.
func (l *Line) Ask(unit string, kind Kind, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.admitted[unit]; ok {
		return true
	}
	if kind >= Revocation || l.room(now) > 0 && !l.ahead(unit, kind) {
		l.admit(unit, kind, now)
		return true
	}
	if had, ok := l.waiting[unit]; !ok || had.kind < kind {
		l.last++
		l.waiting[unit] = place{kind, l.last}
		l.queues[kind] = append(l.queues[kind], queued{unit, l.last})
		l.meter.waiting(len(l.waiting))
		l.poke() // somebody has to look when what is counted has grown old
	}
	return false
}

// ahead tells whether somebody else waits who comes first.
func (l *Line) ahead(unit string, kind Kind) bool {
	for other := Grant; other >= kind; other-- {
		if head, ok := l.head(other); ok && head != unit {
			return true
		}
	}
	return false
}

// Done gives a unit's place back: it was written, or there is nothing to write any more. What is owed for it is told by Owe
// before.
func (l *Line) Done(unit string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.admitted, unit)
	delete(l.counted, mark{name: unit})
	if _, ok := l.waiting[unit]; ok {
		delete(l.waiting, unit)
		l.meter.waiting(len(l.waiting))
	}
	l.freed()
}

// Owe tells whether KubeFed owes some member an object. It counts from when that was first told, for the line's patience.
func (l *Line) Owe(object string, owed bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, had := l.owed[object]
	switch {
	case owed && !had:
		l.owed[object] = struct{}{}
		l.count(mark{true, object}, now)
	case !owed && had:
		delete(l.owed, object)
		delete(l.counted, mark{true, object})
		l.freed()
	}
}

// Next returns those whose turn it is.
func (l *Line) Next(now time.Time) []Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Turn
	for l.room(now) > 0 && len(l.waiting) > 0 {
		kind := Grant
		l.turns++
		_, grants := l.head(Grant)
		if _, bulk := l.head(Bulk); bulk && (!grants || l.turns%share == 0) {
			kind = Bulk
		}
		unit, _ := l.head(kind)
		l.admit(unit, kind, now)
		out = append(out, Turn{unit, kind})
	}
	return out
}

// Waiting returns the units that wait, in no order.
func (l *Line) Waiting() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]string, 0, len(l.waiting))
	for unit := range l.waiting {
		out = append(out, unit)
	}
	return out
}

// idle is how long nothing changes by itself; false: for ever.
func (l *Line) idle(now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 || l.room(now) > 0 || len(l.ages) == 0 {
		return 0, len(l.waiting) > 0
	}
	return l.ages[0].since.Add(l.limits.Patience).Sub(now), true
}

func (l *Line) admit(unit string, kind Kind, now time.Time) {
	if _, ok := l.waiting[unit]; ok {
		delete(l.waiting, unit)
		l.meter.waiting(len(l.waiting))
	}
	l.admitted[unit] = struct{}{}
	l.count(mark{name: unit}, now)
	l.meter.admitted(kind)
}

func (l *Line) count(m mark, now time.Time) {
	l.counted[m] = now
	l.ages = append(l.ages, aged{m, now})
}

// room is how many may still be written. What is counted and has grown old is forgotten on the way.
func (l *Line) room(now time.Time) int {
	for len(l.ages) > 0 {
		oldest := l.ages[0]
		since, counts := l.counted[oldest.mark]
		if counts && since.Equal(oldest.since) {
			if now.Sub(since) < l.limits.Patience {
				break
			}
			delete(l.counted, oldest.mark)
		}
		l.ages = l.ages[1:]
	}
	return l.limits.Owed - len(l.counted)
}

// head is who waits longest of a kind. Places that were given up are forgotten on the way.
func (l *Line) head(kind Kind) (string, bool) {
	for len(l.queues[kind]) > 0 {
		first := l.queues[kind][0]
		if at, ok := l.waiting[first.unit]; ok && at.number == first.number {
			return first.unit, true
		}
		l.queues[kind] = l.queues[kind][1:]
	}
	return "", false
}

func (l *Line) freed() {
	if len(l.waiting) > 0 {
		l.poke()
	}
}

func (l *Line) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
