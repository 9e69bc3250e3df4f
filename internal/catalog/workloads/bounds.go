package workloads

import (
	"fmt"
	"sync"
	"time"
)

const (
	// DefaultAddresses that owners may register for one application.
	DefaultAddresses = 1024
	// MaxAddressesOfMachines bounds those of one application for everybody, so that no platform's mistake opens resources to
	// a whole network.
	MaxAddressesOfMachines = 1 << 17
	// writtenFor is how long a write counts that the watch did not bring back.
	writtenFor = time.Minute
)

// bounds serialise registrations, and remember those that the watch has not brought back yet: else calls beside each
// other would all be counted against the same past.
type bounds struct {
	mu      sync.Mutex
	written map[string]written // by object name
}

type written struct {
	Workload
	at time.Time
}

// sums are the addresses of each application as they would be after a call.
type sums struct {
	r     *Registrar
	actor Actor
	bySub map[string]int
	has   map[string]Workload // by object name, where it differs from the state
}

// sums of what is registered now.
func (r *Registrar) sums(a Actor) *sums {
	s := &sums{r: r, actor: a, bySub: map[string]int{}, has: map[string]Workload{}}
	for name, w := range r.bounds.written {
		if x, known := r.State.get(name); known && x.same(w.Workload) || r.Now().Sub(w.at) > writtenFor {
			delete(r.bounds.written, name)
			continue
		}
		s.replace(w.Workload)
	}
	return s
}

// replace what a workload's object has, and return that.
func (s *sums) replace(w Workload) Workload {
	before, changed := s.has[w.Name()]
	if !changed {
		x, _ := s.r.State.get(w.Name())
		before = x.Workload
	}
	for subject, n := range map[string]int{before.Subject: -before.count()} {
		s.of(subject)
		s.bySub[subject] += n
	}
	s.of(w.Subject)
	s.bySub[w.Subject] += w.count()
	s.has[w.Name()] = w
	return before
}

func (s *sums) of(subject string) int {
	if _, known := s.bySub[subject]; !known {
		s.bySub[subject] = s.r.State.count(subject)
	}
	return s.bySub[subject]
}

// add a workload, or say why it may not be registered by this actor. Whoever speaks for the application must not let
// any number of addresses in by grants that others agreed to: beyond the bound, and for ranges while access is granted,
// the security team registers them, by a full sync or by a platform with a token of it.
func (s *sums) add(w Workload) error {
	was := s.of(w.Subject)
	before := s.replace(w)
	now := s.of(w.Subject)
	err := s.refuse(w, before, was, now)
	if err != nil {
		if before.ID == "" {
			before = Workload{ID: w.ID, Source: w.Source}
		}
		s.replace(before)
	}
	return err
}

func (s *sums) refuse(w, before Workload, was, now int) error {
	if now > was && now > MaxAddressesOfMachines {
		return fmt.Errorf("the application would have %d addresses, and may have %d", now, MaxAddressesOfMachines)
	}
	if s.actor.Machine {
		return nil
	}
	if most := s.r.MostAddresses; now > was && now > most {
		return fmt.Errorf("the application would have %d addresses, and its owners may register %d: ask the security team to register it as a platform's", now, most)
	}
	ranges := w.ranges(before)
	if len(ranges) == 0 || s.r.Granted == nil {
		return nil
	}
	granted, err := s.r.Granted(w.Subject)
	if err != nil {
		return err
	}
	if granted {
		return fmt.Errorf("%s is a range, and access is granted to the application already: register single addresses, or ask the security team to register it as a platform's", ranges[0])
	}
	return nil
}
