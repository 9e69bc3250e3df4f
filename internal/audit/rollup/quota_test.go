package rollup

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
)

// of returns an event of the given member.
func of(member string, i int) *audit.Event {
	t := countedEvent(i, audittest.Edge(func(e *audit.Edge) { e.Cluster, e.Subject = member, fmt.Sprint(i) }))
	t.Source = member
	return t
}

// TestOneSourceCannotUseTheQuotaOfOthers verifies that the connections of one member with very many clients do not prevent those
// of other members from being counted while the store is unavailable.
func TestOneSourceCannotUseTheQuotaOfOthers(t *testing.T) {
	s := newStore()
	a := aggregator(t, s, func(c *Config) { c.FlushKeys, c.MaxKeys, c.MaxFlows, c.Sources = 5, 1000, 1000, 10 })
	s.failBefore = errors.New("away")
	for i := range 5000 {
		x := of("loud", i)
		x.Flow = &audit.Flow{Time: x.Time, Edge: x.EdgeGroup.Edges[0]}
		a.Add(x)
	}
	const each = 40
	for m := range 9 {
		for i := range each {
			x := of(fmt.Sprint("quiet-", m), i)
			x.Flow = &audit.Flow{Time: x.Time, Edge: x.EdgeGroup.Edges[0]}
			a.Add(x)
		}
	}
	s.failBefore = nil
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	counted, flows, lost := map[string]int64{}, map[string]int{}, map[string]int64{}
	for _, b := range s.batches {
		for _, r := range b.Rollups {
			counted[r.Cluster] += r.Count
		}
		for _, f := range b.Flows {
			flows[f.Cluster]++
		}
		for _, l := range b.Losses {
			lost[l.Cluster] += l.Count
		}
	}
	for m := range 9 {
		name := fmt.Sprint("quiet-", m)
		if counted[name] != each || flows[name] != each || lost[name] != 0 {
			t.Errorf("%s: got %d counted, %d flows and %d lost, want all of %d counted", name, counted[name], flows[name], lost[name], each)
		}
	}
	if counted["loud"]+lost["loud"] != 5000 || counted["loud"] != 550 {
		t.Errorf("loud: got %d counted and %d lost, want 550 (its share and the shared half) and the rest of 5000", counted["loud"], lost["loud"])
	}
	if n := testutil.ToFloat64(a.metrics.dropped.WithLabelValues("loud")); n != float64(lost["loud"]) {
		t.Errorf("got %v lost in the metric, want %d as in the store", n, lost["loud"])
	}
}

func TestASingleSourceMayUseTheWholeQuota(t *testing.T) {
	r := newQuota(1001, 1)
	n := 0
	for r.reserve("m1") {
		n++
	}
	if n != 1001 {
		t.Errorf("got %d places of 1001 requested, want the limit", n)
	}
}

// TestLossesOfManyNodesAreMerged verifies that losses beyond the bound are merged and their counts kept. A member chooses the
// node names of its losses.
func TestLossesOfManyNodesAreMerged(t *testing.T) {
	s := newStore()
	a := aggregator(t, s)
	const nodes = 20_000
	now := audittest.T0
	for i := range nodes {
		a.AddLoss(
			audit.Loss{
				Cluster: "m1",
				Node:    fmt.Sprint("node-", i),
				Reason:  audit.LossUnreadable,
				Count:   1,
				From:    now,
				To:      now.Add(time.Duration(i) * time.Millisecond),
			},
		)
	}
	a.AddLoss(audit.Loss{Cluster: "m2", Node: "node", Reason: audit.LossRing, Count: 7, From: now, To: now})
	if n := len(a.current.losses); n > 2*maxLossNodes {
		t.Errorf("got %d losses in memory, want at most the bound", n)
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	sum, other := map[string]int64{}, audit.Loss{}
	for _, b := range s.batches {
		for _, l := range b.Losses {
			sum[l.Cluster] += l.Count
			if l.Node == OtherNodes {
				other = l
			}
			if l.Cluster == "m2" && l.Node != "node" {
				t.Errorf("got a merged loss of another member: %+v", l)
			}
		}
	}
	if sum["m1"] != nodes || sum["m2"] != 7 || other.Count != nodes-maxLossNodes || !other.To.Equal(now.Add((nodes-1)*time.Millisecond)) {
		t.Errorf("got losses %v, merged %+v", sum, other)
	}
	if n := testutil.ToFloat64(a.metrics.merged.WithLabelValues("m1")); n != nodes-maxLossNodes {
		t.Errorf("got %v merged losses in the metric", n)
	}
}
