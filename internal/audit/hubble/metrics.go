package hubble

import "github.com/prometheus/client_golang/prometheus"

// Metrics are shared by the followers of all members.
type Metrics struct {
	flows         *prometheus.CounterVec
	skipped       *prometheus.CounterVec
	duplicates    *prometheus.CounterVec
	disagreements *prometheus.CounterVec
	connected     *prometheus.GaugeVec
	lastFlow      *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		flows: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_total",
			Help: "Connections counted, by the decision of the policies and the verdict of the dataplane."}, []string{"cluster", "decision", "verdict"}),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_events_skipped_total",
			Help: "Events that stand for no connection of their own, by why."}, []string{"cluster", "reason"}),
		duplicates: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_events_repeated_total",
			Help: "Events that were delivered again after a reconnect and not counted again."}, []string{"cluster"}),
		disagreements: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_disagreements_total",
			Help: "Connections that the dataplane treated otherwise than the policies say. Short bursts follow every change; what lasts is an alarm."},
			[]string{"cluster", "decision", "verdict"}),
		connected: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_flow_source_connected", Help: "1 while the member's flows are received."}, []string{"cluster"}),
		lastFlow:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_flow_source_position_seconds", Help: "Time up to which the member's flows were taken in."}, []string{"cluster"}),
	}
	reg.MustRegister(m.flows, m.skipped, m.duplicates, m.disagreements, m.connected, m.lastFlow)
	return m
}
