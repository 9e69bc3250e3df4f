package notify

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	descQueued = prometheus.NewDesc(
		"acp_notifications_queued",
		"Notifications that wait to be sent, including those that wait for a digest.",
		[]string{"channel"},
		nil,
	)
	descOverdue = prometheus.NewDesc(
		"acp_notifications_overdue_seconds",
		"Time for which the oldest queued notification has been due.",
		[]string{"channel"},
		nil,
	)
	descDead = prometheus.NewDesc(
		"acp_notifications_dead",
		"Notifications that failed permanently; the reasons are in the log and in the table notifications.",
		[]string{"channel"},
		nil,
	)
	descChanges = prometheus.NewDesc("acp_notifications_unrouted", "Changes whose recipients are not determined yet.", nil, nil)
)

// collectTimeout bounds the query of a scrape. It is shorter than Prometheus' own timeout.
const collectTimeout = 5 * time.Second

// Collector exports the sizes of the notification queues to Prometheus. All fields are required.
type Collector struct {
	Store interface {
		QueueStats(ctx context.Context) (channels []QueueStats, changes int64, err error)
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

// Collect implements prometheus.Collector. If the store is unavailable, only these metrics are absent.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	channels, changes, err := c.Store.QueueStats(ctx)
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
