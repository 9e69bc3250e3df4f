package clickhouse

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/acp-io/acp/internal/audit"
)

const flowsInsert = "INSERT INTO flows (slot, edge, micros, node, source_address, destination_address, source_port, count, reason, batch)"

// flowsPerInsert is the number of raw flows of one insert, and maxConcurrentInserts the number of inserts under way: one is
// prepared while the server sorts another. Smaller inserts would only create more parts to merge. daysPerInsert is the number of
// days of one insert, each of which is a partition: the server rejects an insert into more than 100 of them, see
// max_partitions_per_insert_block.
const (
	flowsPerInsert       = 1 << 18
	maxConcurrentInserts = 2
	daysPerInsert        = 32
)

// slotWidth is the unit of time by which flows are grouped in the table. With wider slots, more flows of an edge are adjacent and
// a row takes less space; but the newest page reads the whole newest slot.
const slotWidth = 10 * time.Minute

// oldSlotWidth is the slot width of older programs, whose rows may still exist.
const oldSlotWidth = time.Hour

// slotOf returns the Unix second at which the slot of a time begins. The first second of an hour is a slot of its own, so that a
// query for the slot of an older program, which begins with an hour, reads few other rows.
func slotOf(second int64) int64 {
	slot := floor(second, slotWidth)
	if slot == floor(second, oldSlotWidth) && second > slot {
		slot++
	}
	return slot
}

func floor(second int64, width time.Duration) int64 { return second - second%int64(width/time.Second) }

// flowColumns holds the columns of one insert.
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

// writeFlows inserts raw flows with the attempt's number and returns the edges that they need. The flows are not visible before
// the batch's own row with the number is stored.
func (s *Store) writeFlows(ctx context.Context, flows []audit.Flow, number uint64) ([]map[edgeID]datedEdge, error) {
	parts := splitFlows(flows)
	needed := make([]map[edgeID]datedEdge, len(parts))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxConcurrentInserts)
	for i, part := range parts {
		needed[i] = map[edgeID]datedEdge{}
		g.Go(func() error {
			return s.insert(ctx, flowsInsert, "", flowsOf(part, needed[i], strconv.FormatUint(number, 10)).columns()...)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("flows: %w", err)
	}
	return needed, nil
}

// splitFlows returns the flows of each insert: at most flowsPerInsert flows of at most daysPerInsert days. Flows of many days are
// sorted first, in a copy, so that each day is in few inserts.
func splitFlows(flows []audit.Flow) [][]audit.Flow {
	days := map[dayNumber]bool{}
	last := dayNumber(-1)
	for i := range flows {
		if day := dayOf(flows[i].Time); day != last {
			days[day], last = true, day
		}
	}
	if len(days) <= daysPerInsert {
		return slices.Collect(slices.Chunk(flows, flowsPerInsert))
	}
	flows = slices.Clone(flows)
	slices.SortStableFunc(flows, func(x, y audit.Flow) int { return x.Time.Compare(y.Time) })
	var out [][]audit.Flow
	start, number := 0, 0
	last = -1
	for i := range flows {
		if day := dayOf(flows[i].Time); day != last {
			number, last = number+1, day
		}
		if number > daysPerInsert || i-start == flowsPerInsert {
			out = append(out, flows[start:i])
			start, number = i, 1
		}
	}
	return append(out, flows[start:])
}

func flowsOf(flows []audit.Flow, needed map[edgeID]datedEdge, batch string) *flowColumns {
	n := len(flows)
	out := &flowColumns{
		slots: make([]int64, n), micros: make([]uint32, n), counts: make([]int64, n), edges: make([][]byte, n), nodes: make([]string, n),
		reasons: make([]string, n), sources: make([][16]byte, n), dests: make([][16]byte, n), ports: make([]uint16, n), batches: make([]string, n),
	}
	known := map[audit.Edge]*datedEdge{}
	var buf []byte
	for i := range flows {
		f := &flows[i]
		d := known[f.Edge]
		if d == nil {
			d = &datedEdge{edge: &f.Edge, day: dayOf(f.Time)}
			d.id, buf = idOf(&f.Edge, buf)
			known[f.Edge] = d
		}
		d.day = max(d.day, dayOf(f.Time))
		at := dateTime(f.Time.Unix())*1_000_000 + int64(f.Time.Nanosecond()/1000)
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

// as16 returns the address; the unspecified address for none.
func as16(a netip.Addr) [16]byte {
	if !a.IsValid() {
		return [16]byte{}
	}
	return a.As16()
}
