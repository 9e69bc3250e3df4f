package pace

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
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
	// Rate is how many objects a second KubeFed writes into a member, and Burst how many at once after a rest; 0: nobody knows.
	Rate  float64
	Burst int
	// Spare are those of the burst that are left for what may not wait.
	Spare int
	// Settle is how long a change of an object waits at most for what KubeFed says about the one before; 0: it does not wait.
	Settle time.Duration
}

// DefaultLimits are those of KubeFed v0.10.0, whose client of a member writes 20 a second, and 30 at once. As much as that is
// written, less a hundredth for what it writes a second time, so that what is urgent finds KubeFed ready to write.
// Where it is slower, because it or the host is, it owes about a second's work.
var DefaultLimits = Limits{Owed: 20, Patience: 5 * time.Second, Rate: 19.8, Burst: 30, Spare: 10, Settle: 200 * time.Millisecond}

// share: one of so many turns is bulk's even while grants wait, so that neither starves.
const share = 8

// Work is what a unit asks for.
type Work struct {
	Unit string
	Kind Kind
	// Members are those that KubeFed has to write the unit's objects into.
	Members []string
}

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
	// writers are what is known of KubeFed's clients, by member: how many objects each would write at once.
	writers map[string]*rate.Limiter
}

type place struct {
	kind    Kind
	number  uint64
	members []string
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
		admitted: map[string]struct{}{}, owed: map[string]struct{}{}, counted: map[mark]time.Time{},
		writers: map[string]*rate.Limiter{}}
}

// Ask tells whether a unit may be written now. Whoever may must say Done, written or not. Whoever may not is told later
// by Next, and has then its place until Done.
func (l *Line) Ask(w Work, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.admitted[w.Unit]; ok {
		return true
	}
	if w.Kind >= Revocation || l.room(now) > 0 && l.dry(w.Members, now) == 0 && !l.ahead(w.Unit, w.Kind) {
		l.admit(w, now)
		return true
	}
	if had, ok := l.waiting[w.Unit]; !ok || had.kind < w.Kind {
		l.last++
		l.waiting[w.Unit] = place{w.Kind, l.last, w.Members}
		l.queues[w.Kind] = append(l.queues[w.Kind], queued{w.Unit, l.last})
		l.meter.waiting(len(l.waiting))
		l.poke() // somebody has to look when what is counted has grown old
	} else {
		had.members = w.Members
		l.waiting[w.Unit] = had
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
	for l.room(now) > 0 {
		// Only the first of a kind is looked at: whoever overtook it because its members are busy could keep it waiting for ever.
		kinds := []Kind{Grant, Bulk}
		if (l.turns+1)%share == 0 {
			slices.Reverse(kinds)
		}
		i := slices.IndexFunc(kinds, func(k Kind) bool {
			head, ok := l.head(k)
			return ok && l.dry(l.waiting[head].members, now) == 0
		})
		if i < 0 {
			break
		}
		l.turns++
		unit, _ := l.head(kinds[i])
		l.admit(Work{unit, kinds[i], l.waiting[unit].members}, now)
		out = append(out, Turn{unit, kinds[i]})
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

// Busy tells whether a unit waits, or KubeFed owes something that still counts.
func (l *Line) Busy(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 0 || l.room(now) < l.limits.Owed
}

// idle is how long nothing changes by itself; false: for ever.
func (l *Line) idle(now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return 0, false
	}
	if l.room(now) <= 0 {
		return l.ages[0].since.Add(l.limits.Patience).Sub(now), true
	}
	soonest := l.limits.Patience
	for _, k := range []Kind{Bulk, Grant} {
		if head, ok := l.head(k); ok {
			soonest = min(soonest, l.dry(l.waiting[head].members, now))
		}
	}
	return soonest, true
}

func (l *Line) admit(w Work, now time.Time) {
	if _, ok := l.waiting[w.Unit]; ok {
		delete(l.waiting, w.Unit)
		l.meter.waiting(len(l.waiting))
	}
	l.admitted[w.Unit] = struct{}{}
	l.count(mark{name: w.Unit}, now)
	for _, m := range w.Members {
		if to := l.writer(m); to != nil {
			to.ReserveN(now, 1) // what may not wait takes it also where nothing is left: KubeFed will write it later
		}
	}
	l.meter.admitted(w.Kind)
}

// writer is what is known of KubeFed's client of a member; nil: nothing.
func (l *Line) writer(member string) *rate.Limiter {
	if l.limits.Rate == 0 {
		return nil
	}
	to, ok := l.writers[member]
	if !ok {
		to = rate.NewLimiter(rate.Limit(l.limits.Rate), l.limits.Burst)
		l.writers[member] = to
	}
	return to
}

// dry is how long KubeFed could not write another object into each of these members without touching what is spared.
func (l *Line) dry(members []string, now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, m := range members {
		if to := l.writer(m); to != nil {
			missing := float64(l.limits.Spare) + 1 - to.TokensAt(now)
			longest = max(longest, time.Duration(missing/l.limits.Rate*float64(time.Second)))
		}
	}
	return longest
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
