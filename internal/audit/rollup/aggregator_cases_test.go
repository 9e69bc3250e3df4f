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

// TestPortScanIsFolded verifies that every connection of a port scan is counted, in a bounded number of edges, across batches.
func TestPortScanIsFolded(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	const scanned = 1000
	scan := func(port int) audit.Edge {
		return audittest.Edge(func(e *audit.Edge) { e.Action, e.Port = "", uint16(port) })
	}
	for port := 1; port <= scanned; port++ {
		a.Add(countedEvent(0, scan(port)))
		if port%100 == 0 {
			if err := a.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.Add(countedEvent(1, audittest.Edge(func(e *audit.Edge) { e.Action, e.Port = "redis:connect", 6379 }))) // a port with an action
	a.Add(countedEvent(2, scan(7)))                                                                          // a port that was seen early
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
		t.Errorf(
			"got %d edges, %d folded connections and %d of port 7; want %d, %d and 2",
			len(edges),
			edges[folded],
			edges[scan(7)],
			maxPorts+2,
			scanned-maxPorts,
		)
	}
}

func TestTrackedPortsAreBounded(t *testing.T) {
	p := newPortTracker(1)
	for i := range maxPairsPerMinute + 10 {
		p.fold(1, audit.Edge{Source: fmt.Sprint(i), Port: 9})
	}
	if n := len(p.minutes[1].seen[""]); n > maxPairsPerMinute {
		t.Errorf("got %d tracked pairs, want at most the bound", n)
	}
	for name, minuteOf := range map[string]func(i int64) int64{
		"Rising": func(i int64) int64 { return i }, "Falling": func(i int64) int64 { return -i },
		"Alternating": func(i int64) int64 { return i * (1 - i%2*2) },
	} {
		for i := range int64(100) {
			p.fold(minuteOf(i), audit.Edge{Port: 9})
		}
		if n := len(p.minutes); n > trackedMinutes || len(p.tracked[""]) > trackedMinutes {
			t.Errorf("%s: got %d tracked minutes, %v of the cluster", name, n, p.tracked[""])
		}
	}
}

// TestTrackedPortsOfOtherClustersStay verifies that a cluster whose events have many different times does not make the ports of
// another one be counted individually again, and that nothing is kept of a cluster without events.
func TestTrackedPortsOfOtherClustersStay(t *testing.T) {
	p := newPortTracker(2)
	const now = 1000
	scan := func(from int) (counted int) {
		for port := from; port < from+maxPorts; port++ {
			if e := (audit.Edge{Cluster: "m1", Port: uint16(port)}); p.fold(now, e) == e {
				counted++
			}
		}
		return counted
	}
	if n := scan(1); n != maxPorts {
		t.Errorf("got %d ports that are counted individually, want the first %d", n, maxPorts)
	}
	for i := range int64(100) {
		p.fold(now-i*7%100, audit.Edge{Cluster: "m2", Port: 9})
	}
	if n := scan(1 + maxPorts); n != 0 {
		t.Errorf("got %d further ports that are counted individually, want none", n)
	}
	p.fold(now+idleMinutes, audit.Edge{Cluster: "m2", Port: 9})
	if p.tracked["m1"] != nil || p.minutes[now] != nil {
		t.Errorf("got minutes %v of a cluster without events for an hour, want none", p.tracked["m1"])
	}
}

// TestOldFlowsAreOnlyCounted verifies that a flow that is older than flows are kept is counted and not stored individually, and that
// a longer retention does not allow flows of many days in a batch.
func TestOldFlowsAreOnlyCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		retention, age time.Duration
		want           int
	}{
		"Kept":      {3 * 24 * time.Hour, 70 * time.Hour, 1},
		"Expired":   {3 * 24 * time.Hour, 200 * 24 * time.Hour, 0},
		"ManyDays":  {365 * 24 * time.Hour, 200 * 24 * time.Hour, 0},
		"FewerDays": {365 * 24 * time.Hour, 6 * 24 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			a := aggregator(t, s, func(c *Config) {
				c.FlowRetention, c.Retention, c.Now = tc.retention, 365*24*time.Hour, func() time.Time { return audittest.T0 }
			})
			x := countedEvent(0, client(0))
			x.Time = audittest.T0.Add(-tc.age)
			x.Flow = &audit.Flow{Time: x.Time, Edge: client(0), Count: 1}
			a.Add(x)
			if err := a.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			b := s.batches[s.attempts[0]]
			dropped := testutil.ToFloat64(a.metrics.rawDropped.WithLabelValues("m1"))
			if len(b.Rollups) != 1 || len(b.Flows) != tc.want || int(dropped) != 1-tc.want {
				t.Errorf("got %d roll-ups, %d flows and %v dropped flows; want 1, %d and %d", len(b.Rollups), len(b.Flows), dropped, tc.want, 1-tc.want)
			}
		})
	}
}

