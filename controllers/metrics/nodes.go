package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
)

// Nodes exports what acp-node reports about the nodes of the members.
type Nodes struct {
	// Clusters are the registered members, In what is known about the nodes of one, and Reports the last reports about units.
	Clusters func() []federation.Cluster
	In       func(cluster string) *federation.NodeView
	Reports  *statuscache.Cache
	Now      func() time.Time
}

var (
	nodesDesc = prometheus.NewDesc(
		"acp_nodes",
		"Nodes of the members that run acp-node, by what is known about them: reporting or unknown.",
		[]string{"cluster", "state"},
		nil,
	)
	unitNodesDesc = prometheus.NewDesc(
		"acp_unit_nodes",
		"Policies of all nodes of the members that run acp-node, each counted once for each node: realized, lagging or unknown.",
		[]string{"state"},
		nil,
	)
)

// Register registers the metrics, unless reg is nil.
func (n Nodes) Register(reg prometheus.Registerer) error { return register(reg, n) }

// Describe makes Nodes a prometheus.Collector.
func (n Nodes) Describe(ch chan<- *prometheus.Desc) {
	ch <- nodesDesc
	ch <- unitNodesDesc
}

// Collect sends the metrics.
func (n Nodes) Collect(ch chan<- prometheus.Metric) {
	now := n.Now()
	for _, c := range n.Clusters() {
		view := n.In(c.Name)
		if view == nil {
			continue
		}
		reporting, _, _ := view.Agents(now)
		ch <- prometheus.MustNewConstMetric(nodesDesc, prometheus.GaugeValue, float64(reporting), c.Name, "reporting")
		ch <- prometheus.MustNewConstMetric(nodesDesc, prometheus.GaugeValue, float64(len(view.Nodes)-reporting), c.Name, "unknown")
	}
	var realized, lagging, unknown int
	n.Reports.Each(func(r *statuscache.Report) {
		if r.Nodes != nil {
			realized, lagging, unknown = realized+int(r.Nodes.Realized), lagging+int(r.Nodes.Lagging), unknown+int(r.Nodes.Unknown)
		}
	})
	for state, count := range map[string]int{"realized": realized, "lagging": lagging, "unknown": unknown} {
		ch <- prometheus.MustNewConstMetric(unitNodesDesc, prometheus.GaugeValue, float64(count), state)
	}
}
