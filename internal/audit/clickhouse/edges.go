package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// edgeID names an edge by what it says. Labels come from workloads, so it takes a hash in which nobody finds two of one.
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

// maxKnown bounds the memory for edges that need not be written again.
const maxKnown = 1 << 20

// knownEdges are those that were written, with the newest day that they were written for.
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

// dated is an edge to be written for a day.
type dated struct {
	id   edgeID
	edge *audit.Edge
	day  dayNumber
}

// missing returns those that have to be written. Another collector may prune what is older than the retention, so nothing
// but the last days is relied upon.
func (k *knownEdges) missing(all map[edgeID]dated, reliable dayNumber) []dated {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []dated
	for id, d := range all {
		if day, ok := k.days[id]; !ok || day < d.day || day < reliable {
			out = append(out, d)
		}
	}
	return out
}

func (k *knownEdges) add(list []dated) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.days)+len(list) > maxKnown {
		clear(k.days)
	}
	for _, d := range list {
		k.days[d.id] = max(k.days[d.id], d.day)
	}
}

const edgeColumns = "resource, subject, cluster, source_cluster, source, destination, action, port, protocol, decision, verdict, policy, sid, other_subjects, other_resources"

// edgeFields are where a row's edgeColumns go.
func edgeFields(e *audit.Edge) []any {
	return []any{&e.Resource, &e.Subject, &e.Cluster, &e.SourceCluster, &e.Source, &e.Destination, &e.Action, &e.Port, (*string)(&e.Protocol),
		(*string)(&e.Decision), (*string)(&e.Verdict), &e.Statement.Policy, &e.Statement.SID, &e.OtherSubjects, &e.OtherResources}
}

// writeEdges adds what the batch needs. It is done before, and an edge that nothing counts for does no harm.
func (s *Store) writeEdges(ctx context.Context, all map[edgeID]dated) error {
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
		for c, v := range [...]string{e.Resource, e.Subject, e.Cluster, e.SourceCluster, e.Source, e.Destination, e.Action, string(e.Protocol), string(e.Decision),
			string(e.Verdict), e.Statement.Policy, e.Statement.SID, e.OtherSubjects, e.OtherResources} {
			columns[c] = append(columns[c], v)
		}
		ports = append(ports, e.Port)
		days = append(days, d.day.time())
	}
	const text = "INSERT INTO edges (id, resource, subject, cluster, source_cluster, source, destination, action, protocol, decision, verdict, policy, sid, other_subjects, other_resources, port, last)"
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
