package federation

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/backoff"
	"github.com/acp-io/acp/internal/nodereport"
)

// Kinds of the nodes of a member. They are not distributed.
var (
	nodeReport = Kind{Target: nodereport.Kind, TargetResource: nodereport.Resource}
	// ciliumNode is a node on which an agent runs. The agents write it.
	ciliumNode = Kind{
		Target:         schema.GroupVersionKind{Group: "cilium.io", Version: "v2", Kind: "CiliumNode"},
		TargetResource: schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodes"},
	}
)

// staleCheckInterval is the time between two searches for reports that have become too old.
const staleCheckInterval = 15 * time.Second

// collectTime is how long changes that concern all objects of a member are collected.
const collectTime = time.Second

// NodeReports are the reports of acp-node in the members, and the nodes that should report. It is idle until Run.
type NodeReports struct {
	reports *fleet[nodereport.Report]
	nodes   *fleet[string]
	changed func(cluster string, objects []string)
	clock   clock.WithTicker

	views sync.Map // of memberView by member
	// returned contains the members of which In returned a view since pass last looked.
	returned sync.Map

	mu sync.Mutex
	// last contains what was last said about each node, by member and node.
	last map[string]map[string]nodereport.Report
	// dirty are the members about which everything has to be looked at again.
	dirty   map[string]bool
	trigger chan struct{}
	// known are the nodes by member.
	known map[string]map[string]bool
	// usable contains which of these reports were usable when they were last looked at.
	usable map[string]map[string]bool
}

// NewNodeReports returns NodeReports. The config needs no Kind, Revision and Changed. changed is called with the names of the
// objects about which the reports of a member say something else; nil means all.
func NewNodeReports(config FleetConfig, c clock.WithTicker, changed func(cluster string, objects []string)) (*NodeReports, error) {
	n := &NodeReports{changed: changed, clock: c, last: map[string]map[string]nodereport.Report{}, usable: map[string]map[string]bool{},
		dirty: map[string]bool{}, known: map[string]map[string]bool{}, trigger: make(chan struct{}, 1)}
	var err error
	config.Kind, config.Changed = nodeReport, n.reportChanged
	if n.reports, err = newFleet(config, func(u *unstructured.Unstructured) (nodereport.Report, error) { return nodereport.Parse(u) }); err != nil {
		return nil, err
	}
	config.Kind, config.Changed = ciliumNode, n.nodeChanged
	n.nodes, err = newFleet(config, func(u *unstructured.Unstructured) (string, error) { return u.GetName(), nil })
	return n, err
}

// Run follows the members until the context ends.
func (n *NodeReports) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { _ = n.reports.Run(ctx) }) // it ends with the context and returns no other error
	running.Go(func() { _ = n.nodes.Run(ctx) })
	running.Go(func() { n.notifyChanged(ctx) })
	running.Wait()
	return nil
}

// notifyChanged calls changed for the members that were marked as changed, for all marks within a second at once, because there is an event for
// each node when a member is listed. It skips a member of which In returned no view since the last call, and returns none now: most members do
// not run acp-node.
func (n *NodeReports) notifyChanged(ctx context.Context) {
	tick := n.clock.NewTicker(staleCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.trigger:
			if !backoff.Pause(ctx, clock.RealClock{}, collectTime) {
				return
			}
		case <-tick.C():
			n.markChanged(n.withChangedUsability()...)
		}
		n.mu.Lock()
		clusters := slices.Sorted(maps.Keys(n.dirty))
		clear(n.dirty)
		n.mu.Unlock()
		for _, cluster := range clusters {
			_, before := n.returned.LoadAndDelete(cluster)
			if n.In(cluster) != nil || before {
				n.changed(cluster, nil)
			}
		}
	}
}

// markChanged marks members in which the state of every object may have changed.
func (n *NodeReports) markChanged(clusters ...string) {
	if len(clusters) == 0 {
		return
	}
	n.mu.Lock()
	for _, cluster := range clusters {
		n.dirty[cluster] = true
	}
	n.mu.Unlock()
	select {
	case n.trigger <- struct{}{}:
	default:
	}
}

// nodeChanged handles the event that a node appeared, changed or was removed. Agents change their nodes often.
func (n *NodeReports) nodeChanged(cluster, node string) {
	if cluster == "" {
		return
	}
	exists := false
	if _, m := n.nodes.observe(cluster); m != nil && node != "" {
		_, exists = m.watch.Get(node)
	}
	n.mu.Lock()
	if n.known[cluster] == nil {
		n.known[cluster] = map[string]bool{}
	}
	was := n.known[cluster][node]
	if exists {
		n.known[cluster][node] = true
	} else {
		delete(n.known[cluster], node)
	}
	n.mu.Unlock()
	if node == "" || was != exists {
		n.markChanged(cluster)
	}
}

