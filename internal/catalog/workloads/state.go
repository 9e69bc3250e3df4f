package workloads

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/gaissmai/bart"
)

// Registered is a workload as the host cluster has it.
type Registered struct {
	Workload
	// Object is its name in the host cluster; Managed tells that it was registered here. Others belong to
	// administrators and are left alone.
	Object  string
	Managed bool
	// Version changes with the object.
	Version string
	// Accepted by the adapter; nil: not judged yet. Message says why not.
	Accepted *bool
	Message  string
}

// State is what the host cluster has, kept by whoever watches it. Safe for concurrent use.
type State struct {
	mu      sync.RWMutex
	ready   bool
	objects map[string]Registered
	holders bart.Table[map[string]bool] // object names, by prefix
	counts  map[string]int              // addresses, by subject
	sorted  []string                    // of all objects; nil: to be made
}

// NewState is empty and not ready.
func NewState() *State {
	return &State{objects: map[string]Registered{}, counts: map[string]int{}}
}

// Ready is said when everything was seen once.
func (s *State) Ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
}

// Set an object as it is now.
func (s *State) Set(r Registered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.objects[r.Object]; !known {
		s.sorted = nil
	}
	s.drop(r.Object)
	s.objects[r.Object] = r
	s.counts[r.Subject] += r.count()
	for _, p := range r.prefixes() {
		by, held := s.holders.Get(p)
		if !held {
			by = map[string]bool{}
			s.holders.Insert(p, by)
		}
		by[r.Object] = true
	}
}

// Delete an object.
func (s *State) Delete(object string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(object)
	delete(s.objects, object)
	s.sorted = nil
}

func (s *State) drop(object string) {
	x, known := s.objects[object]
	if !known {
		return
	}
	if s.counts[x.Subject] -= x.count(); s.counts[x.Subject] == 0 {
		delete(s.counts, x.Subject)
	}
	for _, p := range x.prefixes() {
		by, held := s.holders.Get(p)
		if !held {
			continue
		}
		if delete(by, object); len(by) == 0 {
			s.holders.Delete(p)
		}
	}
}

// count of the addresses that are registered for a subject.
func (s *State) count(subject string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.counts[subject]
}

func (s *State) get(object string) (Registered, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.objects[object]
	return r, ok
}

func (s *State) isReady() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ready
}

// of a source: what was registered by it.
func (s *State) of(source string) map[string]Registered {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := map[string]Registered{}
	for name, r := range s.objects {
		if r.Managed && r.Source == source {
			out[name] = r
		}
	}
	return out
}

// holding are the objects that have a prefix.
func (s *State) holding(p netip.Prefix) []Registered {
	s.mu.RLock()
	defer s.mu.RUnlock()
	by, _ := s.holders.Get(p)
	out := make([]Registered, 0, len(by))
	for name := range by {
		out = append(out, s.objects[name])
	}
	slices.SortFunc(out, func(a, b Registered) int { return strings.Compare(a.Object, b.Object) })
	return out
}

// overlapping are the objects that have a prefix around p or within it.
func (s *State) overlapping(p netip.Prefix) []Registered {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := map[string]bool{}
	for _, by := range s.holders.Supernets(p) { // p among them
		for name := range by {
			names[name] = true
		}
	}
	for _, by := range s.holders.Subnets(p) {
		for name := range by {
			names[name] = true
		}
	}
	out := make([]Registered, 0, len(names))
	for name := range names {
		out = append(out, s.objects[name])
	}
	slices.SortFunc(out, func(a, b Registered) int { return strings.Compare(a.Object, b.Object) })
	return out
}

// after gives the objects behind a name, in the order of their names, while yield wants more.
func (s *State) after(name string, yield func(Registered) bool) {
	s.mu.Lock()
	if s.sorted == nil {
		s.sorted = make([]string, 0, len(s.objects))
		for n := range s.objects {
			s.sorted = append(s.sorted, n)
		}
		slices.Sort(s.sorted)
	}
	names := s.sorted // never changed, only replaced
	s.mu.Unlock()
	i, found := slices.BinarySearch(names, name)
	if found {
		i++
	}
	for _, n := range names[i:] {
		if r, ok := s.get(n); ok && !yield(r) {
			return
		}
	}
}
