package federation

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/nodereport"
)

// reported returns NodeReports of a member m1 whose nodes all have the policies.
func reported(tb testing.TB, nodes, policies int) *NodeReports {
	tb.Helper()
	n := &NodeReports{
		reports: &fleet[nodereport.Report]{members: map[string]*member[nodereport.Report]{}},
		nodes:   &fleet[string]{members: map[string]*member[string]{}},
		clock:   clock.RealClock{},
	}
	has := map[string]nodereport.Policy{}
	for i := range policies {
		has[fmt.Sprintf("acp-%d", i)] = nodereport.Policy{Revision: "r1", Realized: true}
	}
	reports := &member[nodereport.Report]{alive: true, watch: NewWatch[nodereport.Report](nil, "reports", logr.Discard(), nil, func(string) {})}
	names := &member[string]{alive: true, watch: NewWatch[string](nil, "nodes", logr.Discard(), nil, func(string) {})}
	for i := range nodes {
		name := fmt.Sprintf("n%03d", i)
		reports.watch.set(name, item[nodereport.Report]{value: nodereport.Report{Node: name, Time: time.Now(), Healthy: true, Policies: has}, version: "1"})
		names.watch.set(name, item[string]{value: name, version: "1"})
	}
	reports.watch.synced, names.watch.synced = true, true
	n.reports.members["m1"], n.nodes.members["m1"] = reports, names
	return n
}

// TestViewIsCurrent checks that a view is used again only while the reports and the nodes are the same.
func TestViewIsCurrent(t *testing.T) {
	n := reported(t, 2, 1)
	reports, nodes := n.reports.members["m1"], n.nodes.members["m1"]
	last := n.In("m1")
	if len(last.Nodes) != 2 || len(last.Reports) != 2 || n.In("m1") != last {
		t.Fatalf("%+v is not used again", last)
	}
	later := time.Now().Add(time.Minute)
	for _, step := range []struct {
		reason         string
		change         func()
		nodes, reports int
	}{
		{"a report has a later time", func() {
			reports.watch.set("n000", item[nodereport.Report]{value: nodereport.Report{Node: "n000", Time: later, Healthy: true}, version: "2"})
		}, 2, 2},
		{"a report was deleted", func() { reports.watch.unset("n001") }, 2, 1},
		{"a node appeared", func() { nodes.watch.set("n002", item[string]{value: "n002", version: "1"}) }, 3, 1},
		{"a node was deleted", func() { nodes.watch.unset("n001") }, 2, 1},
		{"the nodes are read with another token", func() {
			other := &member[string]{alive: true, watch: NewWatch[string](nil, "nodes", logr.Discard(), nil, func(string) {})}
			other.watch.synced = true
			other.watch.set("n000", item[string]{value: "n000", version: "1"})
			n.nodes.members["m1"] = other
		}, 1, 1},
	} {
		step.change()
		v := n.In("m1")
		if v == last || len(v.Nodes) != step.nodes || len(v.Reports) != step.reports {
			t.Errorf("%s: %+v", step.reason, v)
		}
		last = v
	}
	if !last.Reports["n000"].Time.Equal(later) {
		t.Errorf("the report is of %s", last.Reports["n000"].Time)
	}
	reports.alive, reports.why = false, errNotProbed
	if v := n.In("m1"); v != nil {
		t.Errorf("the member cannot be read, and its nodes are %+v", v)
	}
}

// TestMembersWithoutReportsTriggerNothing checks that the units are triggered when the first report of a member is read and when the last
// one is lost, but not while there is none.
func TestMembersWithoutReportsTriggerNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := reported(t, 0, 0)
		reports := n.reports.members["m1"]
		changes := 0
		n.changed = func(string, []string) { changes++ }
		n.dirty, n.trigger = map[string]bool{}, make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go n.notifyChanged(ctx)
		for _, step := range []struct {
			reason string
			change func()
			want   int
		}{
			{"the member was listed", func() {}, 0},
			{"a report was written", func() {
				reports.watch.set("n0", item[nodereport.Report]{value: nodereport.Report{Node: "n0", Time: time.Now(), Healthy: true}, version: "1"})
				n.nodes.members["m1"].watch.set("n0", item[string]{value: "n0", version: "1"})
			}, 1},
			{"something else changed", func() {}, 2},
			{"the member was lost", func() { reports.alive, reports.why = false, errNotProbed }, 3},
			{"it is still lost", func() {}, 3},
			{"it was read for a moment, in which its view was used", func() {
				reports.alive = true
				if n.In("m1") == nil {
					t.Error("there is no view of the reports")
				}
				reports.alive = false
			}, 4},
		} {
			step.change()
			n.markChanged("m1")
			time.Sleep(2 * collectTime)
			synctest.Wait()
			if changes != step.want {
				t.Errorf("%s: the units were triggered %d times, want %d", step.reason, changes, step.want)
			}
		}
		cancel()
		synctest.Wait()
	})
}

// BenchmarkNodesOf1kUnits computes on how many of 500 nodes each of 1,000 units is realized, as their reconciles do.
func BenchmarkNodesOf1kUnits(b *testing.B) {
	n := reported(b, 500, 1000)
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		for i := range 1000 {
			if realized, _, _ := n.In("m1").Of(map[string]string{fmt.Sprintf("acp-%d", i): "r1"}, now); realized != 500 {
				b.Fatalf("realized on %d nodes", realized)
			}
		}
	}
}
