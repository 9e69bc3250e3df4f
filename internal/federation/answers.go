package federation

import (
	"sync"
	"sync/atomic"
)

// Answers counts what the API servers of members answered in time, for all kinds that are read there: pages of lists, events of watches, and probes. An
// API server that answers about one kind is not lost because it answers too slowly about another (maxSlowProbes).
type Answers struct {
	mu       sync.Mutex
	counters map[apiServer]*atomic.Uint64
}

// apiServer is how the API server of a member is reached.
type apiServer struct{ endpoint, proxy string }

// NewAnswers returns counters that are zero.
func NewAnswers() *Answers { return &Answers{counters: map[apiServer]*atomic.Uint64{}} }

// of returns the counter of a member's API server. Without Answers, each call returns a counter of its own.
func (a *Answers) of(c Cluster) *atomic.Uint64 {
	if a == nil {
		return &atomic.Uint64{}
	}
	at := apiServer{c.Endpoint, c.ProxyURL}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counters[at] == nil {
		a.counters[at] = &atomic.Uint64{}
	}
	return a.counters[at]
}
