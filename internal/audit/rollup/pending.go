package rollup

import (
	"cmp"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

type lossKey struct {
	cluster, node string
	reason        audit.LossReason
}

// pending holds what was counted since the last batch. Its size is bounded by the limits on roll-ups, flows and nodes with
// losses, each divided among the sources, and by the number of events in one overlap (seen).
type pending struct {
	// generation identifies the pending data among all of its aggregator.
	generation uint64
	// holders contains the lease holders by source. They are the same as long as anything is pending.
	holders map[string]string
	// rollups contains a list for each batch, and lists its index by the source of the batch, which is "" for all sources
	// without a holder.
	rollups []*rollupList
	lists   map[string]int32
	losses  map[lossKey]*audit.Loss
	sources map[string]*sourceState
	flows   []audit.Flow
	// flowsSince is the time before which flows are not stored individually. Retention works in whole days.
	flowsSince time.Time

	rollupQuota, flowQuota *quota
	// lossNodes is the number of nodes and reasons of each source that have a separate loss.
	lossNodes map[string]int
}

// sourceState holds what is pending for one source in addition to its counts.
type sourceState struct {
	position, forget time.Time
	watched          audit.WatchedSpan
	seen             []seenEvent
}

// seenEvent identifies an event. It is small, because there may be millions of them while the store is unavailable.
type seenEvent struct {
	second int64
	id     uint64
}

// cachedRollups holds the roll-ups in which a group counts, for the connections of one minute and one batch. It is stored in the
// group. It has no pointer to what is pending, which would stay in memory for as long as the group does.
type cachedRollups struct {
	generation uint64
	minute     int64
	rows       []rollupRow
}

// rollupRow is the place of a roll-up: the index of its list, and its index there. list is noList if the quota was used up.
type rollupRow struct {
	list, row int32
}

// noList is the index of no list.
const noList = -1

// newPending returns an empty pending. The holders must not change while it is in use.
func newPending(c *Config, generation uint64, holders map[string]string) *pending {
	return &pending{generation: generation, holders: holders, lists: map[string]int32{}, losses: map[lossKey]*audit.Loss{},
		sources: map[string]*sourceState{}, rollupQuota: newQuota(c.MaxKeys, c.Sources), flowQuota: newQuota(c.MaxFlows, c.Sources),
		lossNodes: map[string]int{}, flowsSince: c.Now().Add(-min(c.FlowRetention, maxFlowAge)).Truncate(24 * time.Hour)}
}

// batchOf returns the source of whose batch the data of a source is part: the source itself if it has a holder, otherwise "".
func (p *pending) batchOf(source string) string {
	if p.holders[source] == "" {
		return ""
	}
	return source
}

// count returns the number of roll-ups.
func (p *pending) count() int { return p.rollupQuota.total }

func (p *pending) source(name string) *sourceState {
	f := p.sources[name]
	if f == nil {
		f = &sourceState{}
		p.sources[name] = f
	}
	return f
}

// bucketSeconds is audit.BucketWidth in seconds.
const bucketSeconds = int64(audit.BucketWidth / time.Second)

// add counts an event, and returns the number of connections for which the quota was used up.
func (p *pending) add(t *audit.Event, ports *portTracker) (dropped int64) {
	f := p.source(t.Source)
	f.position, f.forget = audit.Later(f.position, t.Position), audit.Later(f.forget, t.ForgetBefore)
	f.addSeen(seenEvent{t.Time.Unix(), t.ID})
	if t.EdgeGroup == nil {
		return 0
	}
	minute := floorMinute(t.Time)
	r, ok := t.EdgeGroup.SinkData.(*cachedRollups)
	if !ok || r.generation != p.generation || r.minute != minute {
		r = p.rollupsOf(audit.ClusterOf(t.Source), t.EdgeGroup, minute, ports)
		t.EdgeGroup.SinkData = r
	}
	for _, at := range r.rows {
		if at.list == noList {
			dropped = t.Count // all edges of one event count the same connections
			continue
		}
		row := p.at(at)
		if row.FirstSeen.IsZero() {
			row.FirstSeen, row.LastSeen = t.Time, t.Time
		}
		row.Count += t.Count
		if t.Time.Before(row.FirstSeen) {
			row.FirstSeen = t.Time
		} else if t.Time.After(row.LastSeen) {
			row.LastSeen = t.Time
		}
	}
	return dropped
}

// floorMinute returns the number of whole minutes since 1970, rounded down for earlier times as well.
func floorMinute(t time.Time) int64 {
	s := t.Unix()
	m := s / bucketSeconds
	if s%bucketSeconds < 0 {
		m--
	}
	return m
}

// at returns a roll-up. It is valid until the next one is added.
func (p *pending) at(r rollupRow) *audit.Rollup { return &p.rollups[r.list].rollups[r.row] }

func (p *pending) rollupsOf(cluster string, t *audit.EdgeGroup, minute int64, ports *portTracker) *cachedRollups {
	out := &cachedRollups{generation: p.generation, minute: minute, rows: make([]rollupRow, len(t.Edges))}
	bucket := time.Unix(minute*bucketSeconds, 0).UTC()
	for i, e := range t.Edges {
		e = ports.fold(minute, e)
		list := p.listOf(e.Cluster)
		hash := hashOf(minute, &e)
		row, found := p.rollups[list].find(hash, bucket, &e)
		switch {
		case found:
		case p.rollupQuota.reserve(cluster):
			row = p.rollups[list].add(hash, audit.Rollup{Bucket: bucket, Edge: e})
		default:
			list = noList
		}
		out.rows[i] = rollupRow{list, row}
	}
	return out
}

// listOf returns the index of the list with the roll-ups of a source.
func (p *pending) listOf(source string) int32 {
	batch := p.batchOf(source)
	i, ok := p.lists[batch]
	if !ok {
		i = int32(len(p.rollups))
		p.lists[batch], p.rollups = i, append(p.rollups, &rollupList{last: map[uint64]int32{}})
	}
	return i
}

// trimSeen is the length of the list at which events that cannot be delivered again are removed from it. It matters only while
// the store fails.
const trimSeen = 4096

func (s *sourceState) addSeen(e seenEvent) {
	if len(s.seen) >= trimSeen && len(s.seen) == cap(s.seen) {
		forget, kept := s.forget.Unix(), s.seen[:0]
		for _, old := range s.seen {
			if old.second >= forget {
				kept = append(kept, old)
			}
		}
		s.seen = kept
	}
	s.seen = append(s.seen, e)
}

func (p *pending) progress(g audit.Progress) {
	at := p.source(cmp.Or(g.PositionOf, g.Source))
	at.position, at.forget = audit.Later(at.position, g.Position), audit.Later(at.forget, g.ForgetBefore)
	f := p.source(g.Source)
	if f.watched.Source == "" {
		f.watched = g.WatchedSpan
		return
	}
	f.watched.From, f.watched.To = audit.Earlier(f.watched.From, g.From), audit.Later(f.watched.To, g.To)
}

// maxLossNodes is the number of nodes and reasons of one source that have a separate loss in a batch. It bounds memory, because a
// source chooses the names of its nodes.
const maxLossNodes = 1000

// OtherNodes is the node name of the loss that merges those of all further nodes.
const OtherNodes = "other nodes"

// addLoss adds a loss, and reports whether it was merged with those of other nodes.
func (p *pending) addLoss(l audit.Loss) (joined bool) {
	key := lossKey{l.Cluster, l.Node, l.Reason}
	sum := p.losses[key]
	if sum == nil && p.lossNodes[l.Cluster] >= maxLossNodes {
		l.Node, joined = OtherNodes, true
		key.node = OtherNodes
		sum = p.losses[key]
	}
	if sum == nil {
		p.losses[key] = &l
		if !joined {
			p.lossNodes[l.Cluster]++
		}
		return joined
	}
	sum.Count += l.Count
	sum.From, sum.To = audit.Earlier(sum.From, l.From), audit.Later(sum.To, l.To)
	return joined
}

// batch returns a batch of the pending data: with that of one source, or, if of is "", with that of all sources without a holder. The batch
// shares its roll-ups with p, to which nothing may be added any more.
func (p *pending) batch(id, of string) *audit.Batch {
	b := &audit.Batch{ID: id, ForgetSeen: map[string]time.Time{}}
	if i, ok := p.lists[of]; ok {
		b.Rollups = p.rollups[i].rollups
	}
	for i := range p.flows {
		if p.batchOf(p.flows[i].Cluster) == of {
			b.Flows = append(b.Flows, p.flows[i])
		}
	}
	for _, l := range p.losses {
		if p.batchOf(l.Cluster) == of {
			b.Losses = append(b.Losses, *l)
		}
	}
	for source, f := range p.sources {
		if p.batchOf(audit.ClusterOf(source)) == of {
			f.appendTo(b, source)
		}
	}
	return b
}

func (s *sourceState) appendTo(b *audit.Batch, source string) {
	if !s.position.IsZero() {
		b.Positions = append(b.Positions, audit.Position{Source: source, Time: s.position})
	}
	if !s.forget.IsZero() {
		b.ForgetSeen[source] = s.forget
	}
	if s.watched.Source != "" {
		b.Watched = append(b.Watched, s.watched)
	}
	forget := s.forget.Unix()
	for _, e := range s.seen {
		if e.second >= forget {
			b.Seen = append(b.Seen, audit.SeenEvent{Source: source, Time: time.Unix(e.second, 0).UTC(), ID: e.id})
		}
	}
}
