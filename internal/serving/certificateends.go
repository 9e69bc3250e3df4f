package serving

import (
	"crypto/tls"
	"crypto/x509"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

var certificateEndDesc = prometheus.NewDesc(
	"acp_certificate_end_timestamp_seconds",
	"When the certificate that the program presents at an address ends, by the setting of the address.",
	[]string{"setting"},
	nil,
)

// CertificateEnds is a prometheus.Collector that exports when each certificate ends that a program presents to its clients. It reads the
// certificates that are in use and not their files, so that a renewed file that cannot be loaded does not hide the end. The zero value
// contains no certificate. It is safe for concurrent use.
type CertificateEnds struct {
	mu        sync.Mutex
	presented map[string]PresentedCertificate
}

// PresentedCertificate returns the certificate that is presented to clients now. The hello may be nil.
type PresentedCertificate func(hello *tls.ClientHelloInfo) (*tls.Certificate, error)

// Add adds the certificate that is presented at the address of a setting. It does nothing if c is nil.
func (c *CertificateEnds) Add(setting string, presented PresentedCertificate) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.presented == nil {
		c.presented = map[string]PresentedCertificate{}
	}
	c.presented[setting] = presented
}

// Describe implements prometheus.Collector.
func (c *CertificateEnds) Describe(out chan<- *prometheus.Desc) { out <- certificateEndDesc }

// Collect implements prometheus.Collector.
func (c *CertificateEnds) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for setting, presented := range c.presented {
		leaf, err := leafOf(presented)
		if err != nil || leaf == nil {
			continue
		}
		out <- prometheus.MustNewConstMetric(certificateEndDesc, prometheus.GaugeValue, float64(leaf.NotAfter.Unix()), setting)
	}
}

// leafOf returns the certificate of the program itself, without its authorities, or nil if there is none.
func leafOf(presented PresentedCertificate) (*x509.Certificate, error) {
	pair, err := presented(nil)
	switch {
	case err != nil:
		return nil, err
	case pair == nil || len(pair.Certificate) == 0:
		return nil, nil //nolint:nilnil // there is none
	case pair.Leaf != nil:
		return pair.Leaf, nil
	}
	return x509.ParseCertificate(pair.Certificate[0])
}
