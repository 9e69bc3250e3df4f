package pace

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	waitingGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_bulk_waiting",
		Help: "Units that wait to be written until KubeFed owes the members less, by what they are."}, []string{"of"})
	admittedCounter = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_units_admitted_total",
		Help: "Units that were let through to be written for KubeFed, by what they are and by the order of work."}, []string{"of", "order"})
)

func init() { metrics.Registry.MustRegister(waitingGauge, admittedCounter) }

// meter counts for one line.
type meter struct {
	gauge   prometheus.Gauge
	byOrder [Downgrade + 1]prometheus.Counter
}

func newMeter(of string) meter {
	m := meter{gauge: waitingGauge.WithLabelValues(of)}
	for k := Bulk; k <= Downgrade; k++ {
		m.byOrder[k] = admittedCounter.WithLabelValues(of, k.String())
	}
	return m
}

func (m *meter) waiting(n int)      { m.gauge.Set(float64(n)) }
func (m *meter) admitted(kind Kind) { m.byOrder[kind].Inc() }
