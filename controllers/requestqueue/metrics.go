package requestqueue

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var waitingGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_requests_waiting",
	Help: "Background requests that are not in the queue of their controller (workqueue_depth) yet."}, []string{"controller"})

func init() { metrics.Registry.MustRegister(waitingGauge) }
