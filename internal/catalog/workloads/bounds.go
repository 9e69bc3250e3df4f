package workloads

import (
	"fmt"
	"sync"
	"time"
)

const (
	// DefaultAddresses is the number of addresses that owners may register for one application, unless the
	// configuration says otherwise.
	DefaultAddresses = 1024
	// MaxAddressesOfMachines bounds the addresses of one application for every actor, so that a platform's mistake does
	// not open resources to a whole network.
	MaxAddressesOfMachines = 1 << 17
	// writtenLifetime is how long a write is counted that the watch has not returned.
	writtenLifetime = time.Minute
)

// bounds serialises registrations, and holds those that the watch has not returned yet: otherwise concurrent calls
// would all be counted against the same earlier state.
type bounds struct {
	mu      sync.Mutex
	written map[string]written // by object name
}

type written struct {
	Workload
	at time.Time
}

// addressCounts are the numbers of addresses of each application as they would be after a call.
type addressCounts struct {
	r     *Registrar
	actor Actor
	bySub map[string]int
	has   map[string]Workload // by object name, where it differs from the state
}

// addressCounts returns the numbers of what is registered now.
func (r *Registrar) addressCounts(a Actor) *addressCounts {
	s := &addressCounts{r: r, actor: a, bySub: map[string]int{}, has: map[string]Workload{}}
	for name, w := range r.bounds.written {
		if x, known := r.State.get(name); known && x.equal(w.Workload) || r.Now().Sub(w.at) > writtenLifetime {
			delete(r.bounds.written, name)
			continue
		}
		s.replace(w.Workload)
	}
	return s
}

// replace replaces the content of a workload's object, and returns the earlier content.
func (s *addressCounts) replace(w Workload) Workload {
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

func (s *addressCounts) of(subject string) int {
	if _, known := s.bySub[subject]; !known {
		s.bySub[subject] = s.r.State.count(subject)
	}
	return s.bySub[subject]
}

// add adds a workload, or returns why the actor may not register it. An owner of an application must not let in any
// number of addresses by grants to which others agreed: beyond the bound, and for address ranges while access is
// granted, the security team registers them, by a full sync or by a platform with a token of the security team.
func (s *addressCounts) add(w Workload) error {
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

func (s *addressCounts) refuse(w, before Workload, was, now int) error {
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
