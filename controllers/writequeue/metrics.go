package writequeue

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	waitingGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_units_waiting",
		Help: "Units that wait to be written, bulk and grants, until KubeFed has fewer objects pending in their members, by kind of object."}, []string{"kind"})
	admittedCounter = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_units_admitted_total",
		Help: "Units that were admitted to be written for KubeFed, by kind of object and priority."}, []string{"kind", "priority"})
	overdueGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "acp_member_push_overdue",
		Help: "Objects that KubeFed has not propagated to a member within the timeout. While there are any, units for other members do not wait for this one.",
	}, []string{"kind", "cluster"})
)

func init() { metrics.Registry.MustRegister(waitingGauge, admittedCounter, overdueGauge) }

// meter updates the metrics of one queue.
type meter struct {
	of      string
	gauge   prometheus.Gauge
	byOrder [Opening + 1]prometheus.Counter
}

func newMeter(of string) meter {
	m := meter{of: of, gauge: waitingGauge.WithLabelValues(of)}
	for k := Bulk; k <= Opening; k++ {
		m.byOrder[k] = admittedCounter.WithLabelValues(of, k.String())
	}
	return m
}

func (m *meter) waiting(n int)          { m.gauge.Set(float64(n)) }
func (m *meter) admitted(kind Priority) { m.byOrder[kind].Inc() }

// overdue reports the objects that are overdue in a member; the series of a member without any is removed.
func (m *meter) overdue(member string, n int) {
	if n == 0 {
		overdueGauge.DeleteLabelValues(m.of, member)
		return
	}
	overdueGauge.WithLabelValues(m.of, member).Set(float64(n))
}
