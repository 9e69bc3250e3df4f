package rollup

import (
	"cmp"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

type rollupKey struct {
	minute int64
	edge   audit.Edge
}

type lossKey struct {
	cluster, node string
	reason        audit.LossReason
}

// pending holds what was counted since the last batch. Its size is bounded by the limits on roll-ups, flows and nodes with
// losses, each divided among the sources, and by the number of events in one overlap (seen).
type pending struct {
	rollups map[rollupKey]*audit.Rollup
	losses  map[lossKey]*audit.Loss
	sources map[string]*sourceState
	flows   []audit.Flow

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
// group.
type cachedRollups struct {
	pending *pending
	minute  int64
	rollups []*audit.Rollup // nil if the quota was used up
}

func newPending(c *Config) *pending {
	return &pending{rollups: map[rollupKey]*audit.Rollup{}, losses: map[lossKey]*audit.Loss{}, sources: map[string]*sourceState{},
		rollupQuota: newQuota(c.MaxKeys, c.Sources), flowQuota: newQuota(c.MaxFlows, c.Sources), lossNodes: map[string]int{}}
}

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
	f.position, f.forget = latest(f.position, t.Position), latest(f.forget, t.ForgetBefore)
	f.addSeen(seenEvent{t.Time.Unix(), t.ID})
	if t.EdgeGroup == nil {
		return 0
	}
	minute := floorMinute(t.Time)
	r, ok := t.EdgeGroup.SinkData.(*cachedRollups)
	if !ok || r.pending != p || r.minute != minute {
		r = p.rollupsOf(audit.ClusterOf(t.Source), t.EdgeGroup, minute, ports)
		t.EdgeGroup.SinkData = r
	}
	for _, row := range r.rollups {
		if row == nil {
			dropped = t.Count // all edges of one event count the same connections
			continue
		}
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

func (p *pending) rollupsOf(cluster string, t *audit.EdgeGroup, minute int64, ports *portTracker) *cachedRollups {
	out := &cachedRollups{pending: p, minute: minute, rollups: make([]*audit.Rollup, len(t.Edges))}
	for i, e := range t.Edges {
		key := rollupKey{minute, ports.fold(minute, e)}
		row := p.rollups[key]
		if row == nil && p.rollupQuota.reserve(cluster) {
			row = &audit.Rollup{Bucket: time.Unix(minute*bucketSeconds, 0).UTC(), Edge: key.edge}
			p.rollups[key] = row
		}
		out.rollups[i] = row
	}
	return out
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
	at.position, at.forget = latest(at.position, g.Position), latest(at.forget, g.ForgetBefore)
	f := p.source(g.Source)
	if f.watched.Source == "" {
		f.watched = g.WatchedSpan
		return
	}
	f.watched.From, f.watched.To = earlier(f.watched.From, g.From), latest(f.watched.To, g.To)
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
	sum.From, sum.To = earlier(sum.From, l.From), latest(sum.To, l.To)
	return joined
}

// batch returns a batch with the pending data of the sources that match only.
func (p *pending) batch(id string, only func(source string) bool) *audit.Batch {
	b := &audit.Batch{ID: id, ForgetSeen: map[string]time.Time{}}
	for _, r := range p.rollups {
		if only(r.Cluster) {
			b.Rollups = append(b.Rollups, *r)
		}
	}
	for i := range p.flows {
		if only(p.flows[i].Cluster) {
			b.Flows = append(b.Flows, p.flows[i])
		}
	}
	for _, l := range p.losses {
		if only(l.Cluster) {
			b.Losses = append(b.Losses, *l)
		}
	}
	for source, f := range p.sources {
		if only(audit.ClusterOf(source)) {
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

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
