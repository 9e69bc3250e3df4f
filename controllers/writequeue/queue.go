package writequeue

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Queue holds the units that wait to be written. It is safe for concurrent use.
type Queue struct {
	meter   meter
	trigger chan struct{}

	mu      sync.Mutex
	waiting map[string]waiter
	// queues hold the waiting units by priority (Bulk, Grant) and by the set of their members. Units with the same members have the
	// same capacity, so that only the first of each set has to be considered.
	queues     [2]map[string]*memberQueue
	last       uint64
	admissions uint64
	// admitted maps the units that may be written, and were not written yet, to their members.
	admitted map[string][]string
	capacity *capacity
}

// waiter is the place of a unit that waits.
type waiter struct {
	priority Priority
	number   uint64
	members  []string
}

// memberQueue holds the units of one priority that need the same members, in the order of their requests.
type memberQueue struct {
	members []string
	units   []queued
}

type queued struct {
	unit   string
	number uint64
}

// New returns an empty queue. The argument of is the kind of objects, policies or groups, and the value of the label of in its
// metrics.
func New(of string, limits Limits) *Queue {
	m := newMeter(of)
	return &Queue{meter: m, trigger: make(chan struct{}, 1), waiting: map[string]waiter{}, queues: [2]map[string]*memberQueue{{}, {}},
		admitted: map[string][]string{}, capacity: newCapacity(limits, m.overdue)}
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
// that may not, AdmitNext returns the unit later, and the unit then keeps its place until Done.
func (q *Queue) TryAdmit(r Request, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.admitted[r.Unit]; ok {
		return true
	}
	r.Members = membersOf(r.Members)
	q.capacity.expire(now)
	if r.Priority >= Revocation || q.fits(r.Members, now) && !q.mustWaitForEarlier(r) {
		q.admit(r, now)
		return true
	}
	had, ok := q.waiting[r.Unit]
	if ok && had.priority >= r.Priority && slices.Equal(had.members, r.Members) {
		return false
	}
	q.last++
	place := waiter{max(had.priority, r.Priority), q.last, r.Members}
	q.waiting[r.Unit] = place
	key := strings.Join(place.members, "\x00")
	of := q.queues[place.priority][key]
	if of == nil {
		of = &memberQueue{members: place.members}
		q.queues[place.priority][key] = of
	}
	of.units = append(of.units, queued{r.Unit, place.number})
	q.meter.waiting(len(q.waiting))
	q.wakeRunner() // Run has to set its timer for when pending objects time out
	return false
}

// fits reports whether each member that a unit waits for has capacity for another unit now.
func (q *Queue) fits(members []string, now time.Time) bool {
	return q.capacity.free(members) > 0 && q.capacity.rateDelay(members, now) == 0
}

// mustWaitForEarlier reports whether a unit that is to be written first waits for a member that this request needs as well.
func (q *Queue) mustWaitForEarlier(r Request) bool {
	needed := q.capacity.needed(r.Members)
	for priority := Grant; priority >= r.Priority; priority-- {
		for _, head := range q.heads(priority) {
			if head.unit != r.Unit && intersect(needed, q.capacity.needed(head.members)) {
				return true
			}
		}
	}
	return false
}

// Done ends the admission of a unit: it was written, or there is nothing to write any more. The caller calls SetPending before for
// the objects that KubeFed has to propagate because of it.
func (q *Queue) Done(unit string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.admitted[unit] {
		q.capacity.uncount(entry{member: m, name: unit})
	}
	delete(q.admitted, unit)
	if _, ok := q.waiting[unit]; ok {
		delete(q.waiting, unit)
		q.meter.waiting(len(q.waiting))
	}
	q.capacityFreed()
}

// SetPending records the members to which KubeFed still has to propagate an object. Without members it is propagated everywhere. An object
// counts in a member from when that was first recorded, for Limits.PendingTimeout.
func (q *Queue) SetPending(object string, members []string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	freed, lags := q.capacity.setPending(object, members, now)
	if lags {
		q.wakeRunner() // Run has to set its timer for when these time out
	}
	if freed {
		q.capacityFreed()
	}
}

// AdmitNext returns the units that may be written now. A unit that has to wait reserves its members, so that later units which need
// only some of them cannot delay it for ever.
func (q *Queue) AdmitNext(now time.Time) []Admission {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.capacity.expire(now)
	var out []Admission
	for {
		priorities := []Priority{Grant, Bulk}
		if (q.admissions+1)%bulkShare == 0 {
			slices.Reverse(priorities)
		}
		unit, priority, ok := q.firstAdmissible(priorities, now)
		if !ok {
			return out
		}
		q.admissions++
		q.admit(Request{unit, priority, q.waiting[unit].members}, now)
		out = append(out, Admission{unit, priority})
	}
}

// firstAdmissible returns the first unit that may be written.
func (q *Queue) firstAdmissible(priorities []Priority, now time.Time) (string, Priority, bool) {
	var reserved []string
	for _, priority := range priorities {
		for _, head := range q.heads(priority) {
			needed := q.capacity.needed(head.members)
			if !intersect(needed, reserved) && q.fits(head.members, now) {
				return head.unit, priority, true
			}
			reserved = append(reserved, needed...)
		}
	}
	return "", 0, false
}

// Waiting returns the units that wait, in no order.
func (q *Queue) Waiting() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Keys(q.waiting))
}

