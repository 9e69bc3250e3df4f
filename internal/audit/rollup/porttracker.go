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

// maxPairsPerMinute bounds the pairs of a minute whose ports are tracked. It is divided among the sources.
const maxPairsPerMinute = 50_000

// trackedMinutes is the number of minutes for which ports are tracked. It can be small because events arrive nearly in order.
const trackedMinutes = 3

// portTracker tracks across batches which ports were counted individually. Without it, a minute that is spread over several
// batches could have maxPorts in each. Pairs beyond maxPairsPerMinute are not tracked, and all their ports are folded.
type portTracker struct {
	sources int
	minutes map[int64]*minutePorts
}

// minutePorts holds the ports that were counted individually in a minute, by pair.
type minutePorts struct {
	seen  map[audit.Edge][]uint16
	quota *quota
}

func newPortTracker(sources int) *portTracker {
	return &portTracker{sources: sources, minutes: map[int64]*minutePorts{}}
}

// fold returns the edge in which the connection is counted: the edge itself, or the one of all further ports.
func (p *portTracker) fold(minute int64, e audit.Edge) audit.Edge {
	if e.Action != "" || e.Port == 0 {
		return e
	}
	m := p.minutes[minute]
	if m == nil {
		m = &minutePorts{seen: map[audit.Edge][]uint16{}, quota: newQuota(maxPairsPerMinute, p.sources)}
		p.minutes[minute] = m
		for old := range p.minutes {
			if old <= minute-trackedMinutes {
				delete(p.minutes, old)
			}
		}
	}
	folded := e
	folded.Port = 0
	if folded.Destination != "" {
		folded.Destination += ", "
	}
	folded.Destination += OtherPorts
	known, tracked := m.seen[folded]
	switch {
	case slices.Contains(known, e.Port):
		return e
	case len(known) < maxPorts && (tracked || m.quota.reserve(e.Cluster)):
		m.seen[folded] = append(known, e.Port)
		return e
	}
	return folded
}
