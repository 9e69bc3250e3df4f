package workloads

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/gaissmai/bart"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Registered is a workload as the host cluster has it.
type Registered struct {
	Workload
	// Object is its name in the host cluster. Managed reports whether it was registered here; other objects belong to
	// administrators and are never changed.
	Object  string
	Managed bool
	// Version changes whenever the object changes.
	Version string
	// Accepted is the adapter's verdict on the object, or nil before there is one. Message says why it is false.
	Accepted *bool
	Message  string
}

// State is the content of the host cluster, updated by the watch of the caller. It is safe for concurrent use.
type State struct {
	mu      sync.RWMutex
	ready   bool
	objects map[string]Registered
	holders bart.Table[map[string]bool] // object names, by prefix
	usages  map[string]usage            // by subject
	sorted  []string                    // names of all objects; nil if they have to be computed
}

// NewState returns a State that is empty and not ready.
func NewState() *State {
	return &State{objects: map[string]Registered{}, usages: map[string]usage{}}
}

// Has reports whether the state has an object in exactly this version.
func (s *State) Has(object, version string) bool {
	x, known := s.get(object)
	return known && x.Version == version
}

// Reached reports whether the state has an object in this version or a newer one.
func (s *State) Reached(object, version string) bool {
	x, known := s.get(object)
	return known && !older(x.Version, version)
}

// older reports whether version a precedes b. Versions of one kind are increasing integers.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// SetReady records that all objects were read once.
func (s *State) SetReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
}

// Set records the current content of an object.
func (s *State) Set(r Registered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.objects[r.Object]; !known {
		s.sorted = nil
	}
	s.drop(r.Object)
	s.objects[r.Object] = r
	s.usages[r.Subject] = s.usages[r.Subject].plus(r.usage())
	for _, p := range r.prefixes() {
		by, held := s.holders.Get(p)
		if !held {
			by = map[string]bool{}
			s.holders.Insert(p, by)
		}
		by[r.Object] = true
	}
}

// Delete records the deletion of an object.
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
	if rest := s.usages[x.Subject].minus(x.usage()); rest == (usage{}) {
		delete(s.usages, x.Subject)
	} else {
		s.usages[x.Subject] = rest
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

// usage returns what the registered workloads of a subject use.
func (s *State) usage(subject string) usage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.usages[subject]
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

// ofSource returns the objects that were registered by a source, by name.
func (s *State) ofSource(source string) map[string]Registered {
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

// withPrefix returns the objects that have exactly this prefix.
func (s *State) withPrefix(p netip.Prefix) []Registered {
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

// overlapping returns the objects that have a prefix that contains p or is contained in it.
func (s *State) overlapping(p netip.Prefix) []Registered {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := map[string]bool{}
	for _, by := range s.holders.Supernets(p) { // including p itself
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

// holds reports whether a workload of a subject has a prefix that contains p.
func (s *State) holds(subject string, p netip.Prefix) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, by := range s.holders.Supernets(p) { // including p itself
		for name := range by {
			if s.objects[name].Subject == subject {
				return true
			}
		}
	}
	return false
}

// listAfter yields the objects after a name, sorted by name.
func (s *State) listAfter(name string, yield func(Registered) bool) {
	s.mu.Lock()
	if s.sorted == nil {
		s.sorted = make([]string, 0, len(s.objects))
		for n := range s.objects {
			s.sorted = append(s.sorted, n)
		}
		slices.Sort(s.sorted)
	}
	names := s.sorted // The slice is never modified, only replaced.
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
