package writequeue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// world is a KubeFed that writes one object in each step while it works, behind an adapter that takes its time.
type world struct {
	t      *testing.T
	line   *Queue
	limits Limits
	now    time.Time
	random *rand.Rand

	// asked are requested units that are not written yet, admitted those that may be written, owed what KubeFed has not propagated, in order.
	asked    map[string]Priority
	admitted map[string]time.Time
	owed     []string
	since    map[delivery]time.Time
	clients  map[string]*client
	// slow is a member that KubeFed does not reach for now.
	slow string
}

// delivery of a unit's object to a member.
type delivery struct{ unit, member string }

// neededBy are the members of a unit.
func neededBy(unit string) []string { return []string{fmt.Sprint("m", len(unit)%2), "m2"} }

// take adds an object for KubeFed's clients. It reports whether more than the reserve was left, if that is required.
func (w *world) take(unit string, spare bool) bool {
	if w.limits.Rate == 0 {
		return true
	}
	enough, waitFor := true, w.waitFor(neededBy(unit))
	for _, m := range neededBy(unit) {
		c := w.clients[m]
		if c == nil {
			c = &client{tokens: float64(w.limits.Burst), at: w.now}
			w.clients[m] = c
		}
		c.tokens = min(float64(w.limits.Burst), c.tokens+w.now.Sub(c.at).Seconds()*w.limits.Rate)
		c.at = w.now
		if c.tokens--; c.tokens < float64(w.limits.Reserved)-1e-6 && slices.Contains(waitFor, m) {
			enough = false
		}
	}
	return enough || !spare
}

// client is KubeFed's of one member.
type client struct {
	tokens float64
	at     time.Time
}

const step = 50 * time.Millisecond

// waitFor are the members that lack nothing for too long, or all if all do.
func (w *world) waitFor(members []string) []string {
	out := slices.DeleteFunc(slices.Clone(members), func(m string) bool {
		for d, at := range w.since {
			if d.member == m && w.now.Sub(at) >= w.limits.PendingTimeout {
				return true
			}
		}
		return false
	})
	if len(out) == 0 {
		return members
	}
	return out
}

// room is how many more units may be written into members, found out in another way.
func (w *world) room(members []string) int {
	inFlight := map[string]int{}
	for unit, at := range w.admitted {
		if w.now.Sub(at) < w.limits.PendingTimeout {
			for _, m := range neededBy(unit) {
				inFlight[m]++
			}
		}
	}
	for d, at := range w.since {
		if w.now.Sub(at) < w.limits.PendingTimeout {
			inFlight[d.member]++
		}
	}
	room := w.limits.MaxPending
	for _, m := range w.waitFor(members) {
		room = min(room, w.limits.MaxPending-inFlight[m])
	}
	return room
}

func (w *world) ask(unit string, kind Priority) {
	room := w.room(neededBy(unit))
	_, had := w.admitted[unit]
	may := w.line.TryAdmit(Request{unit, kind, neededBy(unit)}, w.now)
	switch {
	case had:
		if !may {
			w.t.Fatalf("%s was let through and waits now", unit)
		}
	case may && kind < Revocation && room <= 0:
		w.t.Fatalf("a %s may go without room (%d)", kind, room)
	case may && kind < Revocation && !w.take(unit, true):
		w.t.Fatalf("a %s may go though KubeFed has no more than what is spared", kind)
	case !may && kind >= Revocation:
		w.t.Fatalf("a %s waits", kind)
	case may:
		if kind >= Revocation {
			w.take(unit, false)
		}
		w.admitted[unit] = w.now
		delete(w.asked, unit)
	default:
		w.asked[unit] = max(w.asked[unit], kind)
	}
}

func (w *world) next() {
	for _, turn := range w.line.AdmitNext(w.now) {
		if room := w.room(neededBy(turn.Unit)); room <= 0 {
			w.t.Fatalf("it is the turn of %s without room (%d)", turn.Unit, room)
		}
		if _, waits := w.asked[turn.Unit]; !waits {
			w.t.Fatalf("it is the turn of %s, which does not wait", turn.Unit)
		}
		if !w.take(turn.Unit, true) {
			w.t.Fatalf("it is the turn of %s though KubeFed has no more than what is spared", turn.Unit)
		}
		delete(w.asked, turn.Unit)
		w.admitted[turn.Unit] = w.now
	}
}

