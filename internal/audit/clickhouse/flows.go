package clickhouse

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/acp-io/acp/internal/audit"
)

const flowsInsert = "INSERT INTO flows (slot, edge, micros, node, source_address, destination_address, source_port, count, reason, batch)"

// Many raw flows go in several inserts, of which two are on their way at a time: one is made while the server sorts the
// other. Fewer rows would only make more parts to merge.
const (
	flowsOfInsert = 1 << 18
	insertsAtOnce = 2
)

// slotWidth is how flows are kept together. The wider a slot, the more flows of an edge lie beside each other, and the less a
// row takes; the newest page reads all of the newest slot.
const slotWidth = 10 * time.Minute

// oldSlotWidth is that of older programs, of which there may be rows.
const oldSlotWidth = time.Hour

// slotOf is the second that the slot of a time begins with. The first second of an hour is a slot of its own: so whoever looks for
// an older program's slot, which begins with an hour, meets few other rows.
func slotOf(second int64) int64 {
	slot := floor(second, slotWidth)
	if slot == floor(second, oldSlotWidth) && second > slot {
		slot++
	}
	return slot
}

func floor(second int64, width time.Duration) int64 { return second - second%int64(width/time.Second) }

// flowColumns are the columns of one insert.
type flowColumns struct {
	slots, counts  []int64
	micros         []uint32
	edges          [][]byte
	nodes, reasons []string
	sources, dests [][16]byte
	ports          []uint16
	batches        []string
}

func (f *flowColumns) columns() []any {
	return []any{f.slots, f.edges, f.micros, f.nodes, f.sources, f.dests, f.ports, f.counts, f.reasons, f.batches}
}

// writeFlows returns the edges that it needs. Nobody sees the flows before the batch's own row has the number of the attempt.
func (s *Store) writeFlows(ctx context.Context, flows []audit.Flow, number uint64) ([]map[edgeID]dated, error) {
	needed := make([]map[edgeID]dated, (len(flows)+flowsOfInsert-1)/flowsOfInsert)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(insertsAtOnce)
	for i := range needed {
		needed[i] = map[edgeID]dated{}
		g.Go(func() error {
			part := flows[i*flowsOfInsert : min((i+1)*flowsOfInsert, len(flows))]
			return s.insert(ctx, flowsInsert, "", flowsOf(part, needed[i], strconv.FormatUint(number, 10)).columns()...)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("flows: %w", err)
	}
	return needed, nil
}

func flowsOf(flows []audit.Flow, needed map[edgeID]dated, batch string) *flowColumns {
	n := len(flows)
	out := &flowColumns{
		slots: make([]int64, n), micros: make([]uint32, n), counts: make([]int64, n), edges: make([][]byte, n), nodes: make([]string, n),
		reasons: make([]string, n), sources: make([][16]byte, n), dests: make([][16]byte, n), ports: make([]uint16, n), batches: make([]string, n),
	}
	known := map[audit.Edge]*dated{}
	var buf []byte
	for i := range flows {
		f := &flows[i]
		d := known[f.Edge]
		if d == nil {
			d = &dated{edge: &f.Edge, day: dayOf(f.Time)}
			d.id, buf = idOf(&f.Edge, buf)
			known[f.Edge] = d
		}
		d.day = max(d.day, dayOf(f.Time))
		at := micros(f.Time)
		slot := slotOf(at / 1_000_000)
		out.slots[i], out.micros[i] = slot, uint32(at-slot*1_000_000)
		out.edges[i] = d.id[:]
		out.nodes[i], out.reasons[i] = f.Node, f.Reason
		out.sources[i], out.dests[i] = as16(f.SourceAddress), as16(f.DestinationAddress)
		out.ports[i], out.counts[i], out.batches[i] = f.SourcePort, f.Count, batch
	}
	for _, d := range known {
		needed[d.id] = *d
	}
	return out
}

// as16 is the unspecified address for none.
func as16(a netip.Addr) [16]byte {
	if !a.IsValid() {
		return [16]byte{}
	}
	return a.As16()
}
