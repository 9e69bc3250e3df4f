package writequeue

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Priority orders work; the greater comes first. Revocations and downgrades never wait.
type Priority int

const (
	// Bulk: part of a change of very many, such as one of a class, or of a start.
	Bulk Priority = iota
	// Grant: somebody asked for just this, and it takes nothing away.
	Grant
	// Revocation: somebody may be refused who was let in.
	Revocation
	// Downgrade: what was closed is to be open.
	Downgrade
)

// String is the word in metrics.
func (k Priority) String() string {
	return [...]string{"bulk", "grant", "revocation", "downgrade"}[k]
}

// Limits of a Line. Each applies to each member by itself, so that a slow member delays only what it alone needs.
type Limits struct {
	// MaxPending is how many objects KubeFed may still have to bring to a member before what is not urgent waits for that member.
	MaxPending int
	// PendingTimeout is how long one of them counts. A member that lacks an object for longer is lagging: units that other members
	// need, too, no longer wait for it.
	PendingTimeout time.Duration
	// LagTimeout is how long an object counts in a member that lacks it while another member has it: KubeFed brings an object to all
	// members at once, so only the member itself can be the reason. With 0 only Patience decides.
	LagTimeout time.Duration
	// Rate is how many objects a second KubeFed writes into a member, and Burst how many at once after a rest. With Rate 0
	// no rate is kept.
	Rate  float64
	Burst int
	// Reserved are those of the burst that are left for what may not wait.
	Reserved int
	// MaxInFlight is how long a change of an object waits at most for what KubeFed says about the one before; with 0 it does not wait.
	MaxInFlight time.Duration
}

// DefaultLimits are those of KubeFed v0.10.0, whose client of a member writes 20 a second, and 30 at once. As much as that is
// written, less a hundredth for what it writes a second time, so that what is urgent finds KubeFed ready to write.
// Where it is slower, because it or the host is, about a second's work is on its way.
var DefaultLimits = Limits{MaxPending: 20, PendingTimeout: 5 * time.Second, LagTimeout: time.Second, Rate: 19.8, Burst: 30, Reserved: 10, MaxInFlight: 200 * time.Millisecond}

// bulkShare: one of so many turns is bulk's even while grants wait, so that neither starves.
const bulkShare = 8

// Request is what a unit asks for.
type Request struct {
	Unit     string
	Priority Priority
	// Members are those that KubeFed has to write the unit's objects into.
	Members []string
}

// Admission is a unit that may be written now.
type Admission struct {
	Unit     string
	Priority Priority
}

// Queue is where units wait. It is safe for concurrent use.
type Queue struct {
	limits Limits
	meter  meter
	wake   chan struct{}

	mu      sync.Mutex
	waiting map[string]waiter
	// queues hold the waiting units by kind (Bulk, Grant) and by the set of their members. Units of one set have the same room, so
	// that only the first of each set has to be considered.
	queues     [2]map[string]*memberQueue
	last       uint64
	admissions uint64
	// admitted maps the units that may be written and were not yet to their members.
	admitted map[string][]string
	// pending maps each object to the members to which KubeFed still has to bring it.
	pending map[string][]string
	// counted is what takes room in a member: admitted units and owed objects, since when. ages are the same, oldest first;
	// behind are those of them that another member has, by since when.
	counted       map[entry]time.Time
	ages          []timedEntry
	lagCandidates []timedEntry
	// inFlight is the number of counted entries of each member.
	inFlight map[string]int
	// overdue are the owed objects that no longer count, because they are owed for too long; lagging is their number in each
	// member that has any.
	overdue map[entry]struct{}
	lagging map[string]int
	// writers are the rates of KubeFed's clients, by member.
	writers map[string]*rate.Limiter
}

// waiter of a unit that waits.
type waiter struct {
	priority Priority
	number   uint64
	members  []string
}

