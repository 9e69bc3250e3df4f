package sharding

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// A collector that comes late finds all members taken. So whoever has few says so, by a lease on a wish with the number that he has; who
// has at least two more looks for such wishes, and gives one member up.

// wishes are made by who has so many members or fewer: with more, each further collector makes little difference.
const wishes = 4

func wish(has int) string { return fmt.Sprintf("wish/%d", has) }

// Balance makes collectors that follow different numbers of members have nearly as many, until the context ends.
func (s *Sharder) Balance(ctx context.Context) {
	holder := s.cfg.Name + "/" + uuid.NewString()
	wished := ""
	for sleep(ctx, s.cfg.TTL/2+rand.N(s.cfg.TTL/4+1)) {
		has := int(s.held.Load())
		wished = s.ask(ctx, wished, holder, has)
		if s.wanted(ctx, has) && s.giveUp() {
			sleep(ctx, 2*s.cfg.TTL) // the wish may last as long as that after it came true
		}
	}
	if wished != "" {
		s.release(context.WithoutCancel(ctx), wished, holder)
	}
}

// ask keeps the wish that fits, and returns it; "": there is none.
func (s *Sharder) ask(ctx context.Context, wished, holder string, has int) string {
	now := ""
	if has < s.count(0) && has < wishes {
		now = wish(has)
	}
	if wished != "" && wished != now {
		s.release(ctx, wished, holder)
	}
	if now == "" {
		return ""
	}
	// Whoever has as many may have the same wish; one is enough.
	if ok, err := s.cfg.Leases.Lease(ctx, now, holder, s.cfg.TTL); err != nil || !ok {
		return ""
	}
	return now
}

// wanted tells whether a collector that has at least two fewer wishes for more. A store that does not answer says nothing.
func (s *Sharder) wanted(ctx context.Context, has int) bool {
	for fewer := range min(has-1, wishes) {
		if who, err := s.cfg.Leases.Holder(ctx, wish(fewer)); err != nil || who != "" {
			return err == nil
		}
	}
	return false
}

func (s *Sharder) release(ctx context.Context, source, holder string) {
	limited, cancel := context.WithTimeout(ctx, s.cfg.TTL/3)
	defer cancel()
	if err := s.cfg.Leases.Release(limited, source, holder); err != nil {
		s.cfg.Log.Debug("a lease was not given back; it runs out by itself", "lease", source, "error", err)
	}
}

// giveUp ends what it has of one source, and does not ask for it for a while.
func (s *Sharder) giveUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for source, stop := range s.holding {
		s.given[source] = time.Now().Add(2 * s.cfg.TTL)
		s.cfg.Log.Info("another collector has fewer members and takes this one", "member", source)
		stop()
		return true
	}
	return false
}

// rest is how long it does not ask for a source.
func (s *Sharder) rest(source string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.given[source]
	left := time.Until(until)
	if ok && left <= 0 {
		delete(s.given, source)
	}
	return max(left, 0)
}

// hands notes how to give a source up; nil: it does not have it.
func (s *Sharder) hands(source string, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop == nil {
		delete(s.holding, source)
		return
	}
	s.holding[source] = stop
}

// count adds to the sources that it would follow, and returns how many there are.
func (s *Sharder) count(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += n
	return s.running
}
