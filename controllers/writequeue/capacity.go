package writequeue

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// capacity counts, for each member, the units that were admitted and the objects that KubeFed has not propagated yet, and how much of
// KubeFed's rate is used. The queue's lock protects it.
type capacity struct {
	limits Limits
	// report is called with the number of overdue objects of a member when it changes.
	report func(member string, overdue int)

	// pending maps each object to the members to which KubeFed still has to propagate it.
	pending map[string][]string
	// counted maps what counts against MaxPending (admitted units and pending objects) to the time since when it counts. byAge
	// lists the same entries, oldest first. lagCandidates lists the entries whose object another member already has, ordered by when
	// that member got it; LagTimeout applies to them.
	counted       map[entry]time.Time
	byAge         []timedEntry
	lagCandidates []timedEntry
	// inFlight is the number of counted entries of each member.
	inFlight map[string]int
	// overdue holds the pending objects that timed out and count no more; lagging is their number in each member that has any.
	overdue map[entry]struct{}
	lagging map[string]int
	// limiters model the rates of KubeFed's clients, by member.
	limiters map[string]*rate.Limiter
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

func newCapacity(limits Limits, report func(member string, overdue int)) *capacity {
	return &capacity{limits: limits, report: report, pending: map[string][]string{}, counted: map[entry]time.Time{}, inFlight: map[string]int{},
		overdue: map[entry]struct{}{}, lagging: map[string]int{}, limiters: map[string]*rate.Limiter{}}
}

// setPending records the members to which KubeFed still has to propagate an object. freed reports whether a member received it, and lags
// whether other members still lack it then, so that LagTimeout applies to them.
func (c *capacity) setPending(object string, members []string, now time.Time) (freed, lags bool) {
	before := c.pending[object]
	for _, m := range members {
		if !slices.Contains(before, m) {
			c.count(entry{m, true, object}, now)
		}
	}
	for _, m := range before {
		if slices.Contains(members, m) {
			continue
		}
		e := entry{m, true, object}
		freed = true
		c.uncount(e)
		if _, late := c.overdue[e]; late {
			delete(c.overdue, e)
			c.addLagging(m, -1)
		}
	}
	if len(members) == 0 {
		delete(c.pending, object)
		return freed, false
	}
	c.pending[object] = slices.Clone(members)
	if !freed || c.limits.LagTimeout <= 0 {
		return freed, false
	}
	for _, m := range members {
		c.lagCandidates = append(c.lagCandidates, timedEntry{entry{m, true, object}, now})
	}
	return true, true
}

// busy reports whether anything counts.
func (c *capacity) busy() bool { return len(c.counted) > 0 }

// needed returns the members that a unit waits for: those that are not lagging, or all if all are.
func (c *capacity) needed(members []string) []string {
	if len(c.lagging) == 0 {
		return members
	}
	out := slices.DeleteFunc(slices.Clone(members), func(m string) bool { return c.lagging[m] > 0 })
	if len(out) == 0 {
		return members
	}
	return out
}

// free returns how many more units may be written into each of the members that a unit waits for.
func (c *capacity) free(members []string) int {
	free := c.limits.MaxPending
	for _, m := range c.needed(members) {
		free = min(free, c.limits.MaxPending-c.inFlight[m])
	}
	return free
}

// limiter returns the rate of KubeFed's client of a member, or nil if the rate is not limited.
func (c *capacity) limiter(member string) *rate.Limiter {
	if c.limits.Rate == 0 {
		return nil
	}
	to, ok := c.limiters[member]
	if !ok {
		to = rate.NewLimiter(rate.Limit(c.limits.Rate), c.limits.Burst)
		c.limiters[member] = to
	}
	return to
}

// useRate counts a write into a member against KubeFed's rate. An urgent write counts also if the rate is used up: KubeFed writes the
// object later.
func (c *capacity) useRate(member string, now time.Time) {
	if to := c.limiter(member); to != nil {
		to.ReserveN(now, 1)
	}
}

// rateDelay returns how long to wait until KubeFed can write one more object to each needed member without using the reserved burst.
func (c *capacity) rateDelay(members []string, now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, m := range c.needed(members) {
		if to := c.limiter(m); to != nil {
			missing := float64(c.limits.Reserved) + 1 - to.TokensAt(now)
			longest = max(longest, time.Duration(missing/c.limits.Rate*float64(time.Second)))
		}
	}
	return longest
}

func (c *capacity) count(e entry, now time.Time) {
	if _, had := c.counted[e]; !had {
		c.inFlight[e.member]++
	}
	c.counted[e] = now
	c.byAge = append(c.byAge, timedEntry{e, now})
}

func (c *capacity) uncount(e entry) {
	if _, had := c.counted[e]; !had {
		return
	}
	delete(c.counted, e)
	if c.inFlight[e.member]--; c.inFlight[e.member] == 0 {
		delete(c.inFlight, e.member)
	}
}

// addLagging changes how many objects are overdue in a member.
func (c *capacity) addLagging(member string, by int) {
	if c.lagging[member] += by; c.lagging[member] == 0 {
		delete(c.lagging, member)
	}
	c.report(member, c.lagging[member])
}

// nextTimeout returns how long it takes until the oldest entry that counts times out. Something must count.
func (c *capacity) nextTimeout(now time.Time) time.Duration {
	soonest := c.byAge[0].since.Add(c.limits.PendingTimeout).Sub(now)
	if len(c.lagCandidates) > 0 {
		soonest = min(soonest, c.lagCandidates[0].since.Add(c.limits.LagTimeout).Sub(now))
	}
	return soonest
}

// expire stops counting what is older than Limits.PendingTimeout or Limits.LagTimeout. A member that still lacks such an object is
// lagging.
func (c *capacity) expire(now time.Time) {
	for len(c.byAge) > 0 {
		oldest := c.byAge[0]
		since, counts := c.counted[oldest.entry]
		if counts && since.Equal(oldest.since) {
			if now.Sub(since) < c.limits.PendingTimeout {
				break
			}
			c.timeOut(oldest.entry)
		}
		c.byAge = c.byAge[1:]
	}
	for len(c.lagCandidates) > 0 {
		oldest := c.lagCandidates[0]
		// An object that became pending again since then is appended again as soon as one member has it.
		if since, counts := c.counted[oldest.entry]; counts && !since.After(oldest.since) {
			if now.Sub(oldest.since) < c.limits.LagTimeout {
				return
			}
			c.timeOut(oldest.entry)
		}
		c.lagCandidates = c.lagCandidates[1:]
	}
}

// timeOut stops counting an entry that is too old.
func (c *capacity) timeOut(e entry) {
	c.uncount(e)
	if e.object {
		c.overdue[e] = struct{}{}
		c.addLagging(e.member, 1)
	}
}