// memberQueue of the units of one kind that need the same members, in the order in which they asked.
type memberQueue struct {
	members []string
	units   []queued
}

type queued struct {
	unit   string
	number uint64
}

// entry is a unit or an object in a member. A unit and an object may have the same name.
type entry struct {
	member string
	object bool
	name   string
}

type timedEntry struct {
	entry entry
	since time.Time
}

// New makes an empty line; of is its name in metrics.
func New(of string, limits Limits) *Queue {
	return &Queue{limits: limits, meter: newMeter(of), wake: make(chan struct{}, 1), waiting: map[string]waiter{},
		queues: [2]map[string]*memberQueue{{}, {}}, admitted: map[string][]string{}, pending: map[string][]string{},
		counted: map[entry]time.Time{}, inFlight: map[string]int{}, overdue: map[entry]struct{}{}, lagging: map[string]int{},
		writers: map[string]*rate.Limiter{}}
}

// noMembers stands for the members of a unit that names none.
var noMembers = []string{""}

// membersOf returns the members of a unit, sorted.
func membersOf(members []string) []string {
	if len(members) == 0 {
		return noMembers
	}
	return slices.Compact(slices.Sorted(slices.Values(members)))
}

// TryAdmit reports whether a unit may be written now. A caller that may write must call Done, whether it wrote or not. For a caller
// that may not, Next returns the unit later, and the unit then keeps its place until Done.
func (l *Queue) TryAdmit(w Request, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.admitted[w.Unit]; ok {
		return true
	}
	w.Members = membersOf(w.Members)
	l.expire(now)
	if w.Priority >= Revocation || l.capacity(w.Members) > 0 && l.rateDelay(w.Members, now) == 0 && !l.mustWaitForEarlier(w) {
		l.admit(w, now)
		return true
	}
	had, ok := l.waiting[w.Unit]
	if ok && had.priority >= w.Priority && slices.Equal(had.members, w.Members) {
		return false
	}
	l.last++
	at := waiter{max(had.priority, w.Priority), l.last, w.Members}
	l.waiting[w.Unit] = at
	key := strings.Join(at.members, "\x00")
	q := l.queues[at.priority][key]
	if q == nil {
		q = &memberQueue{members: at.members}
		l.queues[at.priority][key] = q
	}
	q.units = append(q.units, queued{w.Unit, at.number})
	l.meter.waiting(len(l.waiting))
	l.wakeRunner() // the runner has to set its alarm for when what is counted expires
	return false
}

// mustWaitForEarlier reports whether another unit that comes first waits for a member that the unit needs, too.
func (l *Queue) mustWaitForEarlier(w Request) bool {
	needed := l.needed(w.Members)
	for kind := Grant; kind >= w.Priority; kind-- {
		for _, head := range l.heads(kind) {
			if head.unit != w.Unit && intersect(needed, l.needed(head.members)) {
				return true
			}
		}
	}
	return false
}

// Done gives a unit's place back: it was written, or there is nothing to write any more. Owe is called before for what KubeFed has
// to do because of it.
func (l *Queue) Done(unit string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.admitted[unit] {
		l.uncount(entry{member: m, name: unit})
	}
	delete(l.admitted, unit)
	if _, ok := l.waiting[unit]; ok {
		delete(l.waiting, unit)
		l.meter.waiting(len(l.waiting))
	}
	l.capacityFreed()
}

