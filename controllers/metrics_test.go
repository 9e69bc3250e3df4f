package controllers_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/acp-io/acp/internal/metrictest"
	"github.com/acp-io/acp/internal/serving"
	"github.com/acp-io/acp/internal/tracing/otlp"
)

func TestMetricsAreDocumented(t *testing.T) {
	library, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("controller-runtime's registry is a %T", metrics.Registry)
	}
	// cmd/acp-adapter registers the last two.
	metrictest.Compare(t, "adapter", shared.metrics, library, otlp.Spans(), &serving.CertificateEnds{})
}
