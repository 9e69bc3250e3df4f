package memberwriter

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of direct writes.
type Metrics struct{ writes, failures *prometheus.CounterVec }

// NewMetrics returns the metrics and registers them, unless the registerer is nil.
func NewMetrics(to prometheus.Registerer) (*Metrics, error) {
	labels := []string{"cluster"}
	m := &Metrics{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_direct_writes_total",
			Help: "Objects that the adapter wrote into a member itself, because they were urgent and KubeFed was behind."}, labels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_direct_failures_total",
			Help: "Urgent objects that the adapter could not write into a member itself and left to KubeFed."}, labels),
	}
	if to == nil {
		return m, nil
	}
	if err := errors.Join(to.Register(m.writes), to.Register(m.failures)); err != nil {
		return nil, fmt.Errorf("register the metrics of direct writes: %w", err)
	}
	return m, nil
}
