package hubble

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the Prometheus metrics of the followers of all members.
type Metrics struct {
	flows         *prometheus.CounterVec
	skipped       *prometheus.CounterVec
	repeated      *prometheus.CounterVec
	late          *prometheus.CounterVec
	damaged       *prometheus.CounterVec
	disagreements *prometheus.CounterVec
	byPrevious    *prometheus.CounterVec
	byMember      *prometheus.CounterVec
	unknown       *prometheus.CounterVec
	connected     *prometheus.GaugeVec
	position      *prometheus.GaugeVec
}

// NewMetrics creates and registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		flows: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_total",
			Help: "Connections counted, by the decision of the policies and the verdict of the dataplane."}, []string{"cluster", "decision", "verdict"}),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "acp_flow_events_skipped_total",
			Help: "Events that are not counted as a connection, by reason. \"l7\": forwarded requests and other proxy reports. \"forgotten\": " +
				"traffic of a connection that may have been counted before a restart, or before its entry was dropped.",
		},
			[]string{"cluster", "reason"}),
		repeated: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_events_repeated_total",
			Help: "Events that were delivered again after a reconnect or a restart and not counted again."}, []string{"cluster"}),
		late: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_decided_late_total",
			Help: "Connections so old that the policies of their time are no longer kept: they are decided with the oldest that are."}, []string{"cluster"}),
		damaged: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_files_damaged_total",
			Help: "Rotated files of an exporter that could not be read to their end; the number of lost flows is unknown."}, []string{"cluster"}),
		disagreements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "acp_flow_disagreements_total",
			Help: "Connections whose dataplane verdict differs from the decision of the policies, current and of the last 35 seconds. " +
				"A lasting increase is an alarm.",
		},
			[]string{"cluster", "decision", "verdict"}),
		byPrevious: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_behind_change_total",
			Help: "Connections decided by policies of the last 35 seconds, which the dataplane still applied."}, []string{"cluster"}),
		byMember: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_decided_by_member_total",
			Help: "Connections decided by the policies that the member had, which differed from those of the host."}, []string{"cluster"}),
		unknown: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "acp_flows_member_revision_unknown_total",
			Help: "Connections for which it is unknown which policies the member had. They are decided by those of the host, which may be wrong.",
		}, []string{"cluster"}),
		connected: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "acp_flow_source_connected", Help: "1 while the member's flows are received."},
			[]string{"cluster"},
		),
		position: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "acp_flow_source_position_seconds", Help: "Time of the newest ingested flow of the member."},
			[]string{"cluster"},
		),
	}
	reg.MustRegister(m.flows, m.skipped, m.repeated, m.late, m.damaged, m.disagreements, m.byPrevious, m.byMember, m.unknown, m.connected, m.position)
	return m
}

// counters are the metrics of one member, looked up once instead of for each event.
type counters struct {
	skipped        [skipCount]prometheus.Counter
	repeated, late prometheus.Counter
	damaged        prometheus.Counter
}

func (m *Metrics) forMember(member string) *counters {
	c := &counters{repeated: m.repeated.WithLabelValues(member), late: m.late.WithLabelValues(member), damaged: m.damaged.WithLabelValues(member)}
	for why := skipNone + 1; why < skipCount; why++ {
		c.skipped[why] = m.skipped.WithLabelValues(member, skipNames[why])
	}
	return c
}

// Forget removes the gauges of a member that is not followed any more. Its counters stay, because a counter that begins again looks like
// a restart.
func (m *Metrics) Forget(member string) {
	m.connected.DeleteLabelValues(member)
	m.position.DeleteLabelValues(member)
}
