package direct

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of the direct engine.
type Metrics struct {
	writes   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	queue    *prometheus.GaugeVec
}

// NewMetrics returns the metrics and registers them, unless the registerer is nil.
func NewMetrics(to prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_engine_direct_writes_total",
			Help: "Changes that the direct engine made in a member, or failed to make, by kind of object."}, []string{"kind", "cluster", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "acp_engine_direct_write_seconds",
			Help: "Duration of a change that the direct engine made in a member.", Buckets: prometheus.ExponentialBuckets(0.002, 2, 12)},
			[]string{"kind", "cluster"}),
		queue: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_engine_direct_queued",
			Help: "Objects that the direct engine has yet to compare with a member."}, []string{"kind", "cluster"}),
	}
	if to == nil {
		return m, nil
	}
	if err := errors.Join(to.Register(m.writes), to.Register(m.duration), to.Register(m.queue)); err != nil {
		return nil, fmt.Errorf("register the metrics of the direct engine: %w", err)
	}
	return m, nil
}

func (m *Metrics) wrote(of, cluster string, took time.Duration, err error) {
	outcome := "made"
	if err != nil {
		outcome = "failed"
	}
	m.writes.WithLabelValues(of, cluster, outcome).Inc()
	m.duration.WithLabelValues(of, cluster).Observe(took.Seconds())
}

func (m *Metrics) queued(of, cluster string, n int) {
	m.queue.WithLabelValues(of, cluster).Set(float64(n))
}

// forget removes the series of a member that does not use the engine any more.
func (m *Metrics) forget(of, cluster string) {
	labels := prometheus.Labels{"kind": of, "cluster": cluster}
	m.writes.DeletePartialMatch(labels)
	m.duration.DeletePartialMatch(labels)
	m.queue.DeletePartialMatch(labels)
}