// SetPending records the members to which KubeFed still has to bring an object; none: it has brought it everywhere. An object counts in
// a member from when that was first recorded, for Limits.Patience.
func (l *Queue) SetPending(object string, members []string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.pending[object]
	for _, m := range members {
		if !slices.Contains(before, m) {
			l.count(entry{m, true, object}, now)
		}
	}
	freed := false
	for _, m := range before {
		if slices.Contains(members, m) {
			continue
		}
		e := entry{m, true, object}
		freed = true
		l.uncount(e)
		if _, late := l.overdue[e]; late {
			delete(l.overdue, e)
			l.addLagging(m, -1)
		}
	}
	if len(members) == 0 {
		delete(l.pending, object)
	} else {
		l.pending[object] = slices.Clone(members)
	}
	if freed && l.limits.LagTimeout > 0 {
		for _, m := range members {
			l.lagCandidates = append(l.lagCandidates, timedEntry{entry{m, true, object}, now})
		}
		if len(members) > 0 {
			l.wakeRunner() // the runner has to set its alarm for when these expire
		}
	}
	if freed {
		l.capacityFreed()
	}
}

// AdmitNext returns the units that may be written now. A unit that has to wait keeps its members for itself, so that later ones
// which need only some of them cannot make it wait for ever.
func (l *Queue) AdmitNext(now time.Time) []Admission {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	var out []Admission
	for {
		kinds := []Priority{Grant, Bulk}
		if (l.admissions+1)%bulkShare == 0 {
			slices.Reverse(kinds)
		}
		unit, kind, ok := l.firstAdmissible(kinds, now)
		if !ok {
			return out
		}
		l.admissions++
		l.admit(Request{unit, kind, l.waiting[unit].members}, now)
		out = append(out, Admission{unit, kind})
	}
}

// firstAdmissible is the first unit that may be written.
func (l *Queue) firstAdmissible(kinds []Priority, now time.Time) (string, Priority, bool) {
	var kept []string
	for _, kind := range kinds {
		for _, head := range l.heads(kind) {
			needed := l.needed(head.members)
			if !intersect(needed, kept) && l.capacity(head.members) > 0 && l.rateDelay(head.members, now) == 0 {
				return head.unit, kind, true
			}
			kept = append(kept, needed...)
		}
	}
	return "", 0, false
}

// Waiting returns the units that wait, in no order.
func (l *Queue) Waiting() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.waiting))
}

// Busy reports whether a unit waits, or KubeFed has something to do that still counts.
func (l *Queue) Busy(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	return len(l.waiting) > 0 || len(l.counted) > 0
}

// nextChange is how long nothing changes by itself; false: for ever.
func (l *Queue) nextChange(now time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return 0, false
	}
	l.expire(now)
	soonest := l.limits.PendingTimeout
	var kept []string
	for _, k := range []Priority{Grant, Bulk} {
		for _, head := range l.heads(k) {
			needed := l.needed(head.members)
			behind := intersect(needed, kept)
			kept = append(kept, needed...)
			switch {
			case behind: // the unit before it decides
			case l.capacity(head.members) > 0:
				soonest = min(soonest, l.rateDelay(head.members, now))
			default:
				soonest = min(soonest, l.ages[0].since.Add(l.limits.PendingTimeout).Sub(now))
				if len(l.lagCandidates) > 0 {
					soonest = min(soonest, l.lagCandidates[0].since.Add(l.limits.LagTimeout).Sub(now))
				}
			}
		}
	}
	return soonest, true
}

func (l *Queue) admit(w Request, now time.Time) {
	if _, ok := l.waiting[w.Unit]; ok {
		delete(l.waiting, w.Unit)
		l.meter.waiting(len(l.waiting))
	}
	l.admitted[w.Unit] = w.Members
	for _, m := range w.Members {
		l.count(entry{member: m, name: w.Unit}, now)
		if to := l.limiter(m); to != nil {
			to.ReserveN(now, 1) // what may not wait takes it also where nothing is left: KubeFed will write it later
		}
	}
	l.meter.admitted(w.Priority)
}

// needed returns the members that a unit waits for: those that are not lagging, or all if all are.
func (l *Queue) needed(members []string) []string {
	if len(l.lagging) == 0 {
		return members
	}
	out := slices.DeleteFunc(slices.Clone(members), func(m string) bool { return l.lagging[m] > 0 })
	if len(out) == 0 {
		return members
	}
	return out
}

