package notify

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	descQueued  = prometheus.NewDesc("acp_notifications_queued", "Notifications on their way, digests that wait for the morning included.", []string{"channel"}, nil)
	descOverdue = prometheus.NewDesc("acp_notifications_overdue_seconds", "How long the oldest of them has been due.", []string{"channel"}, nil)
	descDead    = prometheus.NewDesc("acp_notifications_dead", "Notifications that were given up; their reasons are in the log and in the table notifications.", []string{"channel"}, nil)
	descChanges = prometheus.NewDesc("acp_notifications_unrouted", "Changes of which it is not known yet who is told.", nil, nil)
)

// countPatience is less than Prometheus waits for a scrape.
const countPatience = 5 * time.Second

// Collector tells Prometheus what waits and what was given up. All fields are required.
type Collector struct {
	Store interface {
		Waiting(ctx context.Context) (channels []Waiting, changes int64, err error)
	}
	Now func() time.Time
	Log *slog.Logger
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descQueued, descOverdue, descDead, descChanges} {
		out <- d
	}
}

// Collect implements prometheus.Collector. When the store is away these metrics are absent, and the others are not.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countPatience)
	defer cancel()
	channels, changes, err := c.Store.Waiting(ctx)
	if err != nil {
		c.Log.Warn("notifications could not be counted", "error", err)
		return
	}
	out <- prometheus.MustNewConstMetric(descChanges, prometheus.GaugeValue, float64(changes))
	for _, x := range channels {
		overdue := 0.0
		if !x.Oldest.IsZero() {
			overdue = max(0, c.Now().Sub(x.Oldest).Seconds())
		}
		for d, v := range map[*prometheus.Desc]float64{descQueued: float64(x.Queued), descOverdue: overdue, descDead: float64(x.Dead)} {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, string(x.Channel))
		}
	}
}
