package ocm

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/federation"
)

// Scope is the name of a store of objects, such as "policies". Several stores share the Works of a process, and their objects may have
// the same keys. The scope is empty if there is only one store.
type Scope string

// key returns the key of an object of the store among those of all stores.
func (s Scope) key(object string) string {
	if s == "" {
		return object
	}
	return string(s) + "/" + object
}

// Own returns the key of an object in the store, given its key among those of all stores; false if it belongs to another one.
func (s Scope) Own(key string) (object string, ok bool) {
	if s == "" {
		return key, true
	}
	return strings.CutPrefix(key, string(s)+"/")
}

// Registry returns the registered members, which name their engines. federation.Fleet implements it.
type Registry interface {
	Registry() (bool, error)
	Clusters() []federation.Cluster
	Cluster(name string) (federation.Cluster, bool)
}

// WorksConfig configures Works.
type WorksConfig struct {
	// Host is a client of the host.
	Host    dynamic.Interface
	Members Registry
	// Changed is called with the key of an object, among those of all stores, whose ManifestWork in a member's namespace changed, and with
	// key "" when the member's agent was lost or found, or its ManifestWorks were listed. It must return quickly.
	Changed func(cluster, key string)
	// Heartbeats is DefaultHeartbeats if it is zero.
	Heartbeats Heartbeats
	Log        logr.Logger
	// Clock is the clock; nil means the machine's.
	Clock clock.WithTicker
}

// Works are the ManifestWorks of ACP on the host. They run in one process at a time, the leader. Only the namespaces of the members that
// use the engine, or used it before, are watched, so that the adapter needs no rights in those of other clusters.
type Works struct {
	config WorksConfig

	mu sync.RWMutex
	// watches are the watches of the members' namespaces.
	watches map[string]*namespaceWatch
	beats   map[string]*beat
	// contents maps a member's object to the version of it that was last seen with a known revision.
	contents map[place]content
	// handled maps a member's object to the body of the ManifestWork that its agent handled last.
	handled map[place]string
	// found counts how often an object was found in a member that should not have it.
	found map[place]int
}

// place identifies an object in a member.
type place struct{ cluster, key string }

// content is a version of an object in a member whose revision is known.
type content struct{ uid, version, revision string }

// NewWorks returns Works that are idle until Run.
func NewWorks(config WorksConfig) (*Works, error) {
	if config.Host == nil || config.Members == nil || config.Changed == nil {
		return nil, errors.New("ocm: Host, Members and Changed are needed")
	}
	if config.Heartbeats == (Heartbeats{}) {
		config.Heartbeats = DefaultHeartbeats
	}
	config.Clock = cmp.Or[clock.WithTicker](config.Clock, clock.RealClock{})
	return &Works{config: config, watches: map[string]*namespaceWatch{}, beats: map[string]*beat{}, contents: map[place]content{},
		handled: map[place]string{}, found: map[place]int{}}, nil
}

// onWork handles the event that a ManifestWork appeared or changed.
func (s *Works) onWork(w *work) {
	if w.purpose == purposeHeartbeat {
		s.onHeartbeat(w)
		return
	}
	s.mu.Lock()
	if w.exact() && w.revision != "" {
		s.contents[place{w.cluster, w.key}] = content{w.report.uid, w.report.version, w.revision}
	}
	at := place{w.cluster, w.key}
	switch {
	case w.name != nameOf(w.key):
	case w.applied:
		s.handled[at] = w.body
	case s.handled[at] != w.body:
		delete(s.handled, at)
	}
	s.mu.Unlock()
	s.config.Changed(w.cluster, w.key)
}

// onWorkDeleted handles the event that a ManifestWork was deleted.
func (s *Works) onWorkDeleted(w *work) {
	s.mu.Lock()
	if w.name == nameOf(w.key) {
		delete(s.contents, place{w.cluster, w.key})
		delete(s.handled, place{w.cluster, w.key})
	}
	if b := s.beats[w.cluster]; b != nil && w.purpose == purposeHeartbeat {
		b.next = time.Time{} // A heartbeat that was deleted is repeated at once.
	}
	s.mu.Unlock()
	if w.purpose != purposeHeartbeat {
		s.config.Changed(w.cluster, w.key)
	}
}

// Run watches the ManifestWorks and sends heartbeats until the context ends.
func (s *Works) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := s.config.Clock.NewTicker(max(s.config.Heartbeats.Interval/4, 50*time.Millisecond))
	defer tick.Stop()
	for {
		if err := s.updateWatches(ctx, &running); err != nil {
			return err
		}
		s.sendHeartbeats(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// discardHandled discards the body that the agent handled last, unless it is the one that is about to be written. If the content changed back
// later, the agent could still be handling the one in between.
func (s *Works) discardHandled(at place, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handled[at] != body {
		delete(s.handled, at)
	}
}

// hasHandled reports whether the agent has handled the body of a ManifestWork, so that it writes nothing else any more. A later version with the same
// body and another nonce makes no difference.
func (s *Works) hasHandled(w *work) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return w.applied || s.handled[place{w.cluster, w.key}] == w.body
}

// Suspended reports whether the agent of a member has confirmed for every ManifestWork that it does not change the object any more.
func (s *Works) Suspended(cluster string) bool {
	return !slices.ContainsFunc(s.objectWorks(cluster), func(w *work) bool { return !w.readOnly || w.deleting || !w.applied })
}

// countFound records that an object was found in a member, and makes the engine handle it again.
func (s *Works) countFound(at place) {
	s.mu.Lock()
	s.found[at]++
	s.mu.Unlock()
	s.config.Changed(at.cluster, at.key)
}

// timesFound returns how often countFound was called for an object in a member.
func (s *Works) timesFound(at place) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.found[at]
}
