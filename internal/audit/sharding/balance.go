package sharding

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/backoff"
)

// A collector that starts late finds all leases taken. A collector that follows few members therefore requests another one: it
// takes a lease whose name contains its number of members ("wish/2"). A collector that follows at least two more reads these
// leases and gives up one of its members.

// maxRequestLevel is the largest number of members at which a collector still requests another one. With more members, one
// collector more or less makes little difference.
const maxRequestLevel = 4

func requestLease(has int) string { return fmt.Sprintf("wish/%d", has) }

// Balance evens out the number of members that the collectors follow, until the context ends. It compares numbers every TTL/2 to
// 3·TTL/4, and moves one member at a time.
func (s *Sharder) Balance(ctx context.Context) {
	holder := s.cfg.Name + "/" + uuid.NewString()
	wished := ""
	for backoff.Pause(ctx, clock.RealClock{}, s.cfg.TTL/2+rand.N(s.cfg.TTL/4+1)) {
		has := int(s.held.Load())
		wished = s.updateRequest(ctx, wished, holder, has)
		if s.requestedByOther(ctx, has) && s.giveUpOne() {
			backoff.Pause(ctx, clock.RealClock{}, 2*s.cfg.TTL) // the request lease may outlive its fulfilment by that long
		}
	}
	if wished != "" {
		s.release(context.WithoutCancel(ctx), wished, holder)
	}
}

// updateRequest takes or renews the request lease for a collector with that many members, releases the previous one if it is
// different, and returns the lease's name; "" if this collector requests nothing.
func (s *Sharder) updateRequest(ctx context.Context, wished, holder string, has int) string {
	now := ""
	if has < s.addRunning(0) && has < maxRequestLevel {
		now = requestLease(has)
	}
	if wished != "" && wished != now {
		s.release(ctx, wished, holder)
	}
	if now == "" {
		return ""
	}
	// Another collector with as many members may hold the same request lease. One request is enough.
	if ok, err := s.cfg.Leases.Lease(ctx, now, holder, s.cfg.TTL); err != nil || !ok {
		return ""
	}
	return now
}

// requestedByOther reports whether a collector that follows at least two fewer members requests one. An error of the store counts
// as no.
func (s *Sharder) requestedByOther(ctx context.Context, has int) bool {
	for fewer := range min(has-1, maxRequestLevel) {
		if who, err := s.cfg.Leases.Holder(ctx, requestLease(fewer)); err != nil || who != "" {
			return err == nil
		}
	}
	return false
}

func (s *Sharder) release(ctx context.Context, source, holder string) {
	limited, cancel := context.WithTimeout(ctx, s.cfg.TTL/3)
	defer cancel()
	if err := s.cfg.Leases.Release(limited, source, holder); err != nil {
		s.cfg.Log.Debug("a request lease could not be released; it expires", "lease", source, "error", err)
	}
}

// giveUpOne stops following one member, and prevents this collector from taking its lease again for 2·TTL. It reports false if
// the collector follows none.
func (s *Sharder) giveUpOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for source, stop := range s.stops {
		s.cooldownUntil[source] = time.Now().Add(2 * s.cfg.TTL)
		s.cfg.Log.Info("releasing a member to a collector that follows fewer members", "member", source)
		stop()
		return true
	}
	return false
}

// cooldown returns how long this collector still may not take the lease of the source; 0 if it may.
func (s *Sharder) cooldown(source string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.cooldownUntil[source]
	left := time.Until(until)
	if ok && left <= 0 {
		delete(s.cooldownUntil, source)
	}
	return max(left, 0)
}

// setStop records the function that stops following the source; nil removes it.
func (s *Sharder) setStop(source string, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop == nil {
		delete(s.stops, source)
		return
	}
	s.stops[source] = stop
}

// addRunning adds n to the number of sources that this collector could follow, and returns the sum.
func (s *Sharder) addRunning(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += n
	return s.running
}
