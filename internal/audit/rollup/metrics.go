package rollup

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	pending    prometheus.Gauge
	batches    prometheus.Counter
	failures   prometheus.Counter
	notHolder  prometheus.Counter
	dropped    *prometheus.CounterVec
	rawDropped *prometheus.CounterVec
	merged     *prometheus.CounterVec
	lost       *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		pending:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "acp_flow_store_pending_rollups", Help: "Roll-ups in memory that are not stored yet."}),
		batches:  prometheus.NewCounter(prometheus.CounterOpts{Name: "acp_flow_store_batches_total", Help: "Batches stored."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "acp_flow_store_failures_total", Help: "Attempts to store a batch that failed."}),
		notHolder: prometheus.NewCounter(
			prometheus.CounterOpts{
				Name: "acp_flow_store_foreign_total",
				Help: "Batches that were discarded because another collector had taken over their source and counts its connections.",
			},
		),
		rawDropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_raw_dropped_total",
			Help: "Connections that were counted but not stored individually, because a batch had too many or they were too old."}, []string{"cluster"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "acp_flow_store_dropped_total",
			Help: "Connections that were not counted because the store could not be written and the member's share of the memory for pending " +
				"roll-ups was full.",
		}, []string{"cluster"}),
		merged: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "acp_flow_losses_joined_total",
			Help: "Losses that were stored without their node, because the member named more than 1000 nodes with losses in one batch. Their counts are exact.",
		}, []string{"cluster"}),
		lost: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "acp_flows_lost_total", Help: "Events known to be lost, by member and reason."},
			[]string{"cluster", "reason"},
		),
	}
	reg.MustRegister(m.pending, m.batches, m.failures, m.notHolder, m.dropped, m.rawDropped, m.merged, m.lost)
	return m
}
