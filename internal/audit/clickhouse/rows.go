package clickhouse

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

const entriesInsert = "INSERT INTO entries (written, kind, source, edge, bucket, key, count, first_seen, last_seen, payload)"

// entries holds the columns of one block.
type entries struct {
	// newest is the newest day of any row, which is the partition of the whole block.
	newest dayNumber

	kinds               []uint8
	sources, keys       []string
	edges               [][]byte
	buckets             []int64
	counts              []int64
	firstSeen, lastSeen []int64
	payloads            []string
}

// entry is one row. Columns that a kind does not use are zero.
type entry struct {
	kind        uint8
	source, key string
	edge        []byte
	bucket      int64
	count       int64
	first, last int64
	payload     string
}

func (e *entries) add(x entry) {
	e.kinds, e.sources, e.keys = append(e.kinds, x.kind), append(e.sources, x.source), append(e.keys, x.key)
	e.edges = append(e.edges, x.edge)
	e.buckets, e.counts = append(e.buckets, x.bucket), append(e.counts, x.count)
	e.firstSeen, e.lastSeen, e.payloads = append(e.firstSeen, x.first), append(e.lastSeen, x.last), append(e.payloads, x.payload)
}

func (e *entries) at(t time.Time) { e.newest = max(e.newest, dayOf(t)) }

func (e *entries) columns() []any {
	written := make([]time.Time, len(e.kinds))
	for i := range written {
		written[i] = e.newest.time()
	}
	return []any{written, e.kinds, e.sources, e.edges, e.buckets, e.keys, e.counts, e.firstSeen, e.lastSeen, e.payloads}
}

func newEntries(n int) *entries {
	return &entries{
		kinds: make([]uint8, 0, n), sources: make([]string, 0, n), keys: make([]string, 0, n), edges: make([][]byte, 0, n), buckets: make([]int64, 0, n),
		counts: make([]int64, 0, n), firstSeen: make([]int64, 0, n), lastSeen: make([]int64, 0, n), payloads: make([]string, 0, n),
	}
}

// entriesOf returns all rows of a batch except its own, and the watched spans that result from it. It adds the edges that are
// needed to the map.
func (s *Store) entriesOf(b *audit.Batch, needed map[edgeID]datedEdge) (*entries, []audit.WatchedSpan) {
	out := newEntries(len(b.Rollups) + len(b.Losses) + len(b.Positions) + len(b.Watched) + len(b.ForgetSeen) + 2)
	var buf []byte
	for i := range b.Rollups {
		r := &b.Rollups[i]
		var id edgeID
		id, buf = idOf(&r.Edge, buf)
		out.at(r.Bucket)
		need(needed, datedEdge{id, &r.Edge, dayOf(r.Bucket)})
		out.add(
			entry{kind: kindRollup, source: summed, edge: id[:], bucket: dateTime(r.Bucket.Unix()), count: r.Count,
				first: micros(r.FirstSeen), last: micros(r.LastSeen)},
		)
	}
	out.minutes(b.Rollups)
	for _, l := range b.Losses {
		out.at(l.To)
		out.add(entry{kind: kindLoss, source: l.Cluster, key: l.Node + "\x00" + string(l.Reason), bucket: dateTime(l.To.Truncate(audit.BucketWidth).Unix()),
			count: l.Count, first: micros(l.From), last: micros(l.To)})
	}
	for _, p := range b.Positions {
		out.at(p.Time)
		out.add(entry{kind: kindPosition, source: p.Source, last: micros(p.Time)})
	}
	for source, at := range b.ForgetSeen {
		out.add(entry{kind: kindForget, source: source, last: micros(at)})
	}
	spans := s.grow(b.Watched)
	for _, w := range spans {
		out.at(w.To)
		out.add(entry{kind: kindWatch, source: w.Source, key: strconv.FormatInt(micros(w.From), 10), first: micros(w.From), last: micros(w.To)})
	}
	return out, spans
}

// minutes adds sums by minute, from which a series over all edges is read.
func (e *entries) minutes(rollups []audit.Rollup) {
	type minute struct {
		cluster  string
		decision policy.Verdict
		verdict  audit.Verdict
		bucket   int64
	}
	sums := map[minute]int64{}
	for i := range rollups {
		if r := &rollups[i]; r.Count != 0 {
			sums[minute{r.Cluster, r.Decision, r.Verdict, dateTime(r.Bucket.Unix())}] += r.Count
		}
	}
	for m, n := range sums {
		e.add(entry{kind: kindMinute, source: m.cluster, key: string(m.decision) + "\x00" + string(m.verdict), bucket: m.bucket, count: n})
	}
}

func need(needed map[edgeID]datedEdge, d datedEdge) {
	if have, ok := needed[d.id]; !ok || have.day < d.day {
		needed[d.id] = d
	}
}

// batch adds the seen events and the batch's own row, both with the number of the attempt.
func (e *entries) batch(b *audit.Batch, number uint64) {
	seen := map[string][]byte{}
	newest := map[string]int64{}
	for _, x := range b.Seen {
		e.at(x.Time)
		p := binary.BigEndian.AppendUint64(seen[x.Source], uint64(micros(x.Time)))
		seen[x.Source] = binary.BigEndian.AppendUint64(p, x.ID)
		newest[x.Source] = max(newest[x.Source], micros(x.Time))
	}
	for source, p := range seen {
		e.add(entry{kind: kindSeen, source: source, key: strconv.FormatUint(number, 10), last: newest[source], payload: string(p)})
	}
	e.add(entry{kind: kindBatch, key: b.ID, first: int64(number)})
}

const seenWidth = 16

// unpackSeen appends the events of a payload that are not older than the given time in microseconds.
func unpackSeen(list []audit.SeenEvent, source, payload string, notBefore int64) []audit.SeenEvent {
	for b := []byte(payload); len(b) >= seenWidth; b = b[seenWidth:] {
		if at := int64(binary.BigEndian.Uint64(b)); at >= notBefore {
			list = append(list, audit.SeenEvent{Source: source, Time: fromMicros(at), ID: binary.BigEndian.Uint64(b[8:])})
		}
	}
	return list
}

// grow merges each span with the previous one of its source, so that a source that is followed all day has one row. It returns
// all spans to be written.
func (s *Store) grow(watched []audit.WatchedSpan) []audit.WatchedSpan {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []audit.WatchedSpan
	last := map[string]int{} // index in out of the newest span of each source
	for _, w := range watched {
		if w.To.Before(w.From) {
			continue
		}
		before, known := s.spans[w.Source]
		i, here := last[w.Source]
		if here {
			before, known = out[i], true
		}
		if known && !w.From.Before(before.From) && !w.From.After(before.To) {
			w.From = before.From
			if w.To.Before(before.To) {
				w.To = before.To
			}
			if here {
				out[i] = w
				continue
			}
		}
		last[w.Source] = len(out)
		out = append(out, w)
	}
	return out
}