// write lets the adapter write some of what it may.
func (w *world) write(all bool) {
	for unit := range w.admitted {
		if !all && w.random.IntN(3) == 0 {
			continue
		}
		if w.random.IntN(10) > 0 {
			w.line.SetPending(unit, neededBy(unit), w.now)
			for _, m := range neededBy(unit) {
				if _, had := w.since[delivery{unit, m}]; !had {
					w.since[delivery{unit, m}] = w.now
				}
			}
			if !slices.Contains(w.owed, unit) {
				w.owed = append(w.owed, unit)
			}
		}
		w.line.Done(unit)
		delete(w.admitted, unit)
	}
}

// kubefed brings the oldest object that is not everywhere to the members that it reaches.
func (w *world) kubefed() {
	for i, unit := range w.owed {
		var left []string
		brought := false
		for _, m := range neededBy(unit) {
			if _, owed := w.since[delivery{unit, m}]; !owed {
				continue
			}
			if m == w.slow {
				left = append(left, m)
				continue
			}
			brought = true
			delete(w.since, delivery{unit, m})
		}
		if !brought {
			continue
		}
		w.line.SetPending(unit, left, w.now)
		if len(left) == 0 {
			w.owed = slices.Delete(w.owed, i, i+1)
		}
		return
	}
}

// TestQueueModel: whatever comes in whatever order, no more is on its way than the limits say, urgent work never waits, and in
// the end no request waits, even if KubeFed never writes again.
func TestQueueModel(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			limits := Limits{MaxPending: 1 + int(seed%12), PendingTimeout: time.Duration(1+seed%7) * time.Second}
			if seed%3 == 0 {
				limits.Rate, limits.Burst, limits.Reserved = float64(5+seed), 10, int(seed%9)
			}
			w := &world{clients: map[string]*client{}, t: t, line: New("test", limits), limits: limits, now: noon, random: rand.New(rand.NewPCG(seed, 1)),
				asked: map[string]Priority{}, admitted: map[string]time.Time{}, since: map[delivery]time.Time{}}
			works := true
			for range 600 {
				w.now = w.now.Add(step)
				if w.random.IntN(40) == 0 {
					works = !works
				}
				if w.random.IntN(60) == 0 {
					w.slow = []string{"", "m0", "m1", "m2"}[w.random.IntN(4)]
				}
				for range w.random.IntN(4) {
					kinds := []Priority{Bulk, Bulk, Bulk, Grant, Grant, Revocation, Opening}
					w.ask(fmt.Sprint("unit", w.random.IntN(300)), kinds[w.random.IntN(len(kinds))])
				}
				if w.random.IntN(100) == 0 {
					for i := range 150 {
						w.ask(fmt.Sprint("unit", i), Bulk)
					}
				}
				w.next()
				w.write(false)
				if works {
					w.kubefed()
				}
			}
			w.slow = ""
			works = seed%2 == 0 // the others end with a KubeFed that is gone
			left := len(w.asked) + len(w.admitted)
			turns := (left + len(w.owed)) * 2
			rate := 0
			if limits.Rate > 0 { // what went before may have left KubeFed's clients in debt
				rate = int(float64(left+1000) / limits.Rate / step.Seconds())
			}
			if !works {
				turns = (left/limits.MaxPending + 2) * int(limits.PendingTimeout/step+1)
			}
			for range turns + rate {
				w.now = w.now.Add(step)
				w.next()
				w.write(true)
				if works {
					w.kubefed()
				}
			}
			if len(w.asked) > 0 || len(w.line.Waiting()) > 0 {
				t.Errorf("%d of %d still wait", len(w.asked), left)
			}
		})
	}
}

// TestRun checks that a waiting unit is enqueued when the units before it are done or overdue, and no earlier.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		l := New("test", Limits{MaxPending: 1, PendingTimeout: 5 * time.Second})
		l.SetPending("object", noMembers, began)
		l.TryAdmit(Request{Unit: "a", Priority: Bulk}, began)
		l.TryAdmit(Request{Unit: "b", Priority: Bulk}, began)
		var called []string
		var running sync.WaitGroup
		running.Go(func() {
			turn := func(turn Admission) { called = append(called, fmt.Sprint(turn.Unit, " after ", time.Since(began))) }
			if err := l.Run(ctx, clock.RealClock{}, turn); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		l.SetPending("object", nil, time.Now())
		time.Sleep(time.Minute)
		cancel()
		running.Wait()
		if want := []string{"a after 1s", "b after 6s"}; !slices.Equal(called, want) {
			t.Errorf("called: %v, want %v", called, want)
		}
	})
}
