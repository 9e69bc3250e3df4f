package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/acp-io/acp/internal/tracing"
)

const (
	// closeTimeout bounds how long the end of a program waits for the last spans.
	closeTimeout = 3 * time.Second
	// sendTimeout bounds one attempt to send a batch.
	sendTimeout = 10 * time.Second
	// logInterval is the time between two log lines about spans that could not be sent.
	logInterval = 5 * time.Minute
)

// Config is what Open needs beside the settings.
type Config struct {
	Settings Settings
	// Service and Version describe the program. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override them.
	Service, Version string
	Log              *slog.Logger
	// Metrics is the registry for the counter of spans. Nil means that it is not exported.
	Metrics prometheus.Registerer
}

// Provider records spans and sends them. A nil Provider is off.
type Provider struct {
	provider *sdk.TracerProvider
	tracer   *tracing.Tracer
	sender   *sender
}

// Open returns the provider for the settings, or nil if tracing is off. It does not contact the collector. The counter of spans
// is registered in any case.
func Open(ctx context.Context, c Config) (*Provider, error) {
	if err := c.Settings.Validate(); err != nil {
		return nil, err
	}
	spans, err := registered(c.Metrics)
	if err != nil {
		return nil, err
	}
	to, err := c.Settings.url()
	if err != nil || to == nil {
		return nil, err
	}
	through, err := newTransport(&c.Settings)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: through, CheckRedirect: refuseRedirects, Timeout: sendTimeout}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to.String()), otlptracehttp.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("make the exporter of traces: %w", err)
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", c.Service), attribute.String("service.version", c.Version)}
	if name, err := os.Hostname(); err == nil {
		attributes = append(attributes, attribute.String("service.instance.id", name))
	}
	origin, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	s := newSender(exporter, to.Redacted(), c.Log, spans)
	// The batch processor drops spans when its queue (2,048 spans, OTEL_BSP_MAX_QUEUE_SIZE) is full; it never blocks.
	options := []sdk.TracerProviderOption{sdk.WithResource(origin), sdk.WithSpanProcessor(counting{sdk.NewBatchSpanProcessor(s), s})}
	if c.Settings.SampleRatio < 1 {
		options = append(options, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.Settings.SampleRatio))))
	}
	p := &Provider{provider: sdk.NewTracerProvider(options...), sender: s}
	p.tracer = tracing.New(p.provider)
	c.Log.Info("traces are sent", "endpoint", to.Redacted(), "service", c.Service)
	return p, nil
}

// Tracer returns the tracer of the program; nil if tracing is off.
func (p *Provider) Tracer() *tracing.Tracer {
	if p == nil {
		return nil
	}
	return p.tracer
}

// Close sends what is left, at most until the context or closeTimeout ends, and ends the provider.
func (p *Provider) Close(ctx context.Context) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := p.provider.Shutdown(ctx); err != nil {
		p.sender.log.Warn("not all traces were sent before the end", "error", err)
	}
}

// sender counts what becomes of spans, and logs failures at a bounded rate in place of OpenTelemetry's global handler.
type sender struct {
	sdk.SpanExporter
	endpoint string
	log      *slog.Logger
	spans    *prometheus.CounterVec
	now      func() time.Time

	mu     sync.Mutex
	failed int       // spans since the last line
	logged time.Time // of the last line; zero while the collector answers
}

func newSender(e sdk.SpanExporter, endpoint string, log *slog.Logger, spans *prometheus.CounterVec) *sender {
	return &sender{SpanExporter: e, endpoint: endpoint, log: log, now: time.Now, spans: spans}
}

// Spans returns the counter of spans.
func Spans() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "acp_tracing_spans_total",
		Help: "Spans by what became of them: recorded, sent, or failed to be sent. Recorded ones that are neither sent nor failed were dropped, " +
			"or wait for at most some seconds.",
	}, []string{"outcome"})
	for _, outcome := range []string{outcomeRecorded, outcomeSent, outcomeFailed} {
		c.WithLabelValues(outcome)
	}
	return c
}

// registered returns the counter of spans of a registry, which may have one already. Without a registry it returns a new counter.
func registered(registry prometheus.Registerer) (*prometheus.CounterVec, error) {
	c := Spans()
	if registry == nil {
		return c, nil
	}
	err := registry.Register(c)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) {
		if before, ok := twice.ExistingCollector.(*prometheus.CounterVec); ok {
			return before, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("register the metric of spans: %w", err)
	}
	return c, nil
}

const (
	outcomeRecorded = "recorded"
	outcomeSent     = "sent"
	outcomeFailed   = "failed"
)

// ExportSpans implements sdktrace.SpanExporter. It returns no error, because errors are only logged.
func (s *sender) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.spans.WithLabelValues(outcomeSent).Add(float64(len(spans)))
		if !s.logged.IsZero() {
			s.log.Info("traces are sent again", "endpoint", s.endpoint, "lost", s.failed)
		}
		s.logged, s.failed = time.Time{}, 0
		return nil
	}
	s.spans.WithLabelValues(outcomeFailed).Add(float64(len(spans)))
	s.failed += len(spans)
	if now := s.now(); s.logged.IsZero() || now.Sub(s.logged) >= logInterval {
		s.log.Warn("traces cannot be sent and are lost; nothing else is affected", "endpoint", s.endpoint, "lost", s.failed, "error", err)
		s.logged = now
	}
	return nil
}

// counting counts the spans that are recorded, which the batch processor does not.
type counting struct {
	sdk.SpanProcessor
	sender *sender
}

// OnEnd implements sdktrace.SpanProcessor.
func (c counting) OnEnd(span sdk.ReadOnlySpan) {
	if span.SpanContext().IsSampled() {
		c.sender.spans.WithLabelValues(outcomeRecorded).Inc()
	}
	c.SpanProcessor.OnEnd(span)
}
