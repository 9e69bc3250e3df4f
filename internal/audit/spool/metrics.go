package spool

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	batches, bytes               prometheus.Gauge
	rejected, damaged, notHolder prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		batches: prometheus.NewGauge(prometheus.GaugeOpts{Name: "acp_flow_spool_batches", Help: "Batches on disk that are not in the flow store yet."}),
		bytes: prometheus.NewGauge(
			prometheus.GaugeOpts{Name: "acp_flow_spool_bytes", Help: "Size of the batches on disk that are not in the flow store yet."},
		),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "acp_flow_spool_refused_total",
			Help: "Attempts to keep a batch that failed because the spool or its disk is full: counting continues in memory, " +
				"and connections that do not fit there are recorded as lost.",
		}),
		damaged: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "acp_flow_spool_damaged_total", Help: "Batches that could not be read back; their connections are recorded as lost."},
		),
		notHolder: prometheus.NewCounter(
			prometheus.CounterOpts{
				Name: "acp_flow_spool_foreign_total",
				Help: "Batches that were discarded because another collector had taken over their source and counts its connections.",
			},
		),
	}
	reg.MustRegister(m.batches, m.bytes, m.rejected, m.damaged, m.notHolder)
	return m
}

func (m *metrics) set(batches int, bytes int64) {
	m.batches.Set(float64(batches))
	m.bytes.Set(float64(bytes))
}