func TestRawFlowsHaveTheEdgeInWhichTheyAreCounted(t *testing.T) {
	s := newStore()
	a := aggregator(t, s, func(c *Config) { c.MaxFlows = 3 })
	for i := range 5 {
		x := countedEvent(i, client(i))
		x.Flow = &audit.Flow{Time: x.Time, Edge: client(i), Count: 1, SourcePort: uint16(i)}
		a.Add(x)
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := s.batches[s.attempts[0]]
	if len(b.Flows) != 3 || b.Flows[2].Subject != "2" || len(b.Rollups) != 5 {
		t.Errorf("got %d flows and %d roll-ups, want 3 and 5: %+v", len(b.Flows), len(b.Rollups), b.Flows)
	}
	if n := testutil.ToFloat64(a.metrics.rawDropped.WithLabelValues("m1")); n != 2 {
		t.Errorf("got %v dropped flows, want 2", n)
	}
}

func TestProgressIsStoredWithoutFlows(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	at := func(i int) time.Time { return audittest.T0.Add(time.Duration(i) * time.Second) }
	for i := range 3 {
		a.Progress(audit.Progress{WatchedSpan: audit.WatchedSpan{Source: "m1", From: at(i), To: at(i + 1)}, Position: at(i)})
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := s.batches[s.attempts[0]]
	if diff := cmp.Diff([]audit.WatchedSpan{{Source: "m1", From: at(0), To: at(3)}}, b.Watched); diff != "" {
		t.Errorf("watched (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]audit.Position{{Source: "m1", Time: at(2)}}, b.Positions); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

// TestProgressOfAnAccessLog verifies that the watched span is stored under the member, and the position under the source.
func TestProgressOfAnAccessLog(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	span := audit.WatchedSpan{Source: "m1", From: audittest.T0, To: audittest.T0.Add(time.Second)}
	a.Progress(audit.Progress{WatchedSpan: span, PositionOf: audit.IstioSource("m1"), Position: audittest.T0})
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := s.batches[s.attempts[0]]
	if diff := cmp.Diff([]audit.WatchedSpan{span}, b.Watched); diff != "" {
		t.Errorf("watched (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]audit.Position{{Source: audit.IstioSource("m1"), Time: audittest.T0}}, b.Positions); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

// TestLeases verifies that counts are stored under the lease holder of their time, each source in a batch of its own.
func TestLeases(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	take := func(source string) {
		x := countedEvent(1, audittest.Edge(func(e *audit.Edge) { e.Cluster = source }))
		x.Source = source
		a.Add(x)
	}
	a.SetHolder("m1", "one")
	a.SetHolder("m2", "two")
	take("m1")
	take("m2")
	take("m3") // without a lease
	a.SetHolder("m1", "three")
	take("m1")
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range s.attempts {
		b := s.batches[id]
		got = append(got, b.Holder+" "+b.Positions[0].Source+" "+b.Rollups[0].Cluster)
		if len(b.Positions) != 1 || len(b.Rollups) != 1 {
			t.Errorf("got a batch with %d sources and %d roll-ups", len(b.Positions), len(b.Rollups))
		}
	}
	log := countedEvent(2, audittest.Edge(func(e *audit.Edge) { e.Cluster = "m2" }))
	log.Source = audit.IstioSource("m2")
	a.Add(log)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b := s.batches[s.attempts[len(s.attempts)-1]]; b.Holder != "two" || len(b.Positions) != 1 || b.Positions[0].Source != "m2/istio" {
		t.Errorf("the access log of a member is stored under another holder than the member: %q, %v", b.Holder, b.Positions)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{" m3 m3", "one m1 m1", "three m1 m1", "two m2 m2"}, got); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
}

func TestBatchesOfALostLeaseAreDiscarded(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	a.SetHolder("m1", "mine")
	a.Add(countedEvent(0, client(0)))
	s.failBefore = fmt.Errorf("append: %w", audit.ErrNotHolder)
	if err := a.Flush(t.Context()); err != nil {
		t.Fatalf("Flush: %v", err)
	}
	s.failBefore = nil
	if err := a.Flush(t.Context()); err != nil || len(s.attempts) != 1 || a.Err() != nil {
		t.Errorf("got Flush error %v, Err %v and %d attempts, want no error and one attempt", err, a.Err(), len(s.attempts))
	}
	if errors.Is(a.Err(), audit.ErrNotHolder) {
		t.Error("the lost lease is counted as a failure of the store")
	}
}

// TestOpenConnectionsMoveTheTimes verifies that an event with a count of 0 only updates the time of last use.
func TestOpenConnectionsMoveTheTimes(t *testing.T) {
	s := newStore()
	a := aggregator(t, s, func(c *Config) { c.MaxKeys, c.FlushKeys = 1, 1 })
	open := func(i int, e audit.Edge) *audit.Event {
		x := countedEvent(i, e)
		x.Count = 0
		return x
	}
	a.Add(open(20, client(0)))
	a.Add(open(10, client(0)))
	a.Add(open(30, client(0)))
	a.Add(open(31, client(1))) // the quota is used up, but nothing is lost
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
		t.Errorf("got losses %+v, want none", b.Losses)
	}
}
