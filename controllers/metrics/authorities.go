package metrics

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/federation"
)

// Authorities exports when the certificate authorities end by which the adapter verifies the API servers of the members. The registered members
// are read at each scrape, by every replica.
type Authorities struct {
	Clusters func() []federation.Cluster
}

var authorityDesc = prometheus.NewDesc(
	"acp_member_authority_end_timestamp_seconds",
	"When the last certificate authority ends by which the API server of a member is verified; absent if the registration contains none.",
	[]string{"cluster"},
	nil,
)

// Register registers the metric, unless reg is nil.
func (a Authorities) Register(reg prometheus.Registerer) error { return register(reg, a) }

// Describe implements prometheus.Collector.
func (a Authorities) Describe(ch chan<- *prometheus.Desc) { ch <- authorityDesc }

// Collect implements prometheus.Collector.
func (a Authorities) Collect(ch chan<- prometheus.Metric) {
	for _, c := range a.Clusters() {
		if end := lastEnd(c.CABundle); !end.IsZero() {
			ch <- prometheus.MustNewConstMetric(authorityDesc, prometheus.GaugeValue, float64(end.Unix()), c.Name)
		}
	}
}

// lastEnd returns the end of the certificate in a PEM bundle that ends last, or zero if there is none. Blocks that cannot be parsed are skipped, as by
// the client that verifies with the bundle.
func lastEnd(bundle []byte) (last time.Time) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.NotAfter.After(last) {
			last = c.NotAfter
		}
	}
	return last
}
