package rollup

import (
	"time"

	"github.com/acp-io/acp/internal/audit"
)

type rollupKey struct {
	bucket int64
	edge   audit.Edge
}

type lossKey struct {
	cluster, node string
	reason        audit.LossReason
}

// pending is what was counted since the last batch. Its size is bounded by the caller's limit on roll-ups, by the number
// of nodes (losses), and by the events of one resume window (seen).
type pending struct {
	rollups   map[rollupKey]*audit.Rollup
	losses    map[lossKey]*audit.Loss
	positions map[string]time.Time
	forget    map[string]time.Time
	seen      map[string][]audit.Seen
}

func newPending() *pending {
	return &pending{
		rollups: map[rollupKey]*audit.Rollup{}, losses: map[lossKey]*audit.Loss{},
		positions: map[string]time.Time{}, forget: map[string]time.Time{}, seen: map[string][]audit.Seen{},
	}
}

// take returns how many connections found no room.
func (p *pending) take(t audit.Taken, limit int) int64 {
	var dropped int64
	bucket := t.Time.UTC().Truncate(audit.BucketWidth)
	for _, e := range t.Edges {
		key := rollupKey{bucket.Unix(), e}
		r := p.rollups[key]
		if r == nil {
			if len(p.rollups) >= limit {
				dropped = t.Count // the edges of one event are the same connections
				continue
			}
			r = &audit.Rollup{Bucket: bucket, Edge: e, FirstSeen: t.Time, LastSeen: t.Time}
			p.rollups[key] = r
		}
		r.Count += t.Count
		r.FirstSeen, r.LastSeen = earlier(r.FirstSeen, t.Time), later(r.LastSeen, t.Time)
	}
	p.positions[t.Source] = later(p.positions[t.Source], t.Position)
	p.forget[t.Source] = later(p.forget[t.Source], t.Forget)
	p.remember(t.Seen)
	return dropped
}

// trimSeen is the length at which events that cannot come again are dropped before they are ever stored: it matters only
// while the store fails.
const trimSeen = 4096

func (p *pending) remember(s audit.Seen) {
	list := append(p.seen[s.Source], s)
	if len(list) >= trimSeen && len(list) == cap(list) {
		kept := list[:0]
		for _, e := range list {
			if !e.Time.Before(p.forget[s.Source]) {
				kept = append(kept, e)
			}
		}
		list = kept
	}
	p.seen[s.Source] = list
}

func (p *pending) lose(l audit.Loss) {
	key := lossKey{l.Cluster, l.Node, l.Reason}
	sum := p.losses[key]
	if sum == nil {
		p.losses[key] = &l
		return
	}
	sum.Count += l.Count
	sum.From, sum.To = earlier(sum.From, l.From), later(sum.To, l.To)
}

func (p *pending) batch(id string) *audit.Batch {
	b := &audit.Batch{ID: id, ForgetSeen: p.forget}
	for _, r := range p.rollups {
		b.Rollups = append(b.Rollups, *r)
	}
	for _, l := range p.losses {
		b.Losses = append(b.Losses, *l)
	}
	for source, at := range p.positions {
		b.Positions = append(b.Positions, audit.Position{Source: source, Time: at})
	}
	for source, list := range p.seen {
		for _, e := range list {
			if !e.Time.Before(p.forget[source]) {
				b.Seen = append(b.Seen, e)
			}
		}
	}
	return b
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