// Busy reports whether a unit waits, or an object that still counts is pending.
func (q *Queue) Busy(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.capacity.expire(now)
	return len(q.waiting) > 0 || q.capacity.busy()
}

// nextChange returns after how long a unit may be written because of the time alone, and false if that cannot happen.
func (q *Queue) nextChange(now time.Time) (time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return 0, false
	}
	q.capacity.expire(now)
	soonest := q.capacity.limits.PendingTimeout
	var reserved []string
	for _, priority := range []Priority{Grant, Bulk} {
		for _, head := range q.heads(priority) {
			needed := q.capacity.needed(head.members)
			blocked := intersect(needed, reserved)
			reserved = append(reserved, needed...)
			switch {
			case blocked: // the unit before it decides
			case q.capacity.free(head.members) > 0:
				soonest = min(soonest, q.capacity.rateDelay(head.members, now))
			default:
				soonest = min(soonest, q.capacity.nextTimeout(now))
			}
		}
	}
	return soonest, true
}

func (q *Queue) admit(r Request, now time.Time) {
	if _, ok := q.waiting[r.Unit]; ok {
		delete(q.waiting, r.Unit)
		q.meter.waiting(len(q.waiting))
	}
	q.admitted[r.Unit] = r.Members
	for _, m := range r.Members {
		q.capacity.count(entry{member: m, name: r.Unit}, now)
		q.capacity.useRate(m, now)
	}
	q.meter.admitted(r.Priority)
}

// head is the first unit of a memberQueue.
type head struct {
	queued
	members []string
}

// heads returns the first unit of each memberQueue of a priority, in the order of their requests. Units that no longer wait are
// removed from the queues on the way.
func (q *Queue) heads(priority Priority) []head {
	var out []head
	for key, of := range q.queues[priority] {
		for len(of.units) > 0 {
			if at, ok := q.waiting[of.units[0].unit]; ok && at.number == of.units[0].number {
				break
			}
			of.units = of.units[1:]
		}
		if len(of.units) == 0 {
			delete(q.queues[priority], key)
			continue
		}
		out = append(out, head{of.units[0], of.members})
	}
	slices.SortFunc(out, func(a, b head) int { return cmp.Compare(a.number, b.number) })
	return out
}

// intersect reports whether two sets of members have one in common.
func intersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(m string) bool { return slices.Contains(b, m) })
}

func (q *Queue) capacityFreed() {
	if len(q.waiting) > 0 {
		q.wakeRunner()
	}
}

func (q *Queue) wakeRunner() {
	select {
	case q.trigger <- struct{}{}:
	default:
	}
}