// capacity is how many more units may be written into each of the members that a unit waits for.
func (l *Queue) capacity(members []string) int {
	room := l.limits.MaxPending
	for _, m := range l.needed(members) {
		room = min(room, l.limits.MaxPending-l.inFlight[m])
	}
	return room
}

// limiter is the rate of KubeFed's client of a member, or nil if no rate is kept.
func (l *Queue) limiter(member string) *rate.Limiter {
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

// rateDelay is how long KubeFed could not write another object into each of the members that a unit waits for without using what is spared.
func (l *Queue) rateDelay(members []string, now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, m := range l.needed(members) {
		if to := l.limiter(m); to != nil {
			missing := float64(l.limits.Reserved) + 1 - to.TokensAt(now)
			longest = max(longest, time.Duration(missing/l.limits.Rate*float64(time.Second)))
		}
	}
	return longest
}

func (l *Queue) count(e entry, now time.Time) {
	if _, had := l.counted[e]; !had {
		l.inFlight[e.member]++
	}
	l.counted[e] = now
	l.ages = append(l.ages, timedEntry{e, now})
}

func (l *Queue) uncount(e entry) {
	if _, had := l.counted[e]; !had {
		return
	}
	delete(l.counted, e)
	if l.inFlight[e.member]--; l.inFlight[e.member] == 0 {
		delete(l.inFlight, e.member)
	}
}

// addLagging changes how many objects are overdue in a member.
func (l *Queue) addLagging(member string, by int) {
	if l.lagging[member] += by; l.lagging[member] == 0 {
		delete(l.lagging, member)
	}
	l.meter.overdue(member, l.lagging[member])
}

// expire ends the counting of what is older than Limits.Patience. A member that still lacks such an object is lagging.
func (l *Queue) expire(now time.Time) {
	for len(l.ages) > 0 {
		oldest := l.ages[0]
		since, counts := l.counted[oldest.entry]
		if counts && since.Equal(oldest.since) {
			if now.Sub(since) < l.limits.PendingTimeout {
				break
			}
			l.timeOut(oldest.entry)
		}
		l.ages = l.ages[1:]
	}
	for len(l.lagCandidates) > 0 {
		oldest := l.lagCandidates[0]
		// An object that was owed anew since then is at the end of the list again as soon as one member has it.
		if since, counts := l.counted[oldest.entry]; counts && !since.After(oldest.since) {
			if now.Sub(oldest.since) < l.limits.LagTimeout {
				return
			}
			l.timeOut(oldest.entry)
		}
		l.lagCandidates = l.lagCandidates[1:]
	}
}

// timeOut ends the counting of an entry that is too old.
func (l *Queue) timeOut(e entry) {
	l.uncount(e)
	if e.object {
		l.overdue[e] = struct{}{}
		l.addLagging(e.member, 1)
	}
}

// head is the first unit of a queue.
type head struct {
	queued
	members []string
}

// heads returns the first unit of each queue of a kind, in the order in which they asked. Places that were given up are dropped on the
// way.
func (l *Queue) heads(kind Priority) []head {
	var out []head
	for key, q := range l.queues[kind] {
		for len(q.units) > 0 {
			if at, ok := l.waiting[q.units[0].unit]; ok && at.number == q.units[0].number {
				break
			}
			q.units = q.units[1:]
		}
		if len(q.units) == 0 {
			delete(l.queues[kind], key)
			continue
		}
		out = append(out, head{q.units[0], q.members})
	}
	slices.SortFunc(out, func(a, b head) int { return cmp.Compare(a.number, b.number) })
	return out
}

// intersect reports whether two sets of members have one in common.
func intersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(m string) bool { return slices.Contains(b, m) })
}

func (l *Queue) capacityFreed() {
	if len(l.waiting) > 0 {
		l.wakeRunner()
	}
}

func (l *Queue) wakeRunner() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
