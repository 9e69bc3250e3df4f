package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// edgeID is the truncated SHA-256 of all fields of an edge. Labels are chosen by workloads, so collisions must be infeasible to
// find.
type edgeID [16]byte

func idOf(e *audit.Edge, buf []byte) (edgeID, []byte) {
	buf = buf[:0]
	for _, s := range [...]string{e.Resource, e.Subject, e.Cluster, e.SourceCluster, e.Source, e.Destination, e.Action, string(e.Protocol),
		string(e.Decision), string(e.Verdict), e.Statement.Policy, e.Statement.SID, e.OtherSubjects, e.OtherResources} {
		buf = append(binary.AppendUvarint(buf, uint64(len(s))), s...)
	}
	buf = binary.BigEndian.AppendUint16(buf, e.Port)
	sum := sha256.Sum256(buf)
	return edgeID(sum[:16]), buf
}

// maxKnown bounds the number of edges in memory that need not be written again.
const maxKnown = 1 << 20

// knownEdges holds the edges that were written, with the newest day for which they were written.
type knownEdges struct {
	mu   sync.Mutex
	days map[edgeID]dayNumber
}

func newKnownEdges() *knownEdges { return &knownEdges{days: map[edgeID]dayNumber{}} }

func (k *knownEdges) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.days)
}

// datedEdge is an edge to be written for a day.
type datedEdge struct {
	id   edgeID
	edge *audit.Edge
	day  dayNumber
}

// missing returns the edges that have to be written. Another collector may prune what is older than the retention, so only
// entries of the last days are relied upon.
func (k *knownEdges) missing(all map[edgeID]datedEdge, reliable dayNumber) []datedEdge {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []datedEdge
	for id, d := range all {
		if day, ok := k.days[id]; !ok || day < d.day || day < reliable {
			out = append(out, d)
		}
	}
	return out
}

func (k *knownEdges) add(list []datedEdge) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.days)+len(list) > maxKnown {
		clear(k.days)
	}
	for _, d := range list {
		k.days[d.id] = max(k.days[d.id], d.day)
	}
}

const edgeColumns = "resource, subject, cluster, source_cluster, source, destination, action, port, protocol, decision, verdict, policy, sid, " +
	"other_subjects, other_resources"

// edgeFields returns the scan destinations for a row's edgeColumns.
func edgeFields(e *audit.Edge) []any {
	return []any{&e.Resource, &e.Subject, &e.Cluster, &e.SourceCluster, &e.Source, &e.Destination, &e.Action, &e.Port, (*string)(&e.Protocol),
		(*string)(&e.Decision), (*string)(&e.Verdict), &e.Statement.Policy, &e.Statement.SID, &e.OtherSubjects, &e.OtherResources}
}

// writeEdges writes the edges that a batch needs. It is called before the batch is stored; an edge without counts has no effect.
func (s *Store) writeEdges(ctx context.Context, all map[edgeID]datedEdge) error {
	today := dayOf(s.now())
	list := s.edges.missing(all, today-2)
	if len(list) == 0 {
		return nil
	}
	var columns [14][]string
	ids, ports, days := make([][]byte, 0, len(list)), make([]uint16, 0, len(list)), make([]time.Time, 0, len(list))
	for i := range list {
		d := &list[i]
		e := d.edge
		ids = append(ids, d.id[:])
		for c, v := range [...]string{
			e.Resource, e.Subject, e.Cluster, e.SourceCluster, e.Source, e.Destination, e.Action, string(e.Protocol), string(e.Decision),
			string(e.Verdict), e.Statement.Policy, e.Statement.SID, e.OtherSubjects, e.OtherResources,
		} {
			columns[c] = append(columns[c], v)
		}
		ports = append(ports, e.Port)
		days = append(days, d.day.time())
	}
	const text = "INSERT INTO edges (id, resource, subject, cluster, source_cluster, source, destination, action, protocol, decision, verdict, " +
		"policy, sid, other_subjects, other_resources, port, last)"
	values := []any{ids}
	for _, c := range columns {
		values = append(values, c)
	}
	if err := s.insert(ctx, text, "", append(values, ports, days)...); err != nil {
		return err
	}
	s.edges.add(list)
	return nil
}