// reportChanged handles the event that a report was written, or that a member was lost or found.
func (n *NodeReports) reportChanged(cluster, node string) {
	switch {
	case cluster == "":
		return
	case node == "":
		n.markChanged(cluster)
		return
	}
	now, found := n.report(cluster, node)
	n.mu.Lock()
	before, had := n.last[cluster][node]
	was := n.usable[cluster][node]
	if n.last[cluster] == nil {
		n.last[cluster], n.usable[cluster] = map[string]nodereport.Report{}, map[string]bool{}
	}
	is := found && now.Usable(n.clock.Now())
	if found {
		n.last[cluster][node], n.usable[cluster][node] = now, is
	} else {
		delete(n.last[cluster], node)
		delete(n.usable[cluster], node)
	}
	n.mu.Unlock()
	if had != found || was != is || before.Omitted != now.Omitted {
		n.markChanged(cluster)
		return
	}
	if names := changedPolicies(before.Policies, now.Policies); len(names) > 0 {
		n.changed(cluster, names)
	}
}

// changedPolicies returns the names of the policies that differ between two reports, sorted.
func changedPolicies(a, b map[string]nodereport.Policy) []string {
	out := map[string]bool{}
	for name, p := range a {
		if q, has := b[name]; !has || p != q {
			out[name] = true
		}
	}
	for name := range b {
		if _, has := a[name]; !has {
			out[name] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

func (n *NodeReports) report(cluster, node string) (nodereport.Report, bool) {
	if _, m := n.reports.observe(cluster); m != nil {
		return m.watch.Get(node)
	}
	return nodereport.Report{}, false
}

// withChangedUsability returns the members with a report that became too old, or usable, since the last call, and records that.
func (n *NodeReports) withChangedUsability() []string {
	now := n.clock.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []string
	for cluster, reports := range n.last {
		for node := range reports {
			r := reports[node]
			if is := r.Usable(now); is != n.usable[cluster][node] {
				n.usable[cluster][node] = is
				out = append(out, cluster)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// NodeView is what is known about the nodes of a member at one time. It must not be changed.
type NodeView struct {
	// Nodes are the names of the nodes that should report, sorted.
	Nodes []string
	// Reports are the reports by node. A node without a report is unknown.
	Reports map[string]*nodereport.Report
}

// memberView is a NodeView with the state that it was made of.
type memberView struct {
	reports                      *member[nodereport.Report]
	nodes                        *member[string]
	reportsVersion, nodesVersion uint64
	view                         *NodeView
}

// isSame reports whether two views were made of the same state.
func (v memberView) isSame(other memberView) bool {
	other.view = v.view
	return v == other
}

// In returns what is known about the nodes of a member, or nil if no acp-node is installed there, or if its reports or its
// nodes cannot be read.
func (n *NodeReports) In(cluster string) *NodeView {
	o, m := n.reports.observe(cluster)
	if m == nil || !o.Reachable {
		return nil
	}
	nodes, watched := n.nodes.present(cluster)
	if !nodes.Reachable {
		return nil
	}
	// The versions are read before the objects, so that a change in between makes the view old.
	now := memberView{reports: m, nodes: watched, reportsVersion: m.watch.version()}
	if watched != nil {
		now.nodesVersion = watched.watch.version()
	}
	// Each of a member's many units is decided by the same view.
	if had, ok := n.views.Load(cluster); ok && had.(memberView).isSame(now) {
		now.view = had.(memberView).view
	} else {
		now.view = newNodeView(m, watched)
		n.views.Store(cluster, now)
	}
	if now.view != nil {
		n.returned.Store(cluster, true)
	}
	return now.view
}

// newNodeView returns the view of a member's reports and nodes, or nil if there are none. The nodes are nil if the member
// has no such kind, so that only the nodes that report are known.
func newNodeView(reports *member[nodereport.Report], nodes *member[string]) *NodeView {
	v := &NodeView{Reports: map[string]*nodereport.Report{}}
	reports.watch.each(func(r nodereport.Report) { v.Reports[r.Node] = &r })
	if nodes == nil {
		v.Nodes = slices.Collect(maps.Keys(v.Reports))
	} else {
		v.Nodes = nodes.watch.List()
	}
	slices.Sort(v.Nodes)
	if len(v.Nodes) == 0 {
		return nil
	}
	return v
}

// Agents returns the number of nodes with a recent report of a healthy agent, and the names of the nodes whose recent report
// says that the agent is not healthy, and of those without a recent report.
func (v *NodeView) Agents(now time.Time) (reporting int, unhealthy, silent []string) {
	for _, node := range v.Nodes {
		switch r := v.Reports[node]; {
		case r.Usable(now):
			reporting++
		case r.Recent(now):
			unhealthy = append(unhealthy, node)
		default:
			silent = append(silent, node)
		}
	}
	return reporting, unhealthy, silent
}

// Of counts the nodes on which every object is Realized in the revision that it must have, and returns the names of the others: lagging
// are those on which an object is Lagging and none is Unknown.
func (v *NodeView) Of(wanted map[string]string, now time.Time) (realized int, lagging, unknown []string) {
	for _, node := range v.Nodes {
		worst := nodereport.Realized
		for name, revision := range wanted {
			worst = min(worst, v.Reports[node].StateOf(name, revision, now))
		}
		switch worst {
		case nodereport.Realized:
			realized++
		case nodereport.Lagging:
			lagging = append(lagging, node)
		default:
			unknown = append(unknown, node)
		}
	}
	return realized, lagging, unknown
}
