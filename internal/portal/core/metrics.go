package core

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
)

// Stats are counts of the content of the stores at the time of a scrape.
type Stats struct {
	Tickets  map[string]int64 // by state
	Outbox   int64            // jobs that are not done
	Oldest   time.Time        // when the oldest of them was due; zero if there is none
	Sessions int64
	Tokens   int64
}

// statsTimeout is the time limit for counting, shorter than the timeout of a scrape.
const statsTimeout = 5 * time.Second

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	refused  *prometheus.CounterVec
}

// newMetrics registers the portal's metrics. With a nil registerer the metrics are not exported.
func newMetrics(reg prometheus.Registerer, hub *Hub, stats func(context.Context) (Stats, error), now func() time.Time, log *slog.Logger) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "acp_portal_requests_total", Help: "Requests by route and status."},
			[]string{"method", "route", "code"},
		),
		duration: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "acp_portal_request_seconds", Help: "How long requests took, event streams excluded.",
				Buckets: []float64{.001, .0025, .005, .01, .025, .05, .075, .1, .25, .5, 1, 2.5, 5, 10}},
			[]string{"method", "route"},
		),
		refused: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "acp_portal_rate_limited_total", Help: "Requests refused because a budget was used up."},
			[]string{"budget"},
		),
	}
	if reg == nil {
		return m
	}
	reg.MustRegister(
		m.requests,
		m.duration,
		m.refused,
		prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "acp_portal_event_streams", Help: "Open event streams."},
			func() float64 { return float64(hub.open()) },
		),
	)
	if stats != nil {
		reg.MustRegister(&statsCollector{stats: stats, now: now, log: log})
	}
	return m
}

func (m *metrics) limited(budget string) { m.refused.WithLabelValues(budget).Inc() }

// measure counts requests by route. Paths contain ids, so that the number of label values would be unbounded.
func (s *Server) measure(c *gin.Context) {
	start := time.Now()
	c.Next()
	route := c.FullPath()
	if route == "" {
		route = "(web)"
	}
	method := c.Request.Method
	if _, known := s.table[method+" "+route]; !known && method != "GET" {
		method = "other" // callers may send any method
	}
	s.metrics.requests.WithLabelValues(method, route, strconv.Itoa(c.Writer.Status())).Inc()
	if route != APIBase+"/events" {
		s.metrics.duration.WithLabelValues(method, route).Observe(time.Since(start).Seconds())
	}
}

var (
	descTickets  = prometheus.NewDesc("acp_portal_tickets", "Tickets by state.", []string{"state"}, nil)
	descOutbox   = prometheus.NewDesc("acp_portal_outbox_jobs", "Jobs of the outbox that are not done.", nil, nil)
	descOldest   = prometheus.NewDesc("acp_portal_outbox_age_seconds", "How long the oldest job of the outbox has been due.", nil, nil)
	descSessions = prometheus.NewDesc("acp_portal_sessions", "Browser sessions that have not ended.", nil, nil)
	descTokens   = prometheus.NewDesc("acp_portal_tokens", "Machine tokens that have not ended.", nil, nil)
)

type statsCollector struct {
	stats func(context.Context) (Stats, error)
	now   func() time.Time
	log   *slog.Logger
}

// Describe implements prometheus.Collector.
func (s *statsCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descTickets, descOutbox, descOldest, descSessions, descTokens} {
		out <- d
	}
}

// Collect implements prometheus.Collector. If the store is not available, only these metrics are absent.
func (s *statsCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	x, err := s.stats(ctx)
	if err != nil {
		s.log.Warn("the metrics about the stores could not be computed", "error", err)
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for state, n := range x.Tickets {
		gauge(descTickets, float64(n), state)
	}
	age := 0.0
	if !x.Oldest.IsZero() {
		age = max(0, s.now().Sub(x.Oldest).Seconds())
	}
	gauge(descOutbox, float64(x.Outbox))
	gauge(descOldest, age)
	gauge(descSessions, float64(x.Sessions))
	gauge(descTokens, float64(x.Tokens))
}
