package traffic

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/acp-io/acp/playground/dataplane/internal/mesh"
)

// Attempt is one connection that is made now. Source is nil for an address outside the fleet.
type Attempt struct {
	Line        Line
	Source      *mesh.Endpoint
	Destination mesh.Endpoint
	SourcePort  uint16
}

// Generator makes the connections of its lines to the pods of one cluster.
type Generator struct {
	Cluster string
	Mesh    *mesh.Mesh
	Lines   []Line
	// Rate multiplies the rate of all lines; 0 disables them.
	Rate float64
	// Try is called from several goroutines.
	Try func(Attempt)
}

// Run makes connections until the context ends.
func (g *Generator) Run(ctx context.Context) {
	if g.Rate <= 0 {
		return
	}
	var wg sync.WaitGroup
	for _, line := range g.Lines {
		if line.Schedule != nil {
			wg.Go(func() { g.runScheduled(ctx, line) })
		} else {
			wg.Go(func() { g.run(ctx, line) })
		}
	}
	wg.Wait()
}

// idle is how long a line without pods waits before it checks again.
const idle = 500 * time.Millisecond

func (g *Generator) run(ctx context.Context, line Line) {
	timer := time.NewTimer(pause(line, g.Rate, 1, rand.Float64())) // not all lines at once
	defer timer.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		n, ok := g.try(line, turn)
		if !ok {
			timer.Reset(idle)
			continue
		}
		timer.Reset(pause(line, g.Rate, n, rand.Float64()))
	}
}

// scheduledGap is the time between two connections of one scheduled time.
const scheduledGap = 100 * time.Millisecond

// runScheduled makes the connections of each scheduled time. The rate does not change how many there are.
func (g *Generator) runScheduled(ctx context.Context, line Line) {
	for {
		now := time.Now().UTC()
		if !sleep(ctx, line.Schedule.Next(now).Sub(now)) {
			return
		}
		for turn := range line.Connections {
			if _, ok := g.try(line, turn); !ok {
				break // its pods are not there at this time
			}
			if !sleep(ctx, scheduledGap) {
				return
			}
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// try makes one connection and returns the number of sources that take turns. It returns false when there is no source or no
// destination pod.
func (g *Generator) try(line Line, turn int) (int, bool) {
	sources, destinations := g.pods(line)
	n := max(len(sources), 1)
	if len(destinations) == 0 || (line.SourceAddress == "" && len(sources) == 0) {
		return 0, false
	}
	a := Attempt{Line: line, Destination: pick(destinations, turn, n), SourcePort: ephemeral(rand.Uint32())}
	if line.SourceAddress == "" {
		a.Source = &sources[turn%n]
	}
	if line.LongLived {
		a.SourcePort = ephemeral(a.hash())
	}
	g.Try(a)
	return n, true
}

// hash returns a hash that is the same for every packet of a long-lived connection.
func (a Attempt) hash() uint32 {
	h := fnv.New32a()
	source := a.Line.SourceAddress
	if a.Source != nil {
		source = a.Source.Cluster + "/" + a.Source.Namespace + "/" + a.Source.Name
	}
	h.Write([]byte(a.Line.Name + " " + source + " " + a.Destination.Namespace + "/" + a.Destination.Name))
	return h.Sum32()
}

func (g *Generator) pods(line Line) (sources, destinations []mesh.Endpoint) {
	if line.SourceAddress == "" {
		sources = g.Mesh.Select(func(ep mesh.Endpoint) bool {
			return (len(line.SourceClusters) == 0 || slices.Contains(line.SourceClusters, ep.Cluster)) &&
				line.SourceSelector.Matches(k8slabels.Set(ep.Labels))
		})
	}
	destinations = g.Mesh.Select(func(ep mesh.Endpoint) bool {
		return ep.Cluster == g.Cluster && line.Destination.Matches(k8slabels.Set(ep.Labels))
	})
	return sources, destinations
}

// pick returns the destination for a turn, so that each source uses the destinations one after the other.
func pick(destinations []mesh.Endpoint, turn, sources int) mesh.Endpoint {
	return destinations[(turn/sources+turn%sources)%len(destinations)]
}

// pause returns the time until the next of n sources makes a connection. random is from 0 to 1.
func pause(line Line, rate float64, n int, random float64) time.Duration {
	base := float64(line.Interval) / rate / float64(n)
	return max(time.Duration(base*(1+line.Jitter*(2*random-1))), 100*time.Microsecond)
}

// ephemeral returns a client port for a random number.
func ephemeral(random uint32) uint16 {
	const first, count = 32768, 28232
	return uint16(first + random%count)
}
