package reporter

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/nodereport"
)

// metrics are the metrics of acp-node.
type metrics struct {
	healthy  prometheus.Gauge
	policies *prometheus.GaugeVec
	writes   *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		healthy: prometheus.NewGauge(prometheus.GaugeOpts{Name: "acp_node_agent_healthy",
			Help: "Whether the node's Cilium agent answers and is healthy: 1 or 0."}),
		policies: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_node_policies",
			Help: "ACP's policies in the node's Cilium agent by state: realized, lagging or unknown."}, []string{"state"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_node_report_writes_total",
			Help: "Reports that were written to the member's API server, by result: ok or error."}, []string{"result"}),
	}
}

// Describe and Collect make the Reporter a prometheus.Collector.
func (r *Reporter) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range r.metrics.all() {
		c.Describe(ch)
	}
}

// Collect sends the metrics.
func (r *Reporter) Collect(ch chan<- prometheus.Metric) {
	for _, c := range r.metrics.all() {
		c.Collect(ch)
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.healthy, m.policies, m.writes}
}

func (m *metrics) observe(r *nodereport.Report) {
	n := map[string]float64{"realized": 0, "lagging": 0, "unknown": 0}
	for _, p := range r.Policies {
		switch {
		case !r.Healthy || p.Revision == "":
			n["unknown"]++
		case p.Realized:
			n["realized"]++
		default:
			n["lagging"]++
		}
	}
	for state, value := range n {
		m.policies.WithLabelValues(state).Set(value)
	}
	healthy := 0.0
	if r.Healthy {
		healthy = 1
	}
	m.healthy.Set(healthy)
}

func (m *metrics) wrote(err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.writes.WithLabelValues(result).Inc()
}
