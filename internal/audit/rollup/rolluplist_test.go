package rollup

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
)

func TestRollupsWithTheSameHash(t *testing.T) {
	const hash = 7
	l := rollupList{last: map[uint64]int32{}}
	minute := func(i int) time.Time { return audittest.T0.Add(time.Duration(i) * audit.BucketWidth) }
	for i := range 6 {
		e := client(i / 2)
		if at, found := l.find(hash, minute(i%2), &e); found {
			t.Fatalf("roll-up %d was found at %d before it was added", i, at)
		}
		if at := l.add(hash, audit.Rollup{Bucket: minute(i % 2), Edge: e}); at != int32(i) {
			t.Fatalf("roll-up %d was added at %d", i, at)
		}
	}
	for i := range 6 {
		e := client(i / 2)
		if at, found := l.find(hash, minute(i%2), &e); !found || at != int32(i) {
			t.Errorf("roll-up %d: got %d, %v", i, at, found)
		}
	}
	e := client(0)
	if _, found := l.find(hash+1, minute(0), &e); found {
		t.Error("a roll-up was found by another hash")
	}
}

// TestGroupsDoNotKeepBatches checks that the edge groups of the ingest, which stay in memory as long as their endpoints do, do not keep
// the roll-ups of the batch in which they were counted last.
func TestGroupsDoNotKeepBatches(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	event := countedEvent(0, client(0))
	a.Add(event)
	first := weak.Make(&a.current.rollups[0].rollups[0])
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	clear(s.batches)
	runtime.GC()
	if first.Value() != nil {
		t.Error("the roll-ups of a stored batch are still in memory")
	}
	a.Add(event) // counted anew
	if n := a.current.count(); n != 1 {
		t.Errorf("got %d roll-ups, want 1", n)
	}
	runtime.KeepAlive(event)
}
