package rollup

import (
	"slices"

	"github.com/acp-io/acp/internal/audit"
)

// maxPorts is how many ports that are in no action are counted apart, for one source and one destination in one minute:
// whoever scans ports would otherwise fill the store with edges.
const maxPorts = 32

// OtherPorts is in the Destination of the edge that all further ports are counted in, with port 0.
const OtherPorts = "other ports"

// maxPairs bounds the pairs of a minute whose ports are known; it is divided among the sources.
const maxPairs = 50_000

// keptMinutes is for how many minutes the ports are known: events come nearly in order.
const keptMinutes = 3

// ports knows which ports were seen, across batches. Without it a minute that is in several batches would have maxPorts in
// each. Of more than maxPairs in a minute nothing is known, and all their ports are folded.
type ports struct {
	sources int
	minutes map[int64]*minutePorts
}

// minutePorts are the ports that were seen in a minute, by pair.
type minutePorts struct {
	seen map[audit.Edge][]uint16
	room *room
}

func newPorts(sources int) *ports { return &ports{sources: sources, minutes: map[int64]*minutePorts{}} }

// fold returns the edge to count in.
func (p *ports) fold(minute int64, e audit.Edge) audit.Edge {
	if e.Action != "" || e.Port == 0 {
		return e
	}
	m := p.minutes[minute]
	if m == nil {
		m = &minutePorts{seen: map[audit.Edge][]uint16{}, room: newRoom(maxPairs, p.sources)}
		p.minutes[minute] = m
		for old := range p.minutes {
			if old <= minute-keptMinutes {
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
	case len(known) < maxPorts && (tracked || m.room.take(e.Cluster)):
		m.seen[folded] = append(known, e.Port)
		return e
	}
	return folded
}
