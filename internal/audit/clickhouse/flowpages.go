package clickhouse

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/acp-io/acp/internal/audit"
)

// flowTime is in microseconds.
const flowTime = "toInt64(toUnixTimestamp(slot)) * 1000000 + micros"

// flowsQuery reads the newest raw flows of a slice of time, in microseconds: from is in it, to is not.
type flowsQuery struct {
	filter      audit.Filter
	from, to    int64
	skip, limit int
}

func (q flowsQuery) toSQL() statement {
	var e, w where
	e.edges(q.filter)
	// Only attempts that arrived with their batch are shown. A batch is written on the day of its newest flow or later.
	w.add(fmt.Sprintf("batch IN (SELECT toString(first_seen) FROM entries WHERE kind = %d AND written >= toDate({from_day:Int32}))", kindBatch),
		driver.Named("from_day", int32(q.from/1_000_000/secondsOfDay)))
	if len(e.conds) > 0 {
		w.add("edge IN (SELECT id FROM edges"+e.String()+")", e.args...)
	}
	second := q.from / 1_000_000
	w.add("(slot >= toDateTime({slot:Int64}, 'UTC') OR slot = toDateTime({old_slot:Int64}, 'UTC'))", driver.Named("slot", slotOf(second)), driver.Named("old_slot", floor(second, oldSlotWidth)))
	w.add("slot <= toDateTime({to_second:Int64}, 'UTC')", driver.Named("to_second", q.to/1_000_000))
	w.add(flowTime+" >= {from:Int64}", driver.Named("from", q.from))
	w.add(flowTime+" < {to:Int64}", driver.Named("to", q.to))
	w.bind("skip", uint32(q.skip))
	w.bind("limit", uint32(q.limit))
	width := int64(slotWidth / time.Second)
	slots := fmt.Sprintf("(slot >= toDateTime(intDiv(oldest, %d) * %d, 'UTC') OR slot = toStartOfHour(fromUnixTimestamp64Micro(oldest, 'UTC')))", width*1_000_000, width)
	// First the times alone, to know how old the page's oldest is: then the other columns are read of few rows only.
	return statement{"WITH (SELECT min(t) FROM (SELECT " + flowTime + " AS t FROM flows" + w.String() +
		" ORDER BY t DESC LIMIT {limit:UInt32} + {skip:UInt32})) AS oldest" +
		" SELECT hex(edge), " + flowTime + " AS t, node, source_address, destination_address, source_port, count, reason FROM flows" + w.String() + " AND " + slots + " AND t >= oldest" +
		" ORDER BY t DESC, edge, source_port, source_address, destination_address, node, count, reason LIMIT {limit:UInt32} OFFSET {skip:UInt32}", w.args}
}

// flowSpan are the slots of the oldest and of the newest raw flow, in seconds; zero: there is none.
type flowSpan struct{ oldest, newest int64 }

func (q queries) flowSpan(ctx context.Context) (flowSpan, error) {
	var s flowSpan
	text := "SELECT toInt64(toUnixTimestamp(min(slot))), toInt64(toUnixTimestamp(max(slot))) FROM flows"
	err := q.each(ctx, "flows", statement{text: text}, func(rows driverRows) error { return rows.Scan(&s.oldest, &s.newest) })
	return s, err
}

// wider is how many times as long each slice is as the one before. The first one is what there is of the newest slot, which has
// the page unless the filter is narrow.
const wider = 4

// backwards cuts the time of a query into slices, newest first, and hands over their bounds in microseconds until it is told to stop.
func backwards(from, to, newest int64, each func(from, to int64) (more bool, err error)) error {
	begin := min(slotOf((to-1)/1_000_000), newest) * 1_000_000
	for width := slotWidth.Microseconds(); from < to; width = min(width, math.MaxInt64/2/wider) * wider {
		begin = max(begin, from)
		more, err := each(begin, to)
		if err != nil || !more {
			return err
		}
		to = begin
		begin = slotOf(max(to-width, from)/1_000_000) * 1_000_000
	}
	return nil
}

// bounds are those of the filter and of what there is, in microseconds.
func (s flowSpan) bounds(f audit.Filter) (from, to int64) {
	from, to = s.oldest*1_000_000, (s.newest+int64(oldSlotWidth/time.Second))*1_000_000
	since, until := f.Window()
	if !since.IsZero() {
		from = max(from, micros(since))
	}
	if !until.IsZero() {
		to = min(to, micros(until))
	}
	return from, to
}

// Flows implements audit.Reader. A cursor's tie is how many flows of its very time were on the pages before.
func (q queries) Flows(ctx context.Context, fq audit.FlowQuery) (audit.FlowPage, error) {
	skip := 0
	after, err := cursor(fq.Cursor, func(tie string) bool {
		n, err := strconv.ParseUint(tie, 10, 31)
		skip = int(n)
		return err == nil
	})
	if err != nil {
		return audit.FlowPage{}, err
	}
	span, err := q.flowSpan(ctx)
	if err != nil || span.newest == 0 {
		return audit.FlowPage{}, err
	}
	from, to := span.bounds(fq.Filter)
	p := flowPage{limit: fq.Limited(), ofTime: skip}
	if after != nil {
		p.next.At = after.At
		to = min(to, after.At+1)
	}
	err = backwards(from, to, span.newest, func(from, to int64) (bool, error) {
		err := q.each(ctx, "flows", flowsQuery{fq.Filter, from, to, skip, p.limit + 1 - len(p.Items)}.toSQL(), p.add)
		skip = 0 // they are in the first slice
		return p.Next == "", err
	})
	if err != nil {
		return audit.FlowPage{}, err
	}
	names, err := q.names(ctx, p.ids)
	for i, id := range p.ids {
		p.Items[i].Edge = names[id]
	}
	return p.FlowPage, err
}

// flowPage is filled row by row, with the ids of its edges.
type flowPage struct {
	audit.FlowPage
	limit int
	ids   []string
	next  audit.Cursor
	// ofTime is how many flows of the time of the last one are on this page and on those before.
	ofTime int
}

func (p *flowPage) add(rows driverRows) error {
	var f audit.Flow
	var id string
	var at int64
	var from, to net.IP
	if err := rows.Scan(&id, &at, &f.Node, &from, &to, &f.SourcePort, &f.Count, &f.Reason); err != nil {
		return err
	}
	if len(p.Items) == p.limit {
		p.next.Tie = strconv.Itoa(p.ofTime)
		p.Next = p.next.String()
		return nil
	}
	if at != p.next.At {
		p.next.At, p.ofTime = at, 0
	}
	p.ofTime++
	f.Time, f.SourceAddress, f.DestinationAddress = fromMicros(at), fromIP(from), fromIP(to)
	p.Items, p.ids = append(p.Items, f), append(p.ids, id)
	return nil
}

// fromIP returns the zero address for the unspecified one, which stands for none.
func fromIP(ip net.IP) netip.Addr {
	a, ok := netip.AddrFromSlice(ip)
	if !ok || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a.Unmap()
}
