package rollup

import (
	"slices"

	"github.com/acp-io/acp/internal/audit"
)

// maxPorts is the number of ports without an action that are counted individually for one source and one destination in one
// minute. Without the bound, a port scan would fill the store with edges.
const maxPorts = 32

// OtherPorts is appended to the Destination of the edge in which all further ports are counted, with port 0.
const OtherPorts = "other ports"

// maxPairsPerMinute bounds the pairs of a minute whose ports are tracked. It is divided among the clusters.
const maxPairsPerMinute = 50_000

// trackedMinutes is the number of minutes for which the ports of a cluster are tracked. It can be small because events arrive nearly
// in order. idleMinutes is the number of minutes after which a cluster without newer events is no longer tracked.
const (
	trackedMinutes = 3
	idleMinutes    = 60
)

// portTracker tracks across batches which ports were counted individually. Without it, a minute that is spread over several
// batches could have maxPorts in each. Pairs beyond maxPairsPerMinute are not tracked, and all their ports are folded.
//
// Each cluster has minutes of its own: a source chooses the times of its events, and must neither use the memory for ever more
// minutes nor remove those of other clusters.
type portTracker struct {
	sources int
	// newest is the newest minute of any cluster.
	newest  int64
	minutes map[int64]*minutePorts
	// tracked contains the minutes of each cluster, at most trackedMinutes.
	tracked map[string][]int64
}

// minutePorts holds the ports that were counted individually in a minute, by cluster and pair.
type minutePorts struct {
	seen  map[string]map[audit.Edge][]uint16
	quota *quota
}

func newPortTracker(sources int) *portTracker {
	return &portTracker{sources: sources, minutes: map[int64]*minutePorts{}, tracked: map[string][]int64{}}
}

// fold returns the edge in which the connection is counted: the edge itself, or the one of all further ports.
func (p *portTracker) fold(minute int64, e audit.Edge) audit.Edge {
	if e.Action != "" || e.Port == 0 {
		return e
	}
	m := p.minutes[minute]
	if m == nil || m.seen[e.Cluster] == nil {
		m = p.track(minute, e.Cluster)
	}
	seen := m.seen[e.Cluster]
	folded := e
	folded.Port = 0
	if folded.Destination != "" {
		folded.Destination += ", "
	}
	folded.Destination += OtherPorts
	known, tracked := seen[folded]
	switch {
	case slices.Contains(known, e.Port):
		return e
	case len(known) < maxPorts && (tracked || m.quota.reserve(e.Cluster)):
		seen[folded] = append(known, e.Port)
		return e
	}
	return folded
}

// track begins to track a minute of a cluster, and ends to track the one that is farthest from it if there are too many.
func (p *portTracker) track(minute int64, cluster string) *minutePorts {
	m := p.minutes[minute]
	if m == nil {
		m = &minutePorts{seen: map[string]map[audit.Edge][]uint16{}, quota: newQuota(maxPairsPerMinute, p.sources)}
		p.minutes[minute] = m
	}
	m.seen[cluster] = map[audit.Edge][]uint16{}
	list := append(p.tracked[cluster], minute)
	if len(list) > trackedMinutes {
		slices.Sort(list)
		farthest := 0
		if last := len(list) - 1; list[last]-minute > minute-list[0] {
			farthest = last
		}
		p.untrack(list[farthest], cluster)
		list = slices.Delete(list, farthest, farthest+1)
	}
	p.tracked[cluster] = list
	if minute > p.newest {
		p.newest = minute
		p.untrackIdle()
	}
	return m
}

// untrackIdle ends to track the clusters whose minutes are all older than idleMinutes.
func (p *portTracker) untrackIdle() {
	for cluster, list := range p.tracked {
		if slices.Max(list) > p.newest-idleMinutes {
			continue
		}
		for _, minute := range list {
			p.untrack(minute, cluster)
		}
		delete(p.tracked, cluster)
	}
}

// untrack removes what is known of a minute of a cluster.
func (p *portTracker) untrack(minute int64, cluster string) {
	m := p.minutes[minute]
	delete(m.seen, cluster)
	if len(m.seen) == 0 {
		delete(p.minutes, minute)
	}
}
