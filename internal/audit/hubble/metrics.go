package hubble

import "github.com/prometheus/client_golang/prometheus"

// Metrics are shared by the followers of all members.
type Metrics struct {
	flows         *prometheus.CounterVec
	skipped       *prometheus.CounterVec
	repeated      *prometheus.CounterVec
	late          *prometheus.CounterVec
	damaged       *prometheus.CounterVec
	disagreements *prometheus.CounterVec
	behind        *prometheus.CounterVec
	lagging       *prometheus.CounterVec
	unknown       *prometheus.CounterVec
	connected     *prometheus.GaugeVec
	position      *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		flows: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_total",
			Help: "Connections counted, by the decision of the policies and the verdict of the dataplane."}, []string{"cluster", "decision", "verdict"}),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_events_skipped_total",
			Help: "Events that stand for no connection of their own, by why. \"l7\": requests that passed, and what proxies report beside. \"forgotten\": traffic of a connection that may have been counted before a restart, or before its memory was full."},
			[]string{"cluster", "reason"}),
		repeated: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_events_repeated_total",
			Help: "Events that were delivered again after a reconnect or a restart and not counted again."}, []string{"cluster"}),
		late: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_decided_late_total",
			Help: "Connections so old that the policies of their time are no longer kept: they are decided with the oldest that are."}, []string{"cluster"}),
		damaged: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_files_damaged_total",
			Help: "Rotated files of an exporter that could not be read to their end: how many flows are lost is not known."}, []string{"cluster"}),
		disagreements: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_disagreements_total",
			Help: "Connections that the dataplane treated otherwise than the policies say, and also otherwise than they said in the 35 seconds before. What lasts is an alarm."},
			[]string{"cluster", "decision", "verdict"}),
		behind: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_behind_change_total",
			Help: "Connections that the dataplane treated as the policies said up to 35 seconds before: they are decided with those."}, []string{"cluster"}),
		lagging: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_decided_by_member_total",
			Help: "Connections to resources of which the member did not have what the policies ask for: they are decided with what it had."}, []string{"cluster"}),
		unknown: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_member_revision_unknown_total",
			Help: "Connections to resources of which nobody knows what the member had: they are decided with the host's policies, which may be wrong."}, []string{"cluster"}),
		connected: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_flow_source_connected", Help: "1 while the member's flows are received."}, []string{"cluster"}),
		position:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_flow_source_position_seconds", Help: "Time up to which the member's flows were taken in."}, []string{"cluster"}),
	}
	reg.MustRegister(m.flows, m.skipped, m.repeated, m.late, m.damaged, m.disagreements, m.behind, m.lagging, m.unknown, m.connected, m.position)
	return m
}

// counters are those of one member, found once and not for every event.
type counters struct {
	skipped        [skips]prometheus.Counter
	repeated, late prometheus.Counter
	damaged        prometheus.Counter
}

func (m *Metrics) of(member string) *counters {
	c := &counters{repeated: m.repeated.WithLabelValues(member), late: m.late.WithLabelValues(member), damaged: m.damaged.WithLabelValues(member)}
	for why := skipNone + 1; why < skips; why++ {
		c.skipped[why] = m.skipped.WithLabelValues(member, skipNames[why])
	}
	return c
}
