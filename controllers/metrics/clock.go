package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// RegisterClock registers the gauge of the clock difference between this machine and the host, unless reg or behind is
// nil.
func RegisterClock(reg prometheus.Registerer, behind func() time.Duration) error {
	if behind == nil {
		behind = func() time.Duration { return 0 }
	}
	return register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "acp_clock_behind_seconds",
		Help: "How far this machine's clock is behind that of the host's API server, whose time is taken instead."},
		func() float64 { return behind().Seconds() }))
}
