package spool

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	batches, bytes         prometheus.Gauge
	full, damaged, foreign prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		batches: prometheus.NewGauge(prometheus.GaugeOpts{Name: "acp_flow_spool_batches", Help: "Batches on disk that the flow store has not taken yet."}),
		bytes:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "acp_flow_spool_bytes", Help: "Size of those batches."}),
		full: prometheus.NewCounter(prometheus.CounterOpts{Name: "acp_flow_spool_refused_total",
			Help: "Attempts to keep a batch that failed because the spool or its disk is full: counting goes on in memory, and what finds no room there is a loss."}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{Name: "acp_flow_spool_damaged_total", Help: "Batches that could not be read back; what they held is recorded as lost."}),
		foreign: prometheus.NewCounter(prometheus.CounterOpts{Name: "acp_flow_spool_foreign_total", Help: "Batches that were forgotten because another collector had taken over their source, which counts them."}),
	}
	reg.MustRegister(m.batches, m.bytes, m.full, m.damaged, m.foreign)
	return m
}

func (m *metrics) set(batches int, bytes int64) {
	m.batches.Set(float64(batches))
	m.bytes.Set(float64(bytes))
}
