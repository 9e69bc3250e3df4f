package clickhouse

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/sqlquery"
)

// flowTime is an SQL expression for the time of a flow in microseconds.
const flowTime = "toInt64(toUnixTimestamp(slot)) * 1000000 + micros"

// flowsQuery selects the newest raw flows of the time range [from, to), in microseconds.
type flowsQuery struct {
	filter      audit.Filter
	from, to    int64
	skip, limit int
}

func (q flowsQuery) toSQL() sqlquery.Statement {
	var of, c sqlquery.Conditions
	second, width := q.from/1_000_000, int64(slotWidth/time.Second)
	of.Add(
		"(slot >= toDateTime({slot:Int64}, 'UTC') OR slot = toDateTime({old_slot:Int64}, 'UTC'))",
		driver.Named("slot", slotOf(second)),
		driver.Named("old_slot", floor(second, oldSlotWidth)),
	)
	of.Add("slot <= toDateTime({to_second:Int64}, 'UTC')", driver.Named("to_second", q.to/1_000_000))
	of.Add(flowTime+" >= {from:Int64}", driver.Named("from", q.from))
	of.Add(flowTime+" < {to:Int64}", driver.Named("to", q.to))
	// Only flows whose attempt was stored with its batch are returned. The day of a batch is the day of its newest flow.
	c.Add(fmt.Sprintf("batch IN (SELECT toString(first_seen) FROM entries WHERE kind = %d AND written >= toDate({day:Int32}))", kindBatch),
		driver.Named("day", int32(second/secondsOfDay)))
	if e := edgeConditions(q.filter); !e.IsEmpty() {
		c.Add("edge IN (SELECT id FROM edges"+e.Where()+")", e.Args()...)
	}
	// If many edges match, the time alone determines the rows of which the other columns are read. Few edges are found by the
	// order of the table, which the server's optimizer uses.
	before, then := " PREWHERE "+of.And(), c.Where()
	if !coarse(q.filter) {
		before, then = " WHERE "+of.And(), " AND "+c.And()
	}
	args := slices.Concat(of.Args(), c.Args(), []any{driver.Named("skip", uint32(q.skip)), driver.Named("limit", uint32(q.limit))})
	newer := fmt.Sprintf(
		" AND (slot >= toDateTime(intDiv(oldest, %d) * %d, 'UTC') OR slot = toStartOfHour(fromUnixTimestamp64Micro(oldest, 'UTC'))) AND "+flowTime+" >= oldest",
		width*1_000_000,
		width,
	)
	// The query first reads only the times, to determine the oldest of the page; the other columns are then read for few rows.
	return sqlquery.Statement{
		Text: "WITH (SELECT min(t) FROM (SELECT " + flowTime + " AS t FROM flows" + before + then +
			" ORDER BY t DESC LIMIT {limit:UInt32} + {skip:UInt32})) AS oldest" +
			" SELECT hex(edge), " + flowTime + " AS t, node, source_address, destination_address, source_port, count, reason" +
			" FROM flows" + before + newer + then +
			" ORDER BY t DESC, edge, source_port, source_address, destination_address, node, count, reason LIMIT {limit:UInt32} OFFSET {skip:UInt32}",
		Args: args,
	}
}

// flowSpan holds the slots of the oldest and of the newest raw flow, in Unix seconds; zero if there is none.
type flowSpan struct{ oldest, newest int64 }

func (q queries) flowSpan(ctx context.Context) (flowSpan, error) {
	var s flowSpan
	text := "SELECT toInt64(toUnixTimestamp(min(slot))), toInt64(toUnixTimestamp(max(slot))) FROM flows"
	err := q.each(ctx, "flows", sqlquery.Statement{Text: text}, func(rows driverRows) error { return rows.Scan(&s.oldest, &s.newest) })
	return s, err
}

// newestFlow returns the time in microseconds of the newest flow in a slot, whether its batch was stored or not.
func (q queries) newestFlow(ctx context.Context, slot int64) (int64, error) {
	var at uint32
	err := q.each(
		ctx,
		"flows",
		sqlquery.Statement{Text: "SELECT max(micros) FROM flows WHERE slot = toDateTime({slot:Int64}, 'UTC')", Args: []any{driver.Named("slot", slot)}},
		func(rows driverRows) error { return rows.Scan(&at) },
	)
	return slot*1_000_000 + int64(at), err
}

// recentWidth is the width of the first time range that is read if many edges match: it almost always fills a page, otherwise the
// newest slot does. If few edges match there are few flows, and reading an hour takes little longer than a slot. Each further
// range is growthFactor times wider.
const (
	recentWidth  = 10 * time.Second
	growthFactor = 4
)

// backwards divides [from, to), in microseconds, into ranges and calls each for them, newest first, until it returns false. The
// first ranges begin at the given times; the others have the width, which grows.
func backwards(from, to int64, begins []int64, width time.Duration, each func(from, to int64) (more bool, err error)) error {
	for i, reach := 0, width.Microseconds(); from < to; i++ {
		var begin int64
		if i < len(begins) {
			begin = begins[i]
		} else {
			begin = slotOf(max(to-reach, from)/1_000_000) * 1_000_000
			reach = min(reach, math.MaxInt64/growthFactor/2) * growthFactor
		}
		if begin = max(begin, from); begin >= to {
			continue
		}
		more, err := each(begin, to)
		if err != nil || !more {
			return err
		}
		to = begin
	}
	return nil
}

// bounds returns the intersection of the filter's window and the span, in microseconds.
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

// Flows implements audit.Reader. The tie of a cursor is the number of flows with exactly its time on the previous pages.
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
	p := flowPage{limit: fq.EffectiveLimit(), ofTime: skip}
	if after != nil {
		p.next.At = after.At
		to = min(to, after.At+1)
	}
	last := min(to, (span.newest+1)*1_000_000) - 1
	begins, width := []int64{floor(last/1_000_000, oldSlotWidth) * 1_000_000}, oldSlotWidth
	if coarse(fq.Filter) {
		newest := to
		if after == nil && to > span.newest*1_000_000 {
			if newest, err = q.newestFlow(ctx, span.newest); err != nil {
				return audit.FlowPage{}, err
			}
		}
		begins, width = []int64{min(to, newest) - recentWidth.Microseconds(), slotOf(last/1_000_000) * 1_000_000}, slotWidth
	}
	err = backwards(from, to, begins, width, func(from, to int64) (bool, error) {
		err := q.each(ctx, "flows", flowsQuery{fq.Filter, from, to, skip, p.limit + 1 - len(p.Items)}.toSQL(), p.add)
		skip = 0 // the skipped flows are all in the first range
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

// flowPage is a page that is filled row by row, with the IDs of its edges.
type flowPage struct {
	audit.FlowPage
	limit int
	ids   []string
	next  audit.Cursor
	// ofTime is the number of flows with the time of the last one, on this page and the previous ones.
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

// fromIP converts an address. The unspecified address stands for none and yields the zero value.
func fromIP(ip net.IP) netip.Addr {
	a, ok := netip.AddrFromSlice(ip)
	if !ok || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a.Unmap()
}
