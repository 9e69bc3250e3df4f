package rollup

import (
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

// pending is what was counted since the last batch. Its size is bounded by the limits on roll-ups, flows and nodes with losses,
// each divided among the sources, and by the events of one resume window (seen).
type pending struct {
	rollups map[rollupKey]*audit.Rollup
	losses  map[lossKey]*audit.Loss
	sources map[string]*followed
	flows   []audit.Flow

	rollupRoom, flowRoom *room
	// lossNodes counts the nodes and reasons of each source that have a loss of their own.
	lossNodes map[string]int
}

// followed is what is pending of one source beside its counts.
type followed struct {
	position, forget time.Time
	watched          audit.Watch
	seen             []seenEvent
}

// seenEvent is small, because there may be millions while the store is away.
type seenEvent struct {
	second int64
	id     uint64
}

// rows are where a tally counts, as long as its connections are of one minute and one batch. They are kept in the tally.
type rows struct {
	of     *pending
	minute int64
	rows   []*audit.Rollup // nil: there was no room
}

func newPending(c *Config) *pending {
	return &pending{rollups: map[rollupKey]*audit.Rollup{}, losses: map[lossKey]*audit.Loss{}, sources: map[string]*followed{},
		rollupRoom: newRoom(c.MaxKeys, c.Sources), flowRoom: newRoom(c.MaxFlows, c.Sources), lossNodes: map[string]int{}}
}

func (p *pending) source(name string) *followed {
	f := p.sources[name]
	if f == nil {
		f = &followed{}
		p.sources[name] = f
	}
	return f
}

// bucketSeconds is BucketWidth in the unit in which minutes are found.
const bucketSeconds = int64(audit.BucketWidth / time.Second)

// take returns how many connections found no room.
func (p *pending) take(t *audit.Taken, ports *ports) (dropped int64) {
	f := p.source(t.Source)
	f.position, f.forget = later(f.position, t.Position), later(f.forget, t.Forget)
	f.remember(seenEvent{t.Time.Unix(), t.ID})
	if t.Tally == nil {
		return 0
	}
	minute := floorMinute(t.Time)
	r, ok := t.Tally.Kept.(*rows)
	if !ok || r.of != p || r.minute != minute {
		r = p.locate(t.Source, t.Tally, minute, ports)
		t.Tally.Kept = r
	}
	for _, row := range r.rows {
		if row == nil {
			dropped = t.Count // the edges of one event are the same connections
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

// floorMinute is the number of the minute since 1970, also before it.
func floorMinute(t time.Time) int64 {
	s := t.Unix()
	m := s / bucketSeconds
	if s%bucketSeconds < 0 {
		m--
	}
	return m
}

func (p *pending) locate(source string, t *audit.Tally, minute int64, ports *ports) *rows {
	out := &rows{of: p, minute: minute, rows: make([]*audit.Rollup, len(t.Edges))}
	for i, e := range t.Edges {
		key := rollupKey{minute, ports.fold(minute, e)}
		row := p.rollups[key]
		if row == nil && p.rollupRoom.take(source) {
			row = &audit.Rollup{Bucket: time.Unix(minute*bucketSeconds, 0).UTC(), Edge: key.edge}
			p.rollups[key] = row
		}
		out.rows[i] = row
	}
	return out
}

// trimSeen is the length at which events that cannot come again are dropped before they are ever stored: it matters only
// while the store fails.
const trimSeen = 4096

func (f *followed) remember(e seenEvent) {
	if len(f.seen) >= trimSeen && len(f.seen) == cap(f.seen) {
		forget, kept := f.forget.Unix(), f.seen[:0]
		for _, old := range f.seen {
			if old.second >= forget {
				kept = append(kept, old)
			}
		}
		f.seen = kept
	}
	f.seen = append(f.seen, e)
}

func (p *pending) progress(g audit.Progress) {
	f := p.source(g.Source)
	f.position, f.forget = later(f.position, g.Position), later(f.forget, g.Forget)
	if f.watched.Source == "" {
		f.watched = g.Watch
		return
	}
	f.watched.From, f.watched.To = earlier(f.watched.From, g.From), later(f.watched.To, g.To)
}

// maxLossNodes is how many nodes and reasons of one source have a loss of their own in a batch: a source names its nodes as it
// likes.
const maxLossNodes = 1000

// OtherNodes is the node of the losses of all further nodes.
const OtherNodes = "other nodes"

// lose adds a loss, and reports whether it was joined with those of other nodes.
func (p *pending) lose(l audit.Loss) (joined bool) {
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
	sum.From, sum.To = earlier(sum.From, l.From), later(sum.To, l.To)
	return joined
}

// batch is everything, or with a source what is of it.
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
		if only(source) {
			f.into(b, source)
		}
	}
	return b
}

func (f *followed) into(b *audit.Batch, source string) {
	if !f.position.IsZero() {
		b.Positions = append(b.Positions, audit.Position{Source: source, Time: f.position})
	}
	if !f.forget.IsZero() {
		b.ForgetSeen[source] = f.forget
	}
	if f.watched.Source != "" {
		b.Watched = append(b.Watched, f.watched)
	}
	forget := f.forget.Unix()
	for _, e := range f.seen {
		if e.second >= forget {
			b.Seen = append(b.Seen, audit.Seen{Source: source, Time: time.Unix(e.second, 0).UTC(), ID: e.id})
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
