package rollup

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	pending    prometheus.Gauge
	batches    prometheus.Counter
	failures   prometheus.Counter
	foreign    prometheus.Counter
	dropped    *prometheus.CounterVec
	rawDropped *prometheus.CounterVec
	joined     *prometheus.CounterVec
	lost       *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		pending:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "acp_flow_store_pending_rollups", Help: "Roll-ups in memory that are not stored yet."}),
		batches:  prometheus.NewCounter(prometheus.CounterOpts{Name: "acp_flow_store_batches_total", Help: "Batches stored."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "acp_flow_store_failures_total", Help: "Attempts to store a batch that failed."}),
		foreign:  prometheus.NewCounter(prometheus.CounterOpts{Name: "acp_flow_store_foreign_total", Help: "Batches that were forgotten because another collector had taken over their source, which counts them."}),
		rawDropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_raw_dropped_total",
			Help: "Connections that were counted but not kept one by one, because there were too many at a time."}, []string{"cluster"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_store_dropped_total",
			Help: "Connections that were not counted because the store could not be written and the member's part of the memory for waiting roll-ups was full."}, []string{"cluster"}),
		joined: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flow_losses_joined_total",
			Help: "Losses that were stored without their node, because the member named more than 1000 nodes with losses in one batch. Their counts are exact."}, []string{"cluster"}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_flows_lost_total", Help: "Events known to be lost, by where."}, []string{"cluster", "reason"}),
	}
	reg.MustRegister(m.pending, m.batches, m.failures, m.foreign, m.dropped, m.rawDropped, m.joined, m.lost)
	return m
}
