package rollup

import (
	"hash/maphash"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// rollupList contains roll-ups, and finds them by their minute and edge. It contains each edge once, because tens of thousands of them
// are in memory while the store is slow: a map with edges as keys would need twice as much.
type rollupList struct {
	rollups []audit.Rollup
	// last contains the index of the last roll-up with a hash, and previous, for each roll-up, that of the one before it with the same
	// hash, or -1.
	last     map[uint64]int32
	previous []int32
}

var hashSeed = maphash.MakeSeed()

// hashOf returns a hash of the key of a roll-up.
func hashOf(minute int64, e *audit.Edge) uint64 {
	return maphash.Comparable(hashSeed, struct {
		minute int64
		edge   audit.Edge
	}{minute, *e})
}

// find returns the index of the roll-up with a hash, a minute and an edge.
func (l *rollupList) find(hash uint64, bucket time.Time, e *audit.Edge) (int32, bool) {
	i, ok := l.last[hash]
	for ; ok && i >= 0; i = l.previous[i] {
		if r := &l.rollups[i]; r.Bucket.Equal(bucket) && r.Edge == *e {
			return i, true
		}
	}
	return 0, false
}

// add adds a roll-up that the list does not contain, and returns its index.
func (l *rollupList) add(hash uint64, r audit.Rollup) int32 {
	i := int32(len(l.rollups))
	previous, ok := l.last[hash]
	if !ok {
		previous = -1
	}
	l.rollups, l.previous, l.last[hash] = append(l.rollups, r), append(l.previous, previous), i
	return i
}
