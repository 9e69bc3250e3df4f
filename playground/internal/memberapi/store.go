package memberapi

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxEvents is the number of past events from which a watch can begin. A real API server keeps those of some minutes.
const maxEvents = 5_000

// store contains the objects of one kind in a member.
type store struct {
	resource Resource
	// counter numbers the versions of all kinds of the member.
	counter *atomic.Uint64

	mu      sync.RWMutex
	objects map[string]*object
	// keys are the sorted keys of the objects.
	keys []string
	// events are the last changes, oldest first. forgotten is the version of the newest change that is not among them.
	events    []event
	forgotten uint64
	// changed is closed at the next change.
	changed chan struct{}
}

// event is a change of an object.
type event struct {
	kind string
	*object
}

// Kinds of events.
const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"
)

func newStore(r Resource, counter *atomic.Uint64) *store {
	return &store{resource: r, counter: counter, objects: map[string]*object{}, changed: make(chan struct{})}
}

func (s *store) get(key string) *object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[key]
}

// all returns a copy of the objects by their keys.
func (s *store) all() map[string]*object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.objects)
}

// list returns at most limit objects, or all for 0, that follow a key and belong to a namespace, or to any for "". more reports whether
// others follow. version is a version as of which the list is complete.
func (s *store) list(namespace, after string, limit int, is func(*object) bool) (out []*object, more bool, version uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	first, found := slices.BinarySearch(s.keys, after)
	if found && after != "" {
		first++
	}
	for _, key := range s.keys[first:] {
		if namespace != "" && !strings.HasPrefix(key, namespace+"/") {
			continue
		}
		o := s.objects[key]
		if !is(o) {
			continue
		}
		if limit > 0 && len(out) == limit {
			more = true
			break
		}
		out = append(out, o)
	}
	return out, more, s.counter.Load()
}

// change replaces the object of a key by what do returns, which gets the present one, or nil. do returns an object that is gone to delete
// it, and the present object for no change.
func (s *store) change(key string, do func(*object) (*object, error)) (now *object, kind string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[key]
	after, err := do(before)
	if err != nil || after == before {
		return before, "", err
	}
	switch {
	case after.gone:
		// The event has the last version that was stored, and the answer the result of the request, with the version before.
		kind, now = deleted, after
		now.version = before.version
		last := *before
		after = &last
		i, _ := slices.BinarySearch(s.keys, key)
		s.keys = slices.Delete(s.keys, i, i+1)
		delete(s.objects, key)
	case before == nil:
		kind = added
		i, _ := slices.BinarySearch(s.keys, key)
		s.keys = slices.Insert(s.keys, i, key)
		s.objects[key] = after
	default:
		kind = modified
		s.objects[key] = after
	}
	after.version = s.counter.Add(1)
	s.events = append(s.events, event{kind, after})
	if len(s.events) >= 2*maxEvents {
		s.forgotten = s.events[len(s.events)-maxEvents-1].version
		s.events = slices.Clone(s.events[len(s.events)-maxEvents:])
	}
	close(s.changed)
	s.changed = make(chan struct{})
	if now == nil {
		now = after
	}
	return now, kind, nil
}

// errExpired is the error of a watch from a version whose successors are forgotten.
var errExpired = apierrors.NewResourceExpired("too old resource version")

// since returns the changes after a version, and a channel that is closed at the next one.
func (s *store) since(version uint64) (out []event, next <-chan struct{}, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if version < s.forgotten {
		return nil, nil, errExpired
	}
	first, _ := slices.BinarySearchFunc(s.events, version+1, func(e event, v uint64) int {
		switch {
		case e.version < v:
			return -1
		case e.version > v:
			return 1
		}
		return 0
	})
	return slices.Clone(s.events[first:]), s.changed, nil
}
