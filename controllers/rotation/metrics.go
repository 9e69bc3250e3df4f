package rotation

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/tokens"
)

// Metrics are the metrics of the tokens.
type Metrics struct {
	until              *prometheus.GaugeVec
	renewals, failures *prometheus.CounterVec

	mu    sync.Mutex
	known map[string]bool
}

// NewMetrics returns the metrics and registers them, unless the registerer is nil.
func NewMetrics(to prometheus.Registerer) (*Metrics, error) {
	labels := []string{"cluster", "account"}
	m := &Metrics{
		until: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "acp_member_token_end_timestamp_seconds",
			Help: "When the token of an account in a member expires; absent if it does not expire."}, labels),
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acp_member_token_renewals_total", Help: "Tokens that were renewed."}, labels),
		failures: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "acp_member_token_failures_total", Help: "Failed attempts to renew a token or to notify KubeFed of it."},
			labels,
		),
		known: map[string]bool{},
	}
	if to == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.until, m.renewals, m.failures} {
		if err := to.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of the tokens: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) ends(cluster, account string, s tokens.Span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[cluster] = true
	if !s.Known() {
		m.until.DeleteLabelValues(cluster, account)
		return
	}
	m.until.WithLabelValues(cluster, account).Set(float64(s.Until.Unix()))
}

// keep removes the metrics of members that are no longer registered.
func (m *Metrics) keep(clusters []federation.Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	here := map[string]bool{}
	for _, c := range clusters {
		here[c.Name] = true
	}
	for name := range m.known {
		if !here[name] {
			for _, v := range []interface {
				DeletePartialMatch(prometheus.Labels) int
			}{m.until, m.renewals, m.failures} {
				v.DeletePartialMatch(prometheus.Labels{"cluster": name})
			}
			delete(m.known, name)
		}
	}
}
