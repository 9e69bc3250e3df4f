package rollup

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
)

// TestPortScanIsFolded: every connection counts, in a bounded number of edges, across batches.
func TestPortScanIsFolded(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	const scanned = 1000
	scan := func(port int) audit.Edge {
		return audittest.Edge(func(e *audit.Edge) { e.Action, e.Port = "", uint16(port) })
	}
	for port := 1; port <= scanned; port++ {
		a.Take(taken(0, scan(port)))
		if port%100 == 0 {
			if err := a.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.Take(taken(1, audittest.Edge(func(e *audit.Edge) { e.Action, e.Port = "redis:connect", 6379 }))) // a port that means something
	a.Take(taken(2, scan(7)))                                                                          // one that was seen early
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	edges := map[audit.Edge]int64{}
	for _, b := range s.batches {
		for _, r := range b.Rollups {
			edges[r.Edge] += r.Count
		}
	}
	folded := scan(0)
	folded.Destination = OtherPorts
	if len(edges) != maxPorts+2 || edges[folded] != scanned-maxPorts || edges[scan(7)] != 2 {
		t.Errorf("%d edges, %d connections folded, %d of port 7; want %d, %d and 2", len(edges), edges[folded], edges[scan(7)], maxPorts+2, scanned-maxPorts)
	}
}

func TestPortsAreBounded(t *testing.T) {
	p := newPorts(1)
	for i := range maxPairs + 10 {
		p.fold(1, audit.Edge{Source: fmt.Sprint(i), Port: 9})
	}
	if n := len(p.minutes[1].seen); n > maxPairs {
		t.Errorf("%d pairs are known", n)
	}
	for minute := range int64(100) {
		p.fold(minute, audit.Edge{Port: 9})
	}
	if n := len(p.minutes); n > keptMinutes {
		t.Errorf("%d minutes are known", n)
	}
}

func TestRawFlowsAreKeptAsTheyAreCounted(t *testing.T) {
	s := newStore()
	a := aggregator(t, s, func(c *Config) { c.MaxFlows = 3 })
	for i := range 5 {
		x := taken(i, client(i))
		x.Flow = &audit.Flow{Time: x.Time, Edge: client(i), Count: 1, SourcePort: uint16(i)}
		a.Take(x)
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := s.batches[s.attempts[0]]
	if len(b.Flows) != 3 || b.Flows[2].Subject != "2" || len(b.Rollups) != 5 {
		t.Errorf("%d flows and %d roll-ups, want 3 and 5: %+v", len(b.Flows), len(b.Rollups), b.Flows)
	}
	if n := testutil.ToFloat64(a.metrics.rawDropped.WithLabelValues("m1")); n != 2 {
		t.Errorf("%v flows are counted as dropped, want 2", n)
	}
}

func TestProgressIsStoredWithoutFlows(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	at := func(i int) time.Time { return audittest.T0.Add(time.Duration(i) * time.Second) }
	for i := range 3 {
		a.Progress(audit.Progress{Watch: audit.Watch{Source: "m1", From: at(i), To: at(i + 1)}, Position: at(i)})
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := s.batches[s.attempts[0]]
	if diff := cmp.Diff([]audit.Watch{{Source: "m1", From: at(0), To: at(3)}}, b.Watched); diff != "" {
		t.Errorf("watched (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]audit.Position{{Source: "m1", Time: at(2)}}, b.Positions); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

// TestLeases: what is counted is stored under the lease that it was counted under, each source by itself.
func TestLeases(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	take := func(source string) {
		x := taken(1, audittest.Edge(func(e *audit.Edge) { e.Cluster = source }))
		x.Source = source
		a.Take(x)
	}
	a.Hold("m1", "one")
	a.Hold("m2", "two")
	take("m1")
	take("m2")
	take("m3") // without a lease
	a.Hold("m1", "three")
	take("m1")
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range s.attempts {
		b := s.batches[id]
		got = append(got, b.Holder+" "+b.Positions[0].Source+" "+b.Rollups[0].Cluster)
		if len(b.Positions) != 1 || len(b.Rollups) != 1 {
			t.Errorf("a batch has %d sources and %d roll-ups", len(b.Positions), len(b.Rollups))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{" m3 m3", "one m1 m1", "three m1 m1", "two m2 m2"}, got); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestForeignBatchesAreForgotten(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	a.Hold("m1", "mine")
	a.Take(taken(0, client(0)))
	s.failBefore = fmt.Errorf("append: %w", audit.ErrNotHolder)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	s.failBefore = nil
	if err := a.Flush(t.Context()); err != nil || len(s.attempts) != 1 || a.Err() != nil {
		t.Errorf("Flush: %v, Err: %v, %d attempts, want one that is not tried again", err, a.Err(), len(s.attempts))
	}
	if errors.Is(a.Err(), audit.ErrNotHolder) {
		t.Error("that another collector counts is no failure of the store")
	}
}

// TestOpenConnectionsMoveTheTimes: a count of 0 says only that something is still in use.
func TestOpenConnectionsMoveTheTimes(t *testing.T) {
	s := newStore()
	a := aggregator(t, s, func(c *Config) { c.MaxKeys, c.FlushKeys = 1, 1 })
	open := func(i int, e audit.Edge) *audit.Taken {
		x := taken(i, e)
		x.Count = 0
		return x
	}
	a.Take(open(20, client(0)))
	a.Take(open(10, client(0)))
	a.Take(open(30, client(0)))
	a.Take(open(31, client(1))) // no room, and nothing is lost with it
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := s.batches[s.attempts[0]]
	at := func(i int) time.Time { return audittest.T0.Add(time.Duration(i) * time.Second) }
	want := []audit.Rollup{{Bucket: audittest.T0, Edge: client(0), FirstSeen: at(10), LastSeen: at(30)}}
	if diff := cmp.Diff(want, b.Rollups); diff != "" {
		t.Errorf("roll-ups (-want +got):\n%s", diff)
	}
	if len(b.Losses) != 0 {
		t.Errorf("losses %+v, want none", b.Losses)
	}
}
